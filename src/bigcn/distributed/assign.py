"""Which part each node goes to."""

from typing import Literal, NamedTuple

import numpy as np

Method = Literal["contiguous", "random", "neighbours"]
METHODS: tuple[Method, ...] = ("neighbours", "contiguous", "random")
#: How much larger than the average a part may be.
SLACK = 1.05
#: The entries of the graph that are looked at in one go, which bounds the memory.
CHUNK = 2_000_000
PASSES = 12


class DiskGraph(NamedTuple):
    """A whole symmetric graph in CSR form, its long arrays memory-mapped.

    Args:
        crow (numpy.ndarray): Where each row begins; in memory.
        col (numpy.ndarray): The columns, ascending within a row.
        weight (numpy.ndarray, optional): The weights. (default: :obj:`None`)
    """

    crow: np.ndarray
    col: np.ndarray
    weight: np.ndarray | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.crow) - 1

    def chunks(self, limit: int = CHUNK) -> list[tuple[int, int]]:
        """Returns ranges of rows with so many entries at most, or one row where that alone has more."""
        bounds, start = [], 0
        while start < self.num_nodes:
            end = int(np.searchsorted(self.crow, self.crow[start] + limit, side="right")) - 1
            end = min(max(end, start + 1), self.num_nodes)
            bounds.append((start, end))
            start = end
        return bounds

    def row_numbers(self, start: int, end: int) -> np.ndarray:
        """Returns the row of each entry in a range of rows, counted from its first."""
        return np.repeat(np.arange(end - start), np.diff(self.crow[start : end + 1]))


def assign(graph: DiskGraph, parts: int, method: Method = "neighbours", seed: int = 0) -> np.ndarray:
    """Returns the part of each node, every part with one node at least.

    :obj:`"contiguous"` cuts the node table into equal pieces; :obj:`"random"` deals the nodes out at random, equally;
    :obj:`"neighbours"` keeps neighbours together: from a breadth-first order cut into pieces, it moves nodes to the
    part that most of their neighbours are in, weighed by the room left there, in a few passes over the edges (linear
    deterministic greedy, restreamed). Memory grows with the nodes, not with the edges.

    Args:
        graph (DiskGraph): The graph.
        parts (int): The number of parts.
        method (str, optional): How. (default: :obj:`"neighbours"`)
        seed (int, optional): The seed of :obj:`"random"`. (default: :obj:`0`)
    """
    n = graph.num_nodes
    if not 1 <= parts <= n:
        raise ValueError(f"'--parts' must be between 1 and the number of nodes, {n:,} (got {parts})")
    if method not in METHODS:
        raise ValueError(f"'--method' must be one of {', '.join(METHODS)} (got {method!r})")
    if method == "contiguous" or parts == 1:
        return _cut(np.arange(n), parts)
    if method == "random":
        return _cut(np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable"), parts)
    owner = _cut(_breadth_first(graph), parts)
    best, fewest = owner, _crossing(graph, owner)
    for _ in range(PASSES):
        owner = _restream(graph, owner.copy(), parts)
        crossing = _crossing(graph, owner)
        if crossing < fewest:
            improvement, best, fewest = fewest - crossing, owner, crossing
            if improvement < 0.002 * fewest:
                break
        else:
            break
    return best


def _cut(order: np.ndarray, parts: int) -> np.ndarray:
    """Cuts an order of the nodes into equal pieces."""
    owner = np.empty(len(order), dtype=np.int32)
    owner[order] = np.arange(len(order)) * parts // len(order)
    return owner


def _breadth_first(graph: DiskGraph) -> np.ndarray:
    """Returns all nodes in breadth-first order, from the first of each component."""
    n = graph.num_nodes
    order = np.empty(n, dtype=np.int64)
    seen = np.diff(graph.crow) == 0
    alone = np.flatnonzero(seen)
    filled, next_start = 0, 0
    while filled < n - len(alone):
        while seen[next_start]:
            next_start += 1
        frontier = np.array([next_start])
        seen[next_start] = True
        while len(frontier):
            order[filled : filled + len(frontier)] = frontier
            filled += len(frontier)
            reached = []
            for piece in np.array_split(frontier, 1 + len(frontier) // 100_000):
                found = np.unique(_neighbours(graph, piece))
                found = found[~seen[found]]
                seen[found] = True
                reached.append(found)
            frontier = np.concatenate(reached)
    order[filled:] = alone
    return order


def _neighbours(graph: DiskGraph, nodes: np.ndarray) -> np.ndarray:
    """Returns the neighbours of nodes, one list after the other."""
    starts, counts = graph.crow[nodes], graph.crow[nodes + 1] - graph.crow[nodes]
    ends = np.cumsum(counts)
    places = np.arange(int(ends[-1])) + np.repeat(starts - (ends - counts), counts)
    return np.asarray(graph.col[places])


def _crossing(graph: DiskGraph, owner: np.ndarray) -> int:
    """Returns how many entries join different parts."""
    total = 0
    for start, end in graph.chunks():
        columns = np.asarray(graph.col[graph.crow[start] : graph.crow[end]])
        total += int((np.repeat(owner[start:end], np.diff(graph.crow[start : end + 1])) != owner[columns]).sum())
    return total


def _restream(graph: DiskGraph, owner: np.ndarray, parts: int) -> np.ndarray:
    """Moves each node, a few at a time, to where its neighbours are as long as there is room."""
    n = graph.num_nodes
    capacity = max(int(np.ceil(SLACK * n / parts)), 1)
    sizes = np.bincount(owner, minlength=parts)
    step = max(1, min(16_384, n // (8 * parts)))
    for start in range(0, n, step):
        end = min(start + step, n)
        columns = np.asarray(graph.col[graph.crow[start] : graph.crow[end]])
        cells = graph.row_numbers(start, end) * parts + owner[columns]
        near = np.bincount(cells, minlength=(end - start) * parts).reshape(end - start, parts)
        # The room left weighs the neighbours; a node without any pull stays.
        score = near * np.maximum(1 - sizes / capacity, 0)
        here = owner[start:end]
        local = np.arange(end - start)
        score[local, here] = near[local, here] * np.maximum(1 - (sizes[here] - 1) / capacity, 0) + 1e-9
        wanted = score.argmax(axis=1)
        moving = np.flatnonzero(wanted != here)
        gain = near[moving, wanted[moving]] - near[moving, here[moving]]
        moving = moving[np.argsort(-gain, kind="stable")]
        moving = moving[_turn(wanted[moving]) < (capacity - sizes)[wanted[moving]]]
        moving = moving[_turn(here[moving]) < (sizes - 1)[here[moving]]]  # no part is emptied
        sizes += np.bincount(wanted[moving], minlength=parts) - np.bincount(here[moving], minlength=parts)
        here[moving] = wanted[moving]
    return owner


def _turn(parts: np.ndarray) -> np.ndarray:
    """Returns how often the same part stands before each place."""
    order = np.argsort(parts, kind="stable")
    ranked = parts[order]
    turn = np.empty(len(parts), dtype=np.int64)
    turn[order] = np.arange(len(parts)) - np.searchsorted(ranked, ranked)
    return turn
