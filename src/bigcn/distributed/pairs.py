"""Pairs of nodes, divided and drawn alike by any number of processes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bigcn.distributed.counters import below, draw, fractions, key
from bigcn.distributed.exchange import ask_counts
from bigcn.distributed.processes import Processes

PART_STREAM, NEGATIVE_STREAM = 101, 102
#: After so many draws without a pair that fits, the graph has none left.
MOST_ATTEMPTS = 100_000
#: How often pairs that turned out to be edges are drawn again, which takes messages between processes.
MOST_ROUNDS = 1000
TOO_DENSE = "the graph has too few pairs of nodes that are not linked to draw from"


class PairParts:
    """Says which part a pair of nodes belongs to: 0 for training, 1 for validation, 2 for test.

    Args:
        seed (int): The seed.
        val_share, test_share (float): The shares of validation and test.
    """

    def __init__(self, seed: int, val_share: float, test_share: float) -> None:
        self._stream = key(PART_STREAM, seed)
        self._val, self._test = val_share, test_share

    def __call__(self, one: Tensor, other: Tensor) -> Tensor:
        """Returns the part of each pair, whose two places in the node table may stand in either order."""
        place = fractions(draw(self._stream, torch.minimum(one, other), torch.maximum(one, other)))
        held_out = torch.where(place < self._val, 1, 2)
        return torch.where(place < self._val + self._test, held_out, 0)


class Query(NamedTuple):
    """Pairs on their way to where their first node lives.

    Args:
        row (torch.Tensor): The first node, among the rows of the process it lives on.
        other (torch.Tensor): The number of the second one.
        low, high (torch.Tensor): Their places in the node table.
        key_low, key_high (torch.Tensor): The edge that the pair was drawn for.
        attempt (torch.Tensor): How many draws it took.
    """

    row: Tensor
    other: Tensor
    low: Tensor
    high: Tensor
    key_low: Tensor
    key_high: Tensor
    attempt: Tensor

    def chosen(self, which: Tensor) -> "Query":
        """Returns the pairs that a mask or an order chooses."""
        return Query(*(values[which] for values in self))


class Negatives:
    """Draws a pair that is no edge for each edge of a part.

    The pair is a function of the seed, the epoch, the edge and the number of the attempt. It is sent to the process of
    its first node, which knows whether it is an edge; if so, that process draws the next attempt.

    Args:
        processes (Processes): The processes.
        parts (PairParts): Which part a pair belongs to.
        seed (int): The seed.
        directory (numpy.ndarray): The number of each node, by its place in the node table.
        offsets (torch.Tensor): Where the numbers of each process begin.
        is_edge (Callable): Tells of a row of this process and the number of another node whether they are linked.
    """

    def __init__(
        self,
        processes: Processes,
        parts: PairParts,
        seed: int,
        directory: np.ndarray,
        offsets: Tensor,
        is_edge: Callable[[Tensor, Tensor], Tensor],
    ) -> None:
        self._processes, self._parts, self._seed = processes, parts, seed
        self._directory, self._offsets, self._is_edge = directory, offsets, is_edge

    def draw(self, part: int, low: Tensor, high: Tensor, epoch: int) -> Query:
        """Returns the pairs whose first node lives here, drawn for the edges of all processes.

        Args:
            part (int): Which part they are for.
            low, high (torch.Tensor): The edges of this process in that part, as places in the node table.
            epoch (int): The epoch.
        """
        stream = key(NEGATIVE_STREAM, self._seed, epoch)
        accepted: list[Query] = []
        waiting = self._next(stream, part, low, high, torch.zeros_like(low))
        for _ in range(MOST_ROUNDS):  # the same on all processes
            arrived = self._send(waiting)
            linked = self._is_edge(arrived.row, arrived.other)
            accepted.append(arrived.chosen(~linked))
            again = arrived.chosen(linked)
            if self._processes.count(len(again.row)) == 0:
                return Query(*(torch.cat(values) for values in zip(*accepted, strict=True)))
            waiting = self._next(stream, part, again.key_low, again.key_high, again.attempt)
        raise ValueError(TOO_DENSE)

    def _next(self, stream: int, part: int, key_low: Tensor, key_high: Tensor, attempt: Tensor) -> Query:
        """Draws on until each pair is one of two nodes and belongs to the part."""
        n = len(self._directory)
        one, other = torch.empty_like(key_low), torch.empty_like(key_low)
        attempt = attempt.clone()
        open_ = torch.arange(key_low.numel(), device=key_low.device)
        while open_.numel():
            counters = key_low[open_], key_high[open_], attempt[open_]
            first = below(draw(key(stream, 0), *counters), n)
            second = below(draw(key(stream, 1), *counters), n)
            attempt[open_] += 1
            one[open_], other[open_] = first, second
            fits = (first != second) & (self._parts(first, second) == part)
            open_ = open_[~fits]
            if open_.numel() and int(attempt.max()) > MOST_ATTEMPTS:
                raise ValueError(TOO_DENSE)
        low, high = torch.minimum(one, other), torch.maximum(one, other)
        numbers, others = self._numbers(low), self._numbers(high)
        return Query(numbers, others, low, high, key_low, key_high, attempt)

    def _numbers(self, places: Tensor) -> Tensor:
        return torch.from_numpy(self._directory[places.cpu().numpy()]).to(places.device)

    def _send(self, pairs: Query) -> Query:
        """Sends pairs to where their first node lives."""
        owner = torch.searchsorted(self._offsets, pairs.row, right=True) - 1
        order = owner.argsort(stable=True)
        send = torch.bincount(owner, minlength=self._processes.size).tolist()
        receive = ask_counts(self._processes, send)
        table = torch.stack(list(pairs.chosen(order)), dim=1)
        arrived = self._processes.exchange(table, send, receive, "pairs")()
        received = Query(*(column.contiguous() for column in arrived.unbind(dim=1)))
        return received._replace(row=received.row - self._offsets[self._processes.rank])


def has_entry(crow: Tensor, col: Tensor, row: Tensor, wanted: Tensor) -> Tensor:
    """Tells whether rows of a CSR matrix have entries in given columns, by bisection within each row.

    Args:
        crow, col (torch.Tensor): The matrix, columns ascending within a row.
        row (torch.Tensor): The row of each question.
        wanted (torch.Tensor): The column of each question.
    """
    if col.numel() == 0 or row.numel() == 0:
        return torch.zeros_like(row, dtype=torch.bool)
    low, end = crow[row].long(), crow[row + 1].long()
    high = end.clone()
    for _ in range(int((end - low).max()).bit_length()):
        middle = (low + high) // 2
        smaller = (low < high) & (col[middle.clamp(max=col.numel() - 1)] < wanted)
        low, high = torch.where(smaller, middle + 1, low), torch.where(smaller, high, middle.minimum(high))
    return (low < end) & (col[low.clamp(max=col.numel() - 1)] == wanted)
