"""What a training run is told, and what it tells."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from bigcn.checks import is_finite, is_whole

#: How long the paper trains for each task.
PUBLISHED_STOPPING: dict[str, dict[str, Any]] = {
    "node": {"max_epochs": 10_000, "patience": 100, "evaluate_every": 1},
    "link": {"max_epochs": 100, "patience": None, "evaluate_every": 10},
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained.

    Args:
        learning_rate (float, optional): The step size of Adam. (default: :obj:`0.01`)
        weight_decay (float, optional): The weight decay of all parameters. (default: :obj:`5e-4`)
        penalty (float, optional): The weight of :meth:`model.penalty` in the loss, for models that have one.
            (default: :obj:`0.0`)
        max_epochs (int, optional): The most epochs to train. (default: :obj:`10000`)
        patience (int, optional): After how many epochs without improvement of the validation score to stop, when the
            next evaluation has none either; a tie counts as an improvement. :obj:`None` for never.
            (default: :obj:`100`)
        evaluate_every (int, optional): Every how many epochs to evaluate; the last one always is.
            (default: :obj:`1`)
        restore_best (bool, optional): If set to :obj:`False`, leaves the model as it was in the last epoch instead of
            in the best one, which saves copying its parameters at every improvement. (default: :obj:`True`)
        deterministic (bool, optional): If set to :obj:`True`, allows only deterministic algorithms of PyTorch. On a
            CPU results are the same bit for bit without. On CUDA, PyTorch does not count cuSPARSE's products among
            what it forbids; those with nodes of high degree may still differ in the last digits.
            (default: :obj:`False`)
        curves (bool, optional): If set to :obj:`True`, keeps loss and validation score of each evaluated epoch.
            (default: :obj:`False`)
    """

    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    penalty: float = 0.0
    max_epochs: int = 10_000
    patience: int | None = 100
    evaluate_every: int = 1
    restore_best: bool = True
    deterministic: bool = False
    curves: bool = False

    def __post_init__(self) -> None:
        for name in ("learning_rate", "weight_decay", "penalty"):
            value = getattr(self, name)
            real = is_finite(value) and not isinstance(value, bool)
            if not real or value < 0 or (name == "learning_rate" and value == 0):
                bound = "positive" if name == "learning_rate" else "finite and not negative"
                raise ValueError(f"'{name}' must be a number, {bound} (got {value!r})")
        for name in ("max_epochs", "patience", "evaluate_every"):
            value = getattr(self, name)
            if value is None and name == "patience":
                continue
            if not is_whole(value) or value < 1:
                raise ValueError(f"'{name}' must be a whole number of at least 1 (got {value!r})")

    @classmethod
    def published(cls, task: str, **overrides: Any) -> "TrainConfig":
        """Returns the paper's way to train for a task, with what is named changed.

        Args:
            task (str): :obj:`"node"` (validation accuracy with patience) or :obj:`"link"` (100 epochs, evaluated
                every 10).
            **overrides (optional): Arguments of this class; those of a model are
                :obj:`**dataclasses.asdict(spec.training(context))`, see :mod:`bigcn.nn.registry`.

        Example:
            >>> TrainConfig.published("link").max_epochs
            100
        """
        if task not in PUBLISHED_STOPPING:
            raise ValueError(f"'task' must be one of {', '.join(PUBLISHED_STOPPING)} (got {task!r})")
        unknown = set(overrides) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown training option: {', '.join(sorted(unknown))}")
        return cls(**{**PUBLISHED_STOPPING[task], **overrides})


class Progress(NamedTuple):
    """Where training stands after an epoch.

    Args:
        epoch (int): The epochs trained, beginning at one.
        max_epochs (int): The most there will be.
        loss (float): The training loss.
        score (float, optional): The validation score, if this epoch was evaluated.
        best_epoch (int): The last best epoch; zero before the first evaluation.
        best_score (float): Its validation score.
    """

    epoch: int
    max_epochs: int
    loss: float
    score: float | None
    best_epoch: int
    best_score: float


@dataclass(frozen=True)
class TrainResult:
    """What came out of training.

    Args:
        best_epoch (int): The last epoch with the best validation score, beginning at one.
        epochs (int): How many epochs were trained.
        score (float): The best validation score.
        metrics (dict): The test scores at the best epoch.
        val_metrics (dict): The validation scores at the best epoch.
        seconds (float): How long it took.
        stopped (str): Why it ended: :obj:`"patience"`, :obj:`"max_epochs"` or :obj:`"callback"`.
        curves (dict): If asked for, :obj:`"epoch"`, :obj:`"loss"` and :obj:`"score"` of each evaluated epoch.
    """

    best_epoch: int
    epochs: int
    score: float
    metrics: dict[str, float]
    val_metrics: dict[str, float]
    seconds: float
    stopped: Literal["patience", "max_epochs", "callback"]
    curves: dict[str, list[float]] = field(default_factory=dict)
