"""Partitioning a graph that is in memory."""

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from bigcn.checks import check_finite
from bigcn.datasets.splits import Split
from bigcn.distributed.assign import DiskGraph, Method, assign
from bigcn.distributed.shards import SPLIT, Manifest
from bigcn.distributed.writing import NodeColumns, new_folder, write_shards
from bigcn.files import PathLike
from bigcn.node_graphs import edges_of
from bigcn.sparse import is_sparse


def partition_data(
    data: Data,
    folder: PathLike,
    parts: int,
    method: Method | np.ndarray = "neighbours",
    split: Split | None = None,
    seed: int = 0,
    overwrite: bool = False,
    name: str = "graph",
) -> Manifest:
    """Writes shards of a graph in memory; see :func:`~bigcn.distributed.partition_tables` for one that is not.

    Args:
        data (Data): The graph: features :obj:`x`, dense or sparse, and edges in both directions, without self-loops or
            duplicates; :obj:`edge_weight` and labels :obj:`y` if there are any.
        folder (str or path): Where to write them.
        parts (int): How many, one for each process.
        method (str or numpy.ndarray, optional): See :func:`~bigcn.distributed.assign.assign`, or the part of each
            node. (default: :obj:`"neighbours"`)
        split (Split, optional): The training, validation and test nodes. (default: :obj:`None`)
        seed (int, optional): The seed of :obj:`"random"`. (default: :obj:`0`)
        overwrite (bool, optional): If set to :obj:`True`, replaces older shards. (default: :obj:`False`)
        name (str, optional): What to call the graph. (default: :obj:`"graph"`)
    """
    graph = graph_of(data)
    owner = assign(graph, parts, method, seed) if isinstance(method, str) else method.astype(np.int32)
    assert data.x is not None
    check_finite(data.x)
    sparse = is_sparse(data.x)
    nodes = NodeColumns(_blocks(data.x), data.x.size(1), sparse, str(data.x.dtype).removeprefix("torch."))
    classes = 0
    if isinstance(data.y, Tensor):
        nodes.labels = _labels_of(data.y, graph.num_nodes)
        classes = int(nodes.labels.max(initial=-1)) + 1
    if split is not None:
        nodes.split = np.full(graph.num_nodes, -1, dtype=np.int8)
        for number, part in enumerate(SPLIT):
            nodes.split[getattr(split, part).numpy()] = number
    with new_folder(folder, overwrite) as draft:
        about = {"method": method if isinstance(method, str) else "given", "name": name}
        return write_shards(draft, graph, owner, parts, nodes, classes=tuple(map(str, range(classes))), **about)


def _labels_of(y: Tensor, num_nodes: int) -> np.ndarray:
    if y.is_floating_point() or y.is_complex() or y.dim() != 1 or y.numel() != num_nodes:
        raise ValueError(f"'data.y' must have one class number for each node (got {tuple(y.shape)} of {y.dtype})")
    return y.cpu().numpy()


def graph_of(data: Data) -> DiskGraph:
    """Returns the edges of a graph in CSR form, refusing one that is not symmetric and tidy."""
    edges, weight = edges_of(data.edge_index, data.edge_weight)
    n = int(data.num_nodes or 0)
    row, col = edges.cpu().numpy()
    order = np.lexsort((col, row))
    row, col = row[order], col[order]
    values = None if weight is None else weight.cpu().numpy()[order]
    back = np.lexsort((row, col))
    tidy = np.array_equal(row[back], col) and np.array_equal(col[back], row) and not (row == col).any()
    if not tidy or (len(row) > 1 and ((np.diff(row) == 0) & (np.diff(col) == 0)).any()):
        raise ValueError("'data' must have every edge in both directions, no self-loops and no duplicates")
    if values is not None and not np.array_equal(values[back], values):
        raise ValueError("'data' must have the same weight in both directions of an edge")
    crow = np.zeros(n + 1, dtype=np.int64)
    crow[1:] = np.cumsum(np.bincount(row, minlength=n))
    return DiskGraph(crow, col, values)


def _blocks(x: Tensor) -> list[np.ndarray | csr_array]:
    x = x.detach().cpu()
    if not is_sparse(x):
        return [x.numpy()]
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    parts = x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()
    return [csr_array(parts, shape=tuple(x.shape))]
