"""The training loop: one model, one task."""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from bigcn.tasks.base import Scores, Task
from bigcn.training.config import Progress, TrainConfig, TrainResult
from bigcn.training.session import TrainSession

#: Streams that one seed starts, so that dropout does not repeat the draws of the initial weights.
STREAMS = {"weights": 0, "training": 1}


def train(
    model: torch.nn.Module,
    task: Task,
    config: TrainConfig | None = None,
    seed: int = 0,
    on_epoch: Callable[[Progress], bool | None] | None = None,
    session: TrainSession | None = None,
) -> TrainResult:
    """Trains a model with Adam and keeps the epoch that does best on validation.

    On a CPU the same seed gives the same result bit for bit, whatever was drawn before; the generators of the caller
    are left as they were. The model begins with the parameters it has (build it in :func:`seeded`) and ends in
    evaluation mode, with the parameters of the best epoch unless told otherwise.

    Args:
        model (torch.nn.Module): The model, changed in place.
        task (Task): What it learns.
        config (TrainConfig, optional): How. (default: the paper's way for this task)
        seed (int, optional): The seed of what is random in training, such as dropout. (default: :obj:`0`)
        on_epoch (Callable, optional): Called after each epoch; training ends if it returns :obj:`True`.
            (default: :obj:`None`)
        session (TrainSession, optional): Where training goes on from, if it holds anything, and what takes down where
            it ended, if the callback ended it. (default: :obj:`None`)
    """
    config = TrainConfig.published(task.name) if config is None else config
    if not isinstance(config, TrainConfig):
        raise ValueError(f"'config' must be a TrainConfig (got {type(config).__name__})")
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise ValueError("'model' has no parameters to train")
    device = parameters[0].device
    if task.x.device != device:
        raise ValueError(f"'model' is on {device}, and the task on {task.x.device}: move one of them")
    with seeded(seed, device, "training"), deterministic(config.deterministic):
        optimizer = make_adam(parameters, config)
        return run_epochs(
            model,
            task,
            config,
            step=lambda epoch: _step(model, task, optimizer, config.penalty, epoch),
            ends=on_epoch,
            begin=None if session is None else lambda best, curves: session.begin(model, optimizer, best, curves),
            interrupted=(
                None
                if session is None
                else lambda best, curves, epoch: session.end(model, optimizer, best, curves, epoch)
            ),
        )


class Judge(Protocol):
    """What a training asks of its task between the steps."""

    monitor: ClassVar[str]

    def evaluate(self, model: torch.nn.Module) -> Scores:
        """Returns validation and test scores."""


def run_epochs(
    model: torch.nn.Module,
    task: Judge,
    config: TrainConfig,
    *,
    step: Callable[[int], Tensor],
    ends: Callable[[Progress], bool | None] | None = None,
    begin: "Callable[[Best, Curves], int] | None" = None,
    after: "Callable[[Best, Curves, int], None] | None" = None,
    interrupted: "Callable[[Best, Curves, int], None] | None" = None,
) -> TrainResult:
    """Goes through the epochs of a training, whoever takes its steps, and keeps the best.

    Args:
        model (torch.nn.Module): The model.
        task (Judge): What it learns; asked for scores alone.
        config (TrainConfig): How.
        step (Callable): Trains the model for an epoch and returns the loss.
        ends (Callable, optional): Called after each epoch; training ends if it returns :obj:`True`.
        begin (Callable, optional): Puts back what an earlier training left and returns the epochs that lie behind.
        after (Callable, optional): Called after each epoch that another follows.
        interrupted (Callable, optional): Called if :obj:`ends` ended it.
    """
    start = time.perf_counter()
    best, curves = Best(config.restore_best), Curves(config.curves)
    stopped: Literal["patience", "max_epochs", "callback"] = "max_epochs"
    epoch = behind = 0 if begin is None else begin(best, curves)
    model.train()
    for epoch in range(behind + 1, config.max_epochs + 1):
        loss = step(epoch)
        score = None
        if epoch % config.evaluate_every == 0 or epoch == config.max_epochs:
            scores = task.evaluate(model)
            score = scores["val"][task.monitor]
            _check_finite(loss, epoch)
            curves.add(epoch, loss, score)
            best.offer(model, epoch, score, scores)
        if ends is not None and ends(Progress(epoch, config.max_epochs, float(loss), score, best.epoch, best.score)):
            stopped = "callback"
            break
        if score is not None and config.patience is not None and epoch - best.epoch >= config.patience:
            stopped = "patience"
            break
        if after is not None:
            after(best, curves, epoch)
    if interrupted is not None and stopped == "callback":
        interrupted(best, curves, epoch)
    if best.scores is None:  # it ended before the first evaluation
        scores = task.evaluate(model)
        best.offer(model, epoch, scores["val"][task.monitor], scores)
    best.restore(model)
    model.eval()
    assert best.scores is not None
    return TrainResult(
        best_epoch=best.epoch,
        epochs=epoch,
        score=best.score,
        metrics=best.scores["test"],
        val_metrics=best.scores["val"],
        seconds=time.perf_counter() - start,
        stopped=stopped,
        curves=curves.values,
    )


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu", stream: str = "weights") -> Iterator[None]:
    """Seeds PyTorch for a while and leaves the generators as they were before.

    Args:
        seed (int): Any non-negative integer.
        device (torch.device, optional): The device that is drawn on, besides the CPU. (default: :obj:`"cpu"`)
        stream (str, optional): Which of the independent streams of the seed: :obj:`"weights"` for building a model,
            :obj:`"training"` for what the loop draws. (default: :obj:`"weights"`)

    Example:
        >>> with seeded(5):
        ...     layer = torch.nn.Linear(2, 2)
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"'seed' must be a non-negative integer (got {seed!r})")
    if stream not in STREAMS:
        raise ValueError(f"'stream' must be one of {', '.join(STREAMS)} (got {stream!r})")
    words = np.random.SeedSequence(int(seed), spawn_key=(STREAMS[stream],)).generate_state(1, np.uint64)
    device = torch.device(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        # Not `torch.manual_seed`, which would also seed devices whose state is not restored.
        torch.default_generator.manual_seed(int(words[0]))
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(int(words[0]))
        yield


def _step(model: torch.nn.Module, task: Task, optimizer: torch.optim.Optimizer, penalty: float, epoch: int) -> Tensor:
    optimizer.zero_grad()
    loss = task.loss(model, epoch)
    if penalty > 0 and (norm := getattr(model, "penalty", None)) is not None:
        loss = loss + penalty * norm()
    loss.backward()
    optimizer.step()
    return loss.detach()


def make_adam(parameters: list[torch.nn.Parameter], config: TrainConfig) -> torch.optim.Adam:
    # One pass over memory instead of a dozen, which counts for feature graphs with a million logits.
    fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in parameters)
    return torch.optim.Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=fused)


def _check_finite(loss: Tensor, epoch: int) -> None:
    # Only where evaluation has waited for the device anyway.
    if not math.isfinite(float(loss)):
        raise FloatingPointError(f"training diverged: the loss is {float(loss)} in epoch {epoch}")


class Best:
    """The last best epoch: its scores and, if asked for, the parameters of the model."""

    def __init__(self, keep_state: bool) -> None:
        self.keep_state = keep_state
        self.epoch, self.score = 0, -math.inf
        self.scores: Scores | None = None
        self.state: dict[str, Any] = {}

    def offer(self, model: torch.nn.Module, epoch: int, score: float, scores: Scores) -> None:
        if score < self.score or math.isnan(score):
            return
        self.epoch, self.score, self.scores = epoch, score, scores
        if not self.keep_state:
            return
        state = model.state_dict()
        if self.state.keys() != state.keys():
            self.state = {key: _cloned(value) for key, value in state.items()}
            return
        for key, value in state.items():  # into the memory of the previous best
            self.state[key] = self.state[key].copy_(value) if isinstance(value, Tensor) else value

    def restore(self, model: torch.nn.Module) -> None:
        if self.state:
            model.load_state_dict(self.state)


def _cloned(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


class Curves:
    def __init__(self, keep: bool) -> None:
        self.values: dict[str, list[float]] = {"epoch": [], "loss": [], "score": []} if keep else {}

    def add(self, epoch: int, loss: Tensor, score: float) -> None:
        if self.values:
            for key, value in (("epoch", epoch), ("loss", float(loss)), ("score", score)):
                self.values[key].append(value)


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    # Without a fixed workspace cuBLAS may choose another order of additions, and PyTorch refuses to run it.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
