"""Trains candidates one after the other and keeps the best; can be stopped at any epoch and taken up again."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bigcn.estimators.candidates import Candidate, Plan, Trial, best_of
from bigcn.estimators.scoring import validation_loss
from bigcn.feature_graphs import CorrelationGraph, FeatureGraph, SpectralGraph
from bigcn.nn.bigcn import BiGCN
from bigcn.tasks import Task
from bigcn.training import Progress, TrainConfig, TrainSession, seeded, train

OnEpoch = Callable[[Candidate, Progress], bool | None]
OnTrial = Callable[[Trial], None]


class Search:
    """A search for the best of some candidates on the validation part of a task.

    Args:
        task (Task): What is learned; it decides the device.
        plan (Plan): What is tried.
        seed (int): The seed of weights and dropout, the same for all candidates.
        label (torch.Tensor, optional): The class of each node, to decide between equal scores.
        trials (list[Trial], optional): Those that are done. (default: none)
        best_state (dict, optional): The weights of the best of them.
        session (TrainSession, optional): Where the one after them stopped.

    Attributes:
        trials, best_state: As above, further on after :meth:`run`.
        session: Where training stopped if it was interrupted, otherwise :obj:`None`.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        seed: int,
        label: Tensor | None = None,
        trials: list[Trial] | None = None,
        best_state: dict[str, Tensor] | None = None,
        session: TrainSession | None = None,
    ) -> None:
        self.task, self.plan, self.seed, self.label = task, plan, seed, label
        self.trials = list(trials or [])
        self.best_state = dict(best_state or {})
        self.session = session
        self._graphs: dict[str, FeatureGraph] = {}

    def run(self, on_epoch: OnEpoch | None = None, on_trial: OnTrial | None = None) -> bool:
        """Tries what is left, and returns whether it came to the end.

        Args:
            on_epoch (Callable, optional): Called after each epoch; the search stops if it returns :obj:`True`.
            on_trial (Callable, optional): Called with each finished trial.
        """
        while (candidate := self.plan.next(self.trials)) is not None:
            trial = self._try(candidate, on_epoch)
            if trial is None:
                return False
            if on_trial is not None:
                on_trial(trial)
        return True

    def best_model(self) -> tuple[BiGCN, Candidate | Trial]:
        """Returns the best model so far, with what it is; of an unfinished candidate, its best epoch counts."""
        candidate = self.plan.next(self.trials)
        stopped = self.session
        if stopped is not None and candidate is not None and stopped.best_state:
            leading = self.trials[best_of(self.trials)].score if self.trials else -1.0
            if stopped.numbers["score"] > leading:
                return self._restored(candidate, stopped.best_state), candidate
        if self.trials:
            best = self.trials[best_of(self.trials)]
            return self._restored(Candidate(best.name, best.model, best.training), self.best_state), best
        if stopped is None or candidate is None:
            raise ValueError("nothing has been tried yet")
        state = stopped.best_state or stopped.model_state
        return self._restored(candidate, state), candidate

    def _try(self, candidate: Candidate, on_epoch: OnEpoch | None) -> Trial | None:
        config = TrainConfig(**candidate.training)
        model = self._build(candidate)
        session = self.session or TrainSession()
        before = float(session.numbers.get("seconds", 0.0))

        def after_epoch(progress: Progress) -> bool:
            stop = on_epoch is not None and bool(on_epoch(candidate, progress))
            # Where training ends of its own accord there is nothing to go on with later.
            waited = progress.epoch - progress.best_epoch
            spent = progress.score is not None and config.patience is not None and waited >= config.patience
            return stop and not spent and progress.epoch < config.max_epochs

        outcome = train(model, self.task, config, self.seed, after_epoch, session)
        if outcome.stopped == "callback":
            session.numbers["seconds"] = before + outcome.seconds
            self.session = session
            return None
        self.session = None
        trial = Trial(
            **vars(candidate),
            score=outcome.score,
            loss=validation_loss(self.task, model, self.label),
            best_epoch=outcome.best_epoch,
            epochs=outcome.epochs,
            seconds=before + outcome.seconds,
        )
        self.trials.append(trial)
        if best_of(self.trials) == len(self.trials) - 1:
            self.best_state = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
        return trial

    def _build(self, candidate: Candidate) -> BiGCN:
        arguments = dict(candidate.model)
        # Computed once and kept: the same for every graph that the model is later used on.
        arguments["feature_graph"] = self._feature_graph(arguments)
        if isinstance(arguments["feature_graph"], FeatureGraph):
            arguments.pop("feature_graph_kwargs", None)
        device = self.task.x.device
        with seeded(self.seed, device):
            return BiGCN(self.task.num_features, out_channels=self.task.num_outputs, **arguments).to(device)

    def _restored(self, candidate: Candidate, state: dict[str, Tensor]) -> BiGCN:
        model = self._build(candidate)
        model.load_state_dict(state)
        return model.eval()

    def _feature_graph(self, arguments: dict[str, Any]) -> str | FeatureGraph:
        name: str = arguments.get("feature_graph", "none")
        if name not in ("spectral", "correlation"):
            return name
        kwargs = arguments.get("feature_graph_kwargs") or {}
        key = f"{name} {sorted(kwargs.items())}"
        if key not in self._graphs:
            task = self.task
            with torch.no_grad():
                self._graphs[key] = (
                    CorrelationGraph.from_features(task.x, **kwargs)
                    if name == "correlation"
                    else SpectralGraph.from_data(task.x, task.edge_index, task.edge_weight, **kwargs)
                )
        return self._graphs[key]
