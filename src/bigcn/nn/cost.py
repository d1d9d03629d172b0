"""Which way to compute a layer: decided by counting, not by trying."""

import torch
from torch import Tensor

from bigcn.feature_graphs import FeatureGraph
from bigcn.nn.two_way_filter import TwoWayFilter
from bigcn.sparse import SparseMatrix, is_sparse, sparse_from_tensor

#: On a CPU, dense features of which a smaller share than this is not zero are multiplied as a sparse matrix: about the
#: break-even of forward and backward products with a narrow block.
SPARSE_BELOW = 0.2
#: Narrower features are not worth counting.
WIDE_FEATURES = 128
#: What an entry of a sparse or elementwise operation costs, in multiplications of a dense product: the first wait for
#: memory, the second do not.
SPARSE_COST = 8


def weights_first(
    graph: FeatureGraph, filter: TwoWayFilter, x: Tensor, edges: int, out_channels: int, num_nodes: int | None = None
) -> bool:
    """Tells whether it is cheaper to filter the weights than the features.

    Args:
        graph (FeatureGraph): The feature graph.
        filter (TwoWayFilter): The filter.
        x (torch.Tensor): The features, dense.
        edges (int): The number of edges of the node graph.
        out_channels (int): The width of the weights.
        num_nodes (int, optional): The number of nodes, where other processes hold the rest of the rows: all of them
            must come to the same decision. (default: :obj:`None`)
    """
    d, h = x.size(-1), out_channels
    rows = x.numel() // d if num_nodes is None else num_nodes
    edges = edges * (x.numel() // d // max(x.size(-2), 1)) if num_nodes is None else edges
    blocks, feature_side, node_side = _sides(graph, filter, rows, edges)
    weights = (feature_side + node_side + rows * d * blocks) * h
    features = feature_side * rows + node_side * d + rows * d * h
    return bool(weights <= features)


def filter_once(graph: FeatureGraph, filter: TwoWayFilter, x: Tensor, edges: int, entries: int | None) -> bool:
    """Tells whether one product with features that were filtered before takes less than filtering the weights.

    Args:
        graph (FeatureGraph): The feature graph.
        filter (TwoWayFilter): The filter.
        x (torch.Tensor): The features, dense.
        edges (int): The number of edges of the node graph.
        entries (int, optional): How many features are not zero, if they would be multiplied as a sparse matrix; once
            filtered they are dense.
    """
    rows, d = x.shape
    blocks, feature_side, node_side = _sides(graph, filter, rows, edges)
    product = rows * d if entries is None else SPARSE_COST * entries
    return bool(rows * d < feature_side + node_side + product * blocks)


def _sides(graph: FeatureGraph, filter: TwoWayFilter, rows: int, edges: int) -> tuple[int, float, float]:
    """Returns the number of blocks and, per column of what is filtered, the cost of products with the feature graph,
    and of hops on the node graph and their mixing.
    """
    blocks = graph.num_blocks(filter.iterations)
    feature_side = graph.product_cost() * (1 if blocks <= 2 else filter.num_feature_hops)
    return blocks, feature_side, SPARSE_COST * filter.num_hops * (edges + blocks * rows)


def sparse_or_none(x: Tensor) -> SparseMatrix | None:
    """Returns features as a sparse matrix if that is how they are given, or if few of them are not zero."""
    if is_sparse(x):
        return sparse_from_tensor(x)
    few = int(torch.count_nonzero(x)) < SPARSE_BELOW * x.numel()
    return sparse_from_tensor(x.to_sparse_csr()) if few else None
