"""Sorting edges that do not fit into memory: into buckets on disk, and bucket by bucket into rows."""

from pathlib import Path
from typing import BinaryIO

import numpy as np

from bigcn.distributed.arrays import ArrayWriter, map_array
from bigcn.distributed.assign import DiskGraph

#: The entries of a bucket that are sorted in memory.
BUCKET = 4_000_000
MOST_BUCKETS = 256


class EdgeSorter:
    """Takes the edges of a graph a few at a time, in any order, and gives the graph in CSR form.

    Directions are dropped, self-loops removed, and duplicates merged with their weights added, as
    :func:`bigcn.read_graph` does. Memory grows with the nodes and the size of a bucket, not with the edges.

    Args:
        folder (path): A folder to work in, where the graph stays.
        num_nodes (int): The number of nodes.
        expected (int): About how many edges there will be.
        weighted (bool): Whether edges have weights.
        bucket (int, optional): The entries of a bucket. (default: 4,000,000)
    """

    def __init__(self, folder: Path, num_nodes: int, expected: int, weighted: bool, bucket: int = BUCKET) -> None:
        self.folder, self.num_nodes, self.weighted = folder, num_nodes, weighted
        self.self_loops = self.duplicates = 0
        count = min(max(1, -(-2 * expected // bucket)), MOST_BUCKETS, num_nodes)
        self._step = -(-num_nodes // count)
        index = np.int32 if num_nodes < 2**31 else np.int64
        fields = [("row", index), ("col", index)] + ([("weight", np.float64)] if weighted else [])
        self._record = np.dtype(fields)
        self._files: list[BinaryIO] = [self._path(i).open("wb") for i in range(-(-num_nodes // self._step))]

    def add(self, source: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Takes some edges.

        Args:
            source, target (numpy.ndarray): Their ends, as places in the node table.
            weight (numpy.ndarray, optional): Their weights. (default: :obj:`None`)
        """
        proper = source != target
        self.self_loops += int((~proper).sum())
        source, target = source[proper], target[proper]
        entries = np.empty(2 * len(source), dtype=self._record)
        # One after the other, so that the weights of a pair add up in the same order in both directions.
        entries["row"][::2], entries["row"][1::2] = source, target
        entries["col"][::2], entries["col"][1::2] = target, source
        if weight is not None:
            entries["weight"] = np.repeat(weight[proper], 2)
        bucket = entries["row"] // self._step
        order = np.argsort(bucket, kind="stable")
        bounds = np.searchsorted(bucket[order], np.arange(len(self._files) + 1))
        for i, file in enumerate(self._files):
            if bounds[i] < bounds[i + 1]:
                file.write(entries[order[bounds[i] : bounds[i + 1]]].data)

    def finish(self) -> DiskGraph:
        """Sorts the buckets and returns the graph, its long arrays memory-mapped."""
        crow = np.zeros(self.num_nodes + 1, dtype=np.int64)
        columns = ArrayWriter(self.folder / "col.npy", self._record["col"])
        weights = ArrayWriter(self.folder / "weight.npy", np.float32) if self.weighted else None
        for i, file in enumerate(self._files):
            file.close()
            entries = np.fromfile(self._path(i), dtype=self._record)
            self._path(i).unlink()
            first = i * self._step
            code = (entries["row"].astype(np.int64) - first) * self.num_nodes + entries["col"]
            if weights is None:
                merged = np.unique(code)
            else:
                merged, place = np.unique(code, return_inverse=True)
                total = np.bincount(place, entries["weight"], minlength=len(merged)).astype(np.float32)
                if not np.isfinite(total).all():
                    raise ValueError("the weights of an edge that stands there several times add up to infinity")
                weights.append(total)
            self.duplicates += len(entries) - len(merged)
            columns.append(merged % self.num_nodes)
            rows = np.bincount(merged // self.num_nodes, minlength=min(self._step, self.num_nodes - first))
            crow[first + 1 : first + 1 + len(rows)] = rows
        columns.close()
        if weights is not None:
            weights.close()
        self.duplicates //= 2
        np.cumsum(crow, out=crow)
        weight = map_array(self.folder / "weight.npy") if weights is not None else None
        return DiskGraph(crow, map_array(self.folder / "col.npy"), weight)

    def _path(self, i: int) -> Path:
        return self.folder / f"bucket-{i}.bin"
