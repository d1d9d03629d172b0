"""What the estimators for graphs of one's own share: fitting with a search, stopping, saving, loading."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any, ClassVar, Self, TypeAlias

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.graphs import graph_fingerprint
from bigcn.datasets.own import Encoding, OwnGraph
from bigcn.estimators.candidates import (
    DEFAULT_MODEL,
    DEFAULT_TRAINING,
    LOCAL_SEARCH,
    Candidate,
    Plan,
    Trial,
    best_of,
)
from bigcn.estimators.card import model_card
from bigcn.estimators.matching import matched_graph
from bigcn.estimators.ordering import Ordered, ordered
from bigcn.estimators.pyg_graph import as_own_graph
from bigcn.estimators.search import OnEpoch, OnTrial, Search
from bigcn.files import PathLike
from bigcn.local_filter import is_undirected
from bigcn.nn.bigcn import BiGCN
from bigcn.tasks import Task
from bigcn.training import TrainConfig, TrainSession
from bigcn.training.checkpoint import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint

GraphLike: TypeAlias = OwnGraph | Data


class GraphEstimator(BaseEstimator):
    """The common part of the estimators; see :class:`BiGCNClassifier` and :class:`BiGCNLinkPredictor`."""

    #: What is learned: :obj:`"node"` or :obj:`"link"`.
    task: ClassVar[str]

    model_: BiGCN
    encoding_: Encoding
    trials_: list[Trial]
    chosen_: Candidate
    report_: dict[str, Any] | None
    interrupted_: bool
    #: The SHA-256 of the sorted graph and its split.
    fingerprint_: str
    n_features_in_: int
    _saved: dict[str, Any]

    def __init__(
        self,
        search: bool = True,
        seed: int = 0,
        max_epochs: int | None = None,
        settings: dict[str, Any] | None = None,
        training: dict[str, Any] | None = None,
        val_share: float = 0.2,
        test_share: float = 0.2,
        device: str = "cpu",
    ) -> None:
        self.search = search
        self.seed = seed
        self.max_epochs = max_epochs
        self.settings = settings
        self.training = training
        self.val_share = val_share
        self.test_share = test_share
        self.device = device

    def fit(
        self,
        graph: GraphLike,
        y: None = None,
        *,
        on_epoch: OnEpoch | None = None,
        on_trial: OnTrial | None = None,
    ) -> Self:
        """Trains on a graph.

        Args:
            graph (OwnGraph or Data): What :func:`bigcn.read_graph` returned, or a PyG graph.
            y (None): Ignored; there for scikit-learn's conventions.
            on_epoch (Callable, optional): Called with the candidate and its progress after each epoch; returning
                :obj:`True` stops. What was best by then is kept, :attr:`interrupted_` is set, and :meth:`resume` goes
                on.
            on_trial (Callable, optional): Called with each finished candidate.
        """
        own = self._own(graph)
        self.encoding_ = own.encoding
        self._start(own)
        self._search = Search(self._task, self.plan(), self.seed, self._label)
        return self._go_on(on_epoch, on_trial)

    def resume(self, graph: GraphLike, *, on_epoch: OnEpoch | None = None, on_trial: OnTrial | None = None) -> Self:
        """Goes on where :meth:`fit` stopped, also after saving and loading; does nothing if it came to its end.

        On a CPU the result is the one that an undisturbed fit would have had.

        Args:
            graph (OwnGraph or Data): The same graph; its rows may stand in another order.
            on_epoch, on_trial (Callable, optional): See :meth:`fit`.
        """
        check_is_fitted(self, "model_")
        known, saved = self.fingerprint_, self._saved
        self._start(matched_graph(self._own(graph), self.encoding_))
        if self.fingerprint_ != known:
            self.fingerprint_ = known
            raise ValueError("this is not the graph that the model was trained on, so training cannot go on")
        if not self.interrupted_:
            return self
        session = TrainSession(*saved["session"]) if saved.get("session") else None
        self._search = Search(
            self._task, self.plan(), self.seed, self._label, self.trials_, saved.get("best_state"), session
        )
        return self._go_on(on_epoch, on_trial)

    def plan(self, graph: OwnGraph | None = None) -> Plan:
        """Returns what is tried on a graph.

        Args:
            graph (OwnGraph, optional): The graph. (default: the one that was fitted)
        """
        if graph is None:
            check_is_fitted(self, "data_")
        known = sorted(field.name for field in fields(TrainConfig))
        if unknown := [name for name in self.training or {} if name not in known]:
            raise ValueError(f"'training' names {unknown[0]!r}, which TrainConfig does not have: {', '.join(known)}")
        training = {**DEFAULT_TRAINING[self.task], **(self.training or {})}
        if self.max_epochs is not None:
            training["max_epochs"] = self.max_epochs
        summary = self.data_ if graph is None else asdict(graph.summary)
        on = vars(self).get("_task") if graph is None else graph.data
        size = summary["nodes"] + summary["edges"]
        return Plan(
            {**DEFAULT_MODEL[self.task], **(self.settings or {})},
            asdict(TrainConfig(**training)),
            size,
            self.n_features_in_ if graph is None else graph.data.x.size(1),
            self.search,
            self.task,
            on is None or size > LOCAL_SEARCH or is_undirected(on.edge_index, on.edge_weight, on.x.size(0)),
        )

    def make_task(self, prepare: Callable[[Data], Data] | None = None) -> Task:
        """Returns what is learned on the graph that was fitted, for training other models on the same split.

        Args:
            prepare (Callable, optional): See :class:`bigcn.tasks.Task`. (default: :obj:`None`)
        """
        check_is_fitted(self, "_ordered")
        return self._make_task(prepare).to(self.device)

    def save(self, folder: PathLike, overwrite: bool = False, notes: dict[str, Any] | None = None) -> None:
        """Saves the fitted estimator as a checkpoint, see :mod:`bigcn.training.checkpoint`.

        Args:
            folder (str or path): The folder.
            overwrite (bool, optional): If set to :obj:`True`, replaces an older checkpoint. (default: :obj:`False`)
            notes (dict, optional): Further plain values to keep; :obj:`"beside"` are scores of other models, which the
                model card lists. (default: :obj:`None`)
        """
        check_is_fitted(self, "model_")
        details: dict[str, Any] = {
            "estimator": {"class": type(self).__name__, "parameters": self.get_params()},
            "data": self.data_,
            "fingerprint": self.fingerprint_,
            "search": {
                "finished": not self.interrupted_,
                "trials": [trial.to_dict() for trial in self.trials_],
                "chosen": vars(self.chosen_),
            },
            "report": self.report_,
            **self._details(),
            **(notes or {}),
        }
        arrays = self._arrays()
        if self.interrupted_:
            resume = {f"finished.{name}": value for name, value in self._saved.get("best_state", {}).items()}
            if self._saved.get("session"):
                tensors, details["search"]["session"] = self._saved["session"]
                resume |= {f"session.{name}": value for name, value in tensors.items()}
            arrays["resume"] = resume
        checkpoint = Checkpoint(self.model_, self.task, self.encoding_, details, arrays)
        checkpoint = replace(checkpoint, card=model_card(checkpoint))
        save_checkpoint(folder, checkpoint, overwrite)

    @classmethod
    def load(cls, folder: PathLike, device: str = "cpu") -> Self:
        """Returns the estimator that :meth:`save` or the command :obj:`bigcn train` wrote.

        Args:
            folder (str or path): The folder.
            device (str, optional): Where to put the model. (default: :obj:`"cpu"`)
        """
        return cls.from_checkpoint(load_checkpoint(folder, device), folder, device)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, folder: PathLike = "the checkpoint", device: str = "cpu") -> Self:
        """Returns the estimator of a checkpoint that was loaded."""
        if checkpoint.task != cls.task or checkpoint.encoding is None:
            trained = {"node": "labels of nodes", "link": "links"}.get(checkpoint.task or "", "no table")
            raise CheckpointError(f"{folder} was trained for {trained}, which {cls.__name__} cannot take up")
        details = checkpoint.details
        if "estimator" not in details:
            raise CheckpointError(
                f"{folder} was trained on shards and knows no tables: predict on shards, or use BiGCN.from_pretrained"
            )
        try:
            self = cls(**{**details["estimator"]["parameters"], "device": device})
            self.model_, self.encoding_ = checkpoint.model, checkpoint.encoding
            self.data_, self.fingerprint_, self.report_ = (details[key] for key in ("data", "fingerprint", "report"))
            search = details["search"]
            self.trials_ = [Trial(**trial) for trial in search["trials"]]
            self.chosen_ = Candidate(**search["chosen"])
            self.interrupted_ = not search["finished"]
            self.n_features_in_ = len(self.encoding_.feature_names)
            self._saved = _resumable(checkpoint.arrays.get("resume", {}), search.get("session"))
            self._restore(details, checkpoint.arrays)
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{folder} is not complete ({error})") from None
        return self

    def _own(self, graph: GraphLike) -> OwnGraph:
        return as_own_graph(graph, learns_labels=self.task == "node")

    def _start(self, graph: OwnGraph) -> None:
        self._check(graph)
        self.n_features_in_ = graph.data.x.size(1)
        self.data_ = asdict(graph.summary) | {"name": graph.name}
        self._ordered: Ordered = ordered(graph)
        self._label = self._ordered.data.y
        self._divide(graph)
        self._task: Task = self.make_task()
        parts = hashlib.sha256(f"{graph_fingerprint(self._ordered.data)} {self._division()}".encode())
        self.fingerprint_ = parts.hexdigest()

    def _go_on(self, on_epoch: OnEpoch | None, on_trial: OnTrial | None) -> Self:
        search = self._search
        self.interrupted_ = not search.run(on_epoch, on_trial)
        self.trials_ = search.trials
        if not self.trials_ and search.session is None:
            raise ValueError("there was nothing to train")
        self.model_, chosen = search.best_model()
        self.chosen_ = Candidate(chosen.name, chosen.model, chosen.training)
        self._saved = {}
        if self.interrupted_:
            self._saved = {"best_state": search.best_state}
            if search.session is not None:
                self._saved["session"] = (search.session.tensors, search.session.numbers)
        self._finish()
        return self

    def _outputs(self, graph: GraphLike) -> Tensor:
        """Returns what the model says about the nodes of a graph, in their order, on the CPU."""
        check_is_fitted(self, "model_")
        sorted_graph = ordered(matched_graph(as_own_graph(graph), self.encoding_))
        data = sorted_graph.data.to(self.device)
        self.model_.to(self.device).eval()
        with torch.no_grad():
            out = self.model_(data.x, data.edge_index, data.edge_weight).cpu()
        for module in self.model_.modules():  # nothing of that graph is to stay in memory
            if (forget := getattr(module, "_forget", None)) is not None:
                forget()
        return sorted_graph.back(out)

    @property
    def best_trial_(self) -> Trial:
        """The finished trial that did best on validation."""
        return self.trials_[best_of(self.trials_)]

    @abstractmethod
    def _check(self, graph: OwnGraph) -> None:
        """Refuses a graph that cannot be learned from."""

    @abstractmethod
    def _divide(self, graph: OwnGraph) -> None:
        """Decides what trains, validates and tests."""

    @abstractmethod
    def _make_task(self, prepare: Callable[[Data], Data] | None) -> Task:
        """Returns the task on the sorted graph."""

    @abstractmethod
    def _division(self) -> str:
        """Returns a text that differs where the parts that train, validate and test do."""

    @property
    @abstractmethod
    def protocol_(self) -> str:
        """The name of the rule that made the split."""

    @abstractmethod
    def _finish(self) -> None:
        """Scores the model on the test part, once, if the search came to its end."""

    def _details(self) -> dict[str, Any]:
        return {}

    def _arrays(self) -> dict[str, dict[str, Tensor]]:
        return {}

    def _restore(self, details: dict[str, Any], arrays: dict[str, dict[str, Tensor]]) -> None:
        """Takes back what :meth:`_details` and :meth:`_arrays` gave."""


def _resumable(tensors: dict[str, Tensor], numbers: dict[str, Any] | None) -> dict[str, Any]:
    def part(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

    return {"best_state": part("finished.")} | ({"session": (part("session."), numbers)} if numbers else {})
