"""Labels for the nodes of a graph of one's own."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.own import Encoding, OwnGraph
from bigcn.datasets.splits import Split
from bigcn.estimators.base import GraphEstimator, GraphLike
from bigcn.estimators.ordering import check_labels, stratified_split
from bigcn.estimators.pyg_graph import as_own_graph
from bigcn.estimators.scoring import assess_nodes, node_logits
from bigcn.tasks import NodeClassification, Task


class BiGCNClassifier(ClassifierMixin, GraphEstimator):
    r"""Predicts the class of each node from the labels of some, with a :class:`bigcn.BiGCN`.

    Strengths, filter form and feature graph are chosen on validation nodes by a small search, see
    :mod:`bigcn.estimators.candidates`; test nodes are looked at once, at the end. Probabilities are calibrated on the
    validation nodes by a temperature. Neither depends on the order of rows in the tables.

    Args:
        search (bool, optional): If set to :obj:`False`, trains the default form alone. (default: :obj:`True`)
        seed (int, optional): The seed of the split, the weights and the dropout. (default: :obj:`0`)
        max_epochs (int, optional): The most epochs of each training. (default: :obj:`None`)
        settings (dict, optional): Changes to the form that the search starts from, as arguments of
            :class:`bigcn.BiGCN`. (default: :obj:`None`)
        training (dict, optional): Changes to how it is trained, as arguments of
            :class:`bigcn.training.TrainConfig`. (default: :obj:`None`)
        val_share, test_share (float, optional): The shares of labelled nodes that validate and test, class by class,
            where the graph has no split of its own. (default: :obj:`0.2`)
        device (str, optional): :obj:`"cpu"` or :obj:`"cuda"`. (default: :obj:`"cpu"`)

    Attributes:
        model_ (BiGCN): The trained model.
        classes_ (numpy.ndarray): The classes, in the order of the probabilities.
        split_ (Split): The nodes that trained, validated and tested, numbered by their sorted ids.
        trials_ (list[Trial]): What was tried.
        report_ (dict): Test scores, confusion and calibration; :obj:`None` while training is interrupted.
        temperature_ (float): What logits are divided by before they become probabilities.
        interrupted_ (bool): Whether training was stopped before its end, see :meth:`resume`.
        encoding_ (Encoding): How tables become features.
        n_features_in_ (int): The number of features.

    Example:
        >>> from bigcn.datasets import digits
        >>> data = digits()
        >>> model = BiGCNClassifier(search=False, max_epochs=30).fit(data)
        >>> model.predict(data).shape, model.report_["scores"]["accuracy"] > 0.9
        ((1797,), True)
    """

    task = "node"

    split_: Split
    classes_: NDArray[Any]
    temperature_: float

    def predict(self, graph: GraphLike) -> NDArray[Any]:
        """Returns the class of every node, labelled or not.

        Args:
            graph (OwnGraph or Data): The graph that was fitted, or another with the same columns.
        """
        places = self.predict_proba(graph).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[places]
        return chosen

    def predict_proba(self, graph: GraphLike) -> NDArray[np.float64]:
        """Returns the probability of each class for every node.

        Args:
            graph (OwnGraph or Data): See :meth:`predict`.
        """
        logits = self._outputs(graph).double()
        return torch.softmax(logits / self.temperature_, dim=1).numpy()

    def score(self, graph: GraphLike, y: Any = None) -> float:
        """Returns the share of labelled nodes whose class is predicted right.

        Args:
            graph (OwnGraph or Data): See :meth:`predict`. Its labels are compared by name.
            y (array_like, optional): The true classes of all nodes, instead of the graph's labels, compared by name as
                well. (default: :obj:`None`)
        """
        predicted = self.predict(graph)
        if y is not None:
            truth = np.asarray(y)
            if truth.shape not in ((len(predicted),), (len(predicted), 1)):
                raise ValueError(f"'y' must have one class for each of {len(predicted)} nodes (got {truth.shape})")
            whole = np.issubdtype(truth.dtype, np.floating) and bool((truth == np.round(truth)).all())
            if whole or (truth.dtype == bool and predicted.dtype != object):
                truth = truth.astype(np.int64)  # 1.0 is the class that tables call 1, and so is True of a PyG graph
            return float((predicted.astype(str) == truth.reshape(-1).astype(str)).mean())
        own = as_own_graph(graph)
        if own.data.y is None or not own.labelled.any():
            raise ValueError(f"no node of {own.name} has a label to compare with")
        known = own.labelled.numpy()
        names = np.array(own.classes, dtype=object)[own.data.y.numpy()[known]]
        return float((predicted[known].astype(str) == names.astype(str)).mean())

    def _check(self, graph: OwnGraph) -> None:
        check_labels(graph)

    def _divide(self, graph: OwnGraph) -> None:
        self.classes_ = _class_array(self.encoding_)
        if graph.split is not None:
            self.split_ = self._ordered.forth(graph.split)
            return
        label = self._ordered.data.y
        self.split_ = stratified_split(label, graph.classes, self.seed, self.val_share, self.test_share)

    def _make_task(self, prepare: Callable[[Data], Data] | None) -> Task:
        return NodeClassification(self._ordered.data, self.split_, num_classes=len(self.classes_), prepare=prepare)

    def _division(self) -> str:
        parts = (self.split_.train, self.split_.val, self.split_.test)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(f"{len(part)};".encode() + part.numpy().tobytes())
        return digest.hexdigest()

    @property
    def protocol_(self) -> str:
        """The name of the rule that made the split."""
        return self.split_.protocol

    def _finish(self) -> None:
        self.report_ = None
        if self.interrupted_:
            # Calibrated on what validates, and nothing said about what tests.
            logits = node_logits(self._task, self.model_)
            self.temperature_ = assess_nodes(logits, self._label, self.split_)["temperature"]
            return
        self.report_ = assess_nodes(node_logits(self._task, self.model_), self._label, self.split_)
        self.temperature_ = self.report_["temperature"]

    def _details(self) -> dict[str, Any]:
        parts = {part: len(getattr(self.split_, part)) for part in ("train", "val", "test")}
        return {"temperature": self.temperature_, "split": {"protocol": self.split_.protocol, **parts}}

    def _arrays(self) -> dict[str, dict[str, Tensor]]:
        return {"split": {part: getattr(self.split_, part) for part in ("train", "val", "test")}}

    def _restore(self, details: dict[str, Any], arrays: dict[str, dict[str, Tensor]]) -> None:
        split = arrays["split"]
        self.split_ = Split(details["split"]["protocol"], split["train"], split["val"], split["test"])
        self.temperature_ = float(details["temperature"])
        self.classes_ = _class_array(self.encoding_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _class_array(encoding: Encoding) -> NDArray[Any]:
    """Returns the classes by name, or by number where they never had a name."""
    if encoding.label is None and all(name.isdecimal() for name in encoding.classes):
        return np.array([int(name) for name in encoding.classes])
    return np.array(encoding.classes, dtype=object)
