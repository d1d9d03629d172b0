"""What a practitioner would frown at in tables that are read a piece at a time."""

from collections.abc import Iterator, Sequence

import numpy as np

from bigcn.datasets.own.columns import Values
from bigcn.datasets.own.graph import Column
from bigcn.datasets.own.summary import about_columns, about_edges, about_homophily, about_labels, label_agreement
from bigcn.distributed.assign import DiskGraph


def warnings_about(
    graph: DiskGraph,
    y: np.ndarray | None,
    classes: Sequence[str],
    cells: Iterator[tuple[Column, Values]],
) -> Iterator[str]:
    """Gives the warnings of the first look, in its words, while the columns are written one after the other.

    Args:
        graph (DiskGraph): The graph.
        y (numpy.ndarray, optional): The numbers of the classes, -1 for none.
        classes (Sequence[str]): The names of the classes.
        cells (Iterator): Each column with its cells; it is used up, and only one of them is held.
    """
    isolated = int((np.diff(graph.crow) == 0).sum())
    yield from about_edges(int(graph.crow[-1]) // 2, isolated, graph.num_nodes)
    if y is not None:
        yield from about_homophily(*label_agreement(_ends(graph, y), len(classes)))
    yield from about_columns(cells, y, len(classes))
    if y is not None:
        counts = np.bincount(y[y >= 0], minlength=len(classes)).tolist()
        yield from about_labels(dict(zip(classes, counts, strict=True)))


def _ends(graph: DiskGraph, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Gives the classes at both ends of each edge, which stands there in both directions."""
    for start, stop in graph.chunks():
        row = np.repeat(np.arange(start, stop), np.diff(graph.crow[start : stop + 1]))
        col = np.asarray(graph.col[graph.crow[start] : graph.crow[stop]])
        once = row < col
        yield y[row[once]], y[col[once]]
