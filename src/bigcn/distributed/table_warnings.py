"""What a practitioner would frown at in tables that are read a piece at a time."""

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from bigcn.datasets.own import summary
from bigcn.datasets.own.columns import Values
from bigcn.datasets.own.graph import Column
from bigcn.distributed.assign import DiskGraph
from bigcn.distributed.node_columns import Written


def warnings_about(
    graph: DiskGraph,
    y: np.ndarray | None,
    classes: Sequence[str],
    cells: Iterator[tuple[Column, Values]],
    written: Written,
) -> list[str]:
    """Returns the warnings of the first look, in its words, while the columns are written one after the other.

    Args:
        graph (DiskGraph): The graph.
        y (numpy.ndarray, optional): The numbers of the classes, -1 for none.
        classes (Sequence[str]): The names of the classes.
        cells (Iterator): Each column with its cells; it is used up, and only one of them is held.
        written (Written): What became of the columns, when they are used up.
    """
    isolated = int((np.diff(graph.crow) == 0).sum())
    said = list(summary._about_edges(int(graph.crow[-1]) // 2, isolated, graph.num_nodes))
    if y is not None:
        said += summary._about_homophily(*label_agreement(graph, y, len(classes)))
    columns, values = _in_turns(cells)
    said += summary._about_columns(columns, values, y, len(classes))  # type: ignore[arg-type]
    missing = written.missing / max(1, graph.num_nodes * len(written.columns))
    if missing > summary.MUCH_MISSING:
        said.append(f"{missing:.0%} of all feature values are missing.")
    if y is not None:
        counts = np.bincount(y[y >= 0], minlength=len(classes)).tolist()
        said += summary._about_labels(dict(zip(classes, counts, strict=True)))
    return said


def label_agreement(graph: DiskGraph, y: np.ndarray, num_classes: int) -> tuple[float | None, float | None, int]:
    """Returns the share of labelled edges that join the same class, what chance would give, and their number."""
    same = 0
    ends = np.zeros(num_classes, dtype=np.int64)
    for start, stop in graph.chunks():
        one = np.repeat(y[start:stop], np.diff(graph.crow[start : stop + 1]))
        other = y[np.asarray(graph.col[graph.crow[start] : graph.crow[stop]])]
        both = (one >= 0) & (other >= 0)
        same += int((one == other)[both].sum())
        ends += np.bincount(one[both], minlength=num_classes)
    # Every edge stands there in both directions.
    total = int(ends.sum())
    if total == 0:
        return None, None, 0
    return same / total, float(((ends / total) ** 2).sum()), total // 2


def _in_turns(pairs: Iterator[tuple[Column, Values]]) -> tuple[Iterator[Column], Iterator[Values]]:
    """Divides pairs for one who takes a column and its cells in turns; no others are kept."""
    held: deque[Values] = deque()

    def columns() -> Iterator[Column]:
        for column, values in pairs:
            held.append(values)
            yield column

    def cells() -> Iterator[Values]:
        while held:
            yield held.popleft()

    return columns(), cells()
