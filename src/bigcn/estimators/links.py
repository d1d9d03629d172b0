"""Embeddings of the nodes of a graph of one's own, trained to find its links."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch_geometric.data import Data

from bigcn.datasets.own import InputError, OwnGraph
from bigcn.estimators.base import GraphEstimator, GraphLike
from bigcn.tasks import LinkPrediction, Task


class BiGCNLinkPredictor(GraphEstimator):
    r"""Embeds nodes so that linked ones point the same way, with a :class:`bigcn.BiGCN`.

    Args:
        search, seed, max_epochs, settings, training, device: See :class:`BiGCNClassifier`.
        val_share, test_share (float, optional): The shares of the edges that validate and test.
            (default: :obj:`0.1`)

    Attributes:
        model_ (BiGCN): The trained model.
        trials_ (list[Trial]): What was tried.
        report_ (dict): Test scores; :obj:`None` while training is interrupted.
        interrupted_ (bool): Whether training was stopped before its end, see :meth:`resume`.
        encoding_ (Encoding): How tables become features.
        n_features_in_ (int): The number of features.

    Example:
        >>> from bigcn.datasets import digits
        >>> model = BiGCNLinkPredictor(search=False, max_epochs=10).fit(digits())
        >>> model.embed(digits()).shape
        (1797, 32)
    """

    task = "link"

    def __init__(
        self,
        search: bool = True,
        seed: int = 0,
        max_epochs: int | None = None,
        settings: dict[str, Any] | None = None,
        training: dict[str, Any] | None = None,
        val_share: float = 0.1,
        test_share: float = 0.1,
        device: str = "cpu",
    ) -> None:
        super().__init__(search, seed, max_epochs, settings, training, val_share, test_share, device)

    def embed(self, graph: GraphLike) -> NDArray[np.float32]:
        """Returns an embedding of unit length for every node.

        Args:
            graph (OwnGraph or Data): The graph that was fitted, or another with the same columns.
        """
        return F.normalize(self._outputs(graph), dim=-1).numpy()

    def score_pairs(self, graph: GraphLike, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns how likely pairs of nodes are linked, as the dot product of their embeddings.

        Args:
            graph (OwnGraph or Data): See :meth:`embed`.
            pairs (numpy.ndarray): The nodes of each pair by their row, of shape :obj:`[2, num_pairs]`.
        """
        embeddings = self.embed(graph)
        first, second = np.asarray(pairs)
        scores: NDArray[np.float32] = (embeddings[first] * embeddings[second]).sum(axis=1)
        return scores

    def _check(self, graph: OwnGraph) -> None:
        if graph.data.edge_index.size(1) < 20:
            raise InputError(f"{graph.name} has fewer than ten edges, too few to train, validate and test on")

    def _division(self) -> str:
        return f"{self.protocol_} {self.seed}"

    @property
    def protocol_(self) -> str:
        """The name of the rule that made the split."""
        return protocol_name(self.val_share, self.test_share)

    def _divide(self, graph: OwnGraph) -> None:
        """The task divides the edges itself, by the seed."""

    def _make_task(self, prepare: Callable[[Data], Data] | None) -> Task:
        return LinkPrediction(self._ordered.data, self.seed, self.val_share, self.test_share, prepare=prepare)

    def _finish(self) -> None:
        self.report_ = None
        if not self.interrupted_:
            scores = self._task.evaluate(self.model_)
            self.report_ = {"scores": scores["test"], "val_scores": scores["val"]}

    def _details(self) -> dict[str, Any]:
        return {"split": {"protocol": self.protocol_, "seed": self.seed}}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def protocol_name(val_share: float, test_share: float) -> str:
    """Returns the name of a random division of the edges."""
    val, test = round(100 * val_share), round(100 * test_share)
    return f"links-{100 - val - test}-{val}-{test}"
