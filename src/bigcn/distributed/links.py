"""Link prediction on a graph that is spread over processes."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bigcn.distributed.exchange import RowExchange
from bigcn.distributed.graph import DistributedGraph, Entries, entries_of
from bigcn.distributed.pairs import Negatives, PairParts, Query, has_entry
from bigcn.distributed.processes import Processes
from bigcn.distributed.shards import Shard
from bigcn.distributed.task import DistributedTask
from bigcn.tasks.base import Scores, evaluating
from bigcn.tasks.links import PARTS, link_scores


class DistributedLinks(DistributedTask):
    """Predicts which pairs of nodes are linked; see :class:`bigcn.tasks.LinkPrediction`.

    A pair of nodes belongs to training, validation or test by a hash of the seed and its two places in the node table,
    whether it is an edge or not: no process needs to see all edges to divide them, negatives of different parts are
    never the same pair, and nothing depends on the number of processes. The parts have their shares of the edges to
    within chance. Negatives are drawn uniformly, as many as there are edges in a part; unlike those of a single
    process, two of them may be the same pair. A pair is scored where its node of the lower place lives; the embedding
    of the other one travels there.

    Args:
        shard (Shard): The shard of this process.
        processes (Processes): The processes.
        dtype (torch.dtype, optional): The precision. (default: :obj:`torch.float32`)
        seed, val_share, test_share, negatives, embedding_channels: See :class:`bigcn.tasks.LinkPrediction`.
    """

    name = "link"
    monitor = "roc_auc"

    def __init__(
        self,
        shard: Shard,
        processes: Processes,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        val_share: float = 0.1,
        test_share: float = 0.1,
        negatives: Literal["fresh", "fixed"] = "fresh",
        embedding_channels: int = 32,
    ) -> None:
        if not (0 < val_share < 1 and 0 < test_share < 1 and val_share + test_share < 1):
            raise ValueError("'val_share' and 'test_share' must be between 0 and 1, and leave edges to train on")
        self.processes, self.num_outputs, self.negatives = processes, embedding_channels, negatives
        self.rows = shard.tensor("rows").to(processes.device)
        self._offsets = torch.from_numpy(shard.manifest.offsets).to(processes.device)
        parts = PairParts(seed, val_share, test_share)
        own, halo = (entries.to(processes.device) for entries in entries_of(shard))
        halo_rows = shard.tensor("halo_rows").to(processes.device)
        halo_numbers = shard.tensor("halo").to(processes.device)
        first = int(self._offsets[processes.rank])
        own_numbers = torch.arange(first, first + shard.num_rows, device=processes.device)

        pairs, kept = [], []
        for entries, rows, numbers in ((own, self.rows, own_numbers), (halo, halo_rows, halo_numbers)):
            found = _positives(entries, self.rows, rows, numbers, parts)
            pairs.append(found[0])
            kept.append(found[1])
        together = Positives(*(torch.cat(both) for both in zip(*pairs, strict=True)))
        self._positives = [together.only(number) for number in range(3)]
        self.graph = DistributedGraph.from_shard(shard, processes, dtype, (kept[0].cpu(), kept[1].cpu()))
        self.x = shard.features(dtype).to(processes.device)

        sizes = processes.total(torch.tensor([len(p.row) for p in self._positives], device=processes.device)).tolist()
        for size, name in zip(sizes, PARTS, strict=True):
            if size == 0:
                raise ValueError(f"{shard.folder}: no edge is in the {name} part, so the graph has too few edges")
        self._num_train = sizes[0]
        edges = _KnownEdges(own, halo, halo_numbers, first)
        self._negatives = Negatives(processes, parts, seed, shard.directory(), self._offsets, edges)
        self._train = self._fetched(self._positives[0].row, self._positives[0].other)
        self._fixed = [self._drawn(number, 0) for number in range(3)]
        self._held_out = [
            self._fetched(torch.cat([p.row, n.row]), torch.cat([p.other, n.other]))
            for p, n in zip(self._positives[1:], self._fixed[1:], strict=True)
        ]

    def embeddings(self, model: torch.nn.Module) -> Tensor:
        """Returns the unit-length embeddings of the nodes of this process."""
        return F.normalize(self.outputs(model), dim=-1)

    def loss(self, model: torch.nn.Module, epoch: int = 0) -> Tensor:
        negatives = self._fixed[0] if self.negatives == "fixed" else self._drawn(0, epoch)
        missing = self._fetched(negatives.row, negatives.other)
        embeddings = self.embeddings(model)
        linked, unlinked = self._train.scores(embeddings), missing.scores(embeddings)
        # The cross-entropy of a one is softplus(-s), that of a zero softplus(s).
        return (F.softplus(-linked).sum() + F.softplus(unlinked).sum()) / (2 * self._num_train)

    def evaluate(self, model: torch.nn.Module) -> Scores:
        with evaluating(model):
            embeddings = self.embeddings(model)
            scores: Scores = {}
            for i, part in enumerate(("val", "test")):
                values = self._held_out[i].scores(embeddings).double()
                linked = torch.arange(len(values), device=values.device) < len(self._positives[i + 1].row)
                rows = self.processes.gather_rows(torch.stack([values, linked.to(values.dtype)], dim=1))
                found = None
                if rows is not None:
                    score, is_edge = torch.cat(rows).unbind(dim=1)
                    found = link_scores(torch.cat([score[is_edge == 1], score[is_edge == 0]]))
                scores[part] = self.processes.from_first(found)
        return scores

    def pairs(self, part: str, epoch: int | None = None) -> tuple[Tensor, Tensor]:
        """Returns the edges and the negatives of a part that this process scores, as places in the node table.

        Args:
            part (str): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            epoch (int, optional): The epoch of training negatives that are fresh. (default: those drawn once)
        """
        number = PARTS.index(part)
        known = self._positives[number]
        drawn = self._fixed[number] if epoch is None or number else self._drawn(0, epoch)
        return torch.stack([known.low, known.high]), torch.stack([drawn.low, drawn.high])

    def _drawn(self, number: int, epoch: int) -> "Query":
        known = self._positives[number]
        return self._negatives.draw(number, known.low, known.high, epoch)

    def _fetched(self, row: Tensor, other: Tensor) -> "FetchedPairs":
        numbers, place = other.unique(return_inverse=True)
        owner = torch.searchsorted(self._offsets, numbers, right=True) - 1
        exchange = RowExchange.asking(self.processes, owner, numbers - self._offsets[owner])
        return FetchedPairs(row, place, exchange)


class Positives(NamedTuple):
    """Edges that a process scores: its own row, the number of the other node, both places in the table, the part."""

    row: Tensor
    other: Tensor
    low: Tensor
    high: Tensor
    part: Tensor

    def only(self, number: int) -> "Positives":
        """Returns the edges of a part."""
        return Positives(*(values[self.part == number] for values in self))


class FetchedPairs(NamedTuple):
    """Pairs whose second embeddings are fetched from where they are.

    Args:
        row (torch.Tensor): The first node of each pair, among the own rows.
        place (torch.Tensor): The second one, among the rows received.
        exchange (RowExchange): Brings them.
    """

    row: Tensor
    place: Tensor
    exchange: RowExchange

    def scores(self, embeddings: Tensor) -> Tensor:
        """Returns the dot product of the two embeddings of each pair."""
        received = self.exchange(embeddings)
        return (embeddings.index_select(0, self.row) * received.index_select(0, self.place)).sum(dim=-1)


class _KnownEdges:
    """Tells whether a row of this process has an edge to a node, by number."""

    def __init__(self, own: Entries, halo: Entries, halo_numbers: Tensor, first: int) -> None:
        self._own, self._halo, self._numbers, self._first = own, halo, halo_numbers, first

    def __call__(self, row: Tensor, number: Tensor) -> Tensor:
        local = number - self._first
        inside = (local >= 0) & (local < self._own.crow.numel() - 1)
        place = torch.searchsorted(self._numbers, number)
        near = place.clamp(max=max(self._numbers.numel() - 1, 0))
        known = self._numbers[near] == number if self._numbers.numel() else torch.zeros_like(inside)
        found = has_entry(self._own.crow, self._own.col, row, local) & inside
        return found | (has_entry(self._halo.crow, self._halo.col, row, near) & known & ~inside)


def _positives(
    entries: Entries, rows: Tensor, columns: Tensor, numbers: Tensor, parts: PairParts
) -> tuple[Positives, Tensor]:
    """Returns the edges that begin at the lower place, and which entries are edges of training."""
    row, col = entries.row(), entries.col.long()
    low, high = rows[row], columns[col]
    part = parts(low, high)
    first = low < high
    found = Positives(row[first], numbers[col[first]], low[first], high[first], part[first])
    return found, part == 0
