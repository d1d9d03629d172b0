"""Link prediction."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score
from torch import Tensor
from torch_geometric.data import Data

from bigcn.node_graphs import edges_of
from bigcn.tasks.base import Scores, Task, features_of
from bigcn.tasks.pairs import PairSampler, pair_numbers, pairs_of

PARTS = ("train", "val", "test")
#: How many bytes of negatives are kept; a hundred epochs of the paper's graphs.
KEPT_BYTES = 2**26


class LinkPrediction(Task):
    r"""Predicts which pairs of nodes are linked, as P-GNN does, judged by ROC-AUC.

    Undirected edges are divided at random into training, validation and test edges, 80/10/10 by default, and messages
    pass on the training edges alone. Each part has as many negatives as edges: unordered pairs of distinct nodes that
    are an edge of no part, drawn uniformly, no pair twice and none in two parts. A pair scores the dot product
    :math:`s = \mathbf{z}_i^{\top} \mathbf{z}_j` of its unit-length embeddings; the loss is the binary cross-entropy of
    :math:`\mathrm{sigmoid}(s)`. As :math:`s` lies in :math:`[-1, 1]`, it cannot fall below
    :math:`\log(1 + e^{-1}) \approx 0.313`.

    Everything is drawn on the CPU from :obj:`seed`, the same on every device.

    Args:
        data (Data): The graph, undirected.
        seed (int, optional): The seed of edges and negatives. (default: :obj:`0`)
        val_share (float, optional): The share of edges for validation. (default: :obj:`0.1`)
        test_share (float, optional): The share of edges for the test. (default: :obj:`0.1`)
        negatives (str, optional): :obj:`"fresh"` draws new training negatives in each epoch, which avoid the negatives
            of validation and test; :obj:`"fixed"` draws them once, as the code of P-GNN does. (default: :obj:`"fresh"`)
        embedding_channels (int, optional): The size of the embeddings. (default: :obj:`32`)
        prepare (Callable, optional): See :class:`~bigcn.tasks.Task`; it sees the training edges alone.
            (default: :obj:`None`)

    Example:
        >>> from bigcn.datasets import digits
        >>> task = LinkPrediction(digits(), seed=5)
        >>> [task.positives[part].size(1) for part in ("train", "val", "test")]
        [4313, 539, 539]
    """

    name = "link"
    monitor = "roc_auc"

    def __init__(
        self,
        data: Data,
        seed: int = 0,
        val_share: float = 0.1,
        test_share: float = 0.1,
        negatives: Literal["fresh", "fixed"] = "fresh",
        embedding_channels: int = 32,
        prepare: Callable[[Data], Data] | None = None,
    ) -> None:
        if negatives not in ("fresh", "fixed"):
            raise ValueError(f"'negatives' must be 'fresh' or 'fixed' (got {negatives!r})")
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"'seed' must be a non-negative integer (got {seed!r})")
        if embedding_channels < 1:
            raise ValueError(f"'embedding_channels' must be positive (got {embedding_channels})")
        for name, share in (("val_share", val_share), ("test_share", test_share)):
            if not 0 < share < 1:
                raise ValueError(f"'{name}' must be between 0 and 1 (got {share})")
        if val_share + test_share >= 1:
            raise ValueError("'val_share' and 'test_share' must leave edges to train on")
        self.seed, self.negatives, self.num_outputs = int(seed), negatives, embedding_channels
        self.val_share, self.test_share = val_share, test_share

        self._num_nodes = features_of(data).size(0)
        numbers = self._edge_numbers(data)
        parts = self._divide(np.unique(numbers[numbers >= 0]))
        super().__init__(_without(data, numbers, np.concatenate([parts["val"], parts["test"]])), prepare)

        edges = np.concatenate(list(parts.values()))
        drawn = np.split(
            PairSampler(self._num_nodes, edges).draw(len(edges), self._generator(1)),
            np.cumsum([len(parts[part]) for part in PARTS])[:-1],
        )
        held_out = dict(zip(PARTS, drawn, strict=True))
        self._sampler = PairSampler(self._num_nodes, np.concatenate([edges, held_out["val"], held_out["test"]]))
        self.positives = {part: self._pairs(parts[part]) for part in PARTS}
        #: The negatives of each part; those of training are drawn anew in each epoch if they are to be fresh.
        self.fixed_negatives = {part: self._pairs(held_out[part]) for part in PARTS}
        self._drawn: dict[int, Tensor] = {}
        self.to(self.x.device)

    def training_negatives(self, epoch: int) -> Tensor:
        """Returns the negatives that an epoch is trained on, of shape :obj:`[2, num_pairs]`."""
        if self.negatives == "fixed":
            return self.fixed_negatives["train"]
        if epoch not in self._drawn:
            size = 8 * self.positives["train"].size(1)
            while self._drawn and (len(self._drawn) + 1) * size > KEPT_BYTES:
                self._drawn.pop(next(iter(self._drawn)))
            numbers = self._sampler.draw(self.positives["train"].size(1), self._generator(2, epoch))
            # Half the memory: they are kept for the next model, and for tasks with other features.
            self._drawn[epoch] = self._pairs(numbers).to(torch.int32).to(self.x.device)
        return self._drawn[epoch].to(torch.int64)

    def questions(self, epoch: int = 0) -> tuple[Tensor, ...]:
        return (torch.cat([self.positives["train"], self.training_negatives(epoch)], dim=1),)

    def loss_of(self, out: Tensor, *questions: Tensor) -> Tensor:
        scores = pair_scores(F.normalize(out, dim=-1), questions[0])
        return F.binary_cross_entropy_with_logits(scores, _halves(scores))

    def scored(self) -> tuple[Tensor, ...]:
        return (torch.cat([self._both(part) for part in ("val", "test")], dim=1),)

    def answers(self, out: Tensor, *scored: Tensor) -> Tensor:
        return pair_scores(F.normalize(out, dim=-1), scored[0]).double()

    @property
    def num_validated(self) -> int | None:
        return 2 * self.positives["val"].size(1)

    def judge(self, answers: Tensor, right: Tensor | None = None) -> Tensor:
        return rank_auc(*answers[..., : self.num_validated].chunk(2, dim=-1))

    def scores(self, answers: Tensor) -> Scores:
        sizes = [2 * self.positives[part].size(1) for part in ("val", "test")]
        return {part: link_scores(score) for part, score in zip(("val", "test"), answers.split(sizes), strict=True)}

    def to(self, device: torch.device | str) -> "LinkPrediction":
        super().to(device)
        self._drawn = {}
        # New ones: a task with other features shares the old ones, and stays where it is.
        self.positives = {part: pairs.to(device) for part, pairs in self.positives.items()}
        self.fixed_negatives = {part: pairs.to(device) for part, pairs in self.fixed_negatives.items()}
        return self

    def _generator(self, *stream: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=stream)))

    def _edge_numbers(self, data: Data) -> np.ndarray:
        """Returns the number of the pair that each edge joins, and -1 for self-loops."""
        source, target = edges_of(data.edge_index)[0].cpu().numpy().astype(np.int64)
        n = self._num_nodes
        if not np.array_equal(np.unique(source * n + target), np.unique(target * n + source)):
            raise ValueError("'data' must be undirected, with every edge in both directions; apply ToUndirected first")
        numbers = np.full(len(source), -1)
        proper = source != target
        numbers[proper] = pair_numbers(source[proper], target[proper], n)
        return numbers

    def _divide(self, edges: np.ndarray) -> dict[str, np.ndarray]:
        num_val, num_test = (max(1, round(len(edges) * share)) for share in (self.val_share, self.test_share))
        if len(edges) <= num_val + num_test:
            raise ValueError(f"'data' has {len(edges)} edges, too few to train, validate and test on")
        shuffled = self._generator(0).permutation(edges)
        val, test, train = np.split(shuffled, [num_val, num_val + num_test])
        return {"train": train, "val": val, "test": test}

    def _pairs(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(pairs_of(numbers, self._num_nodes))

    def _both(self, part: str) -> Tensor:
        return torch.cat([self.positives[part], self.fixed_negatives[part]], dim=1)


def pair_scores(embeddings: Tensor, pairs: Tensor) -> Tensor:
    """Returns the dot product of the two embeddings of each pair."""
    # Not `embeddings[pairs]`: on a CPU its gradient adds up in whatever order the threads come.
    first, second = embeddings.index_select(0, pairs.reshape(-1)).chunk(2)
    return (first * second).sum(dim=-1)


def rank_auc(linked: Tensor, unlinked: Tensor) -> Tensor:
    """Returns the ROC-AUC in double precision: how often a linked pair scores above an unlinked one, a tie counting
    one half.

    Args:
        linked, unlinked (torch.Tensor): The scores in the last dimension; others are kept.
    """
    ranked = unlinked.sort(dim=-1).values
    linked = linked.contiguous()
    below, up_to = (torch.searchsorted(ranked, linked, right=right) for right in (False, True))
    return (below + up_to).sum(dim=-1).double() / (2 * linked.size(-1) * unlinked.size(-1))


def link_scores(score: Tensor) -> dict[str, float]:
    """Returns ROC-AUC and average precision of scored pairs, of which the first half are linked."""
    linked, unlinked = score.double().chunk(2)
    return {
        "roc_auc": float(rank_auc(linked, unlinked)),
        "average_precision": float(average_precision_score(_halves(score).cpu().numpy(), score.cpu().numpy())),
    }


def _halves(scores: Tensor) -> Tensor:
    """Returns ones for the first half, the edges, and zeros for the second, the negatives."""
    return (torch.arange(scores.numel(), device=scores.device) < scores.numel() // 2).to(scores.dtype)


def _without(data: Data, numbers: np.ndarray, removed: np.ndarray) -> Data:
    """Returns the graph without the pairs removed; the edges that stay keep their weights."""
    edges, weight = edges_of(data.edge_index, data.edge_weight)
    keep = torch.from_numpy(~np.isin(numbers, removed)).to(edges.device)
    return Data(x=data.x, edge_index=edges[:, keep], edge_weight=None if weight is None else weight[keep])
