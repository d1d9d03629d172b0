r"""The paper's fixed feature graph: features whose columns are similar are linked."""

import torch
from torch import Tensor

from bigcn.feature_graphs.base import FeatureGraph, Operand
from bigcn.feature_graphs.stored import normalize_dense, normalize_sparse, stored_diagonal, stored_product
from bigcn.node_graphs import total_over_nodes
from bigcn.sparse import SparseMatrix, is_sparse, sparse_from_tensor

#: By how much an entry must exceed the mean: features that are all alike tie with it, and rounding must not decide.
CLEARLY = 1 + 1e-6
#: Beyond this many features the graph is sparse: each feature keeps its strongest neighbours.
WIDE = 4096


class CorrelationGraph(FeatureGraph):
    r"""Links features whose columns point the same way.

    The cosine similarities between columns go through a softmax per row, an edge exists where either of the two
    entries of a pair exceeds the mean of that matrix (which is :math:`1/d`), and the graph is normalised with
    self-loops. Of a wide table each feature keeps its strongest neighbours alone, found without a dense
    :math:`d \times d` matrix.

    A graph made by name is computed from the input of its layer in each forward pass, without gradient; one made by
    :meth:`from_features` is fixed and part of the :obj:`state_dict`.

    Args:
        num_features (int): The number of features, or :obj:`-1` to take it from the first input.
        self_loops (bool, optional): If set to :obj:`False`, adds no self-loops. (default: :obj:`True`)
        neighbours (int, optional): If given, each feature chooses at most this many neighbours, and the graph is
            sparse. (default: all, or 32 beyond 4,096 features)
    """

    matrix: Tensor | None
    value: Tensor | None
    crow: Tensor | None
    col: Tensor | None

    def __init__(self, num_features: int, self_loops: bool = True, neighbours: int | None = None) -> None:
        super().__init__(num_features)
        if neighbours is not None and neighbours < 1:
            raise ValueError(f"'neighbours' must be at least 1 (got {neighbours})")
        self.self_loops = self_loops
        self.neighbours = neighbours
        for name in ("matrix", "value", "crow", "col"):
            self.register_buffer(name, None)

    @classmethod
    def from_features(cls, x: Tensor, self_loops: bool = True, neighbours: int | None = None) -> "CorrelationGraph":
        """Computes the graph once and keeps it.

        Args:
            x (torch.Tensor): The features, dense or sparse.
            self_loops (bool, optional): See :class:`CorrelationGraph`. (default: :obj:`True`)
            neighbours (int, optional): See :class:`CorrelationGraph`. (default: :obj:`None`)
        """
        graph = cls(x.size(-1), self_loops, neighbours)
        operand = graph.operand(x)
        if len(operand) == 1:
            graph.matrix = operand[0]
        else:
            graph.value, graph.crow, graph.col = operand
        return graph

    @property
    def from_input(self) -> bool:  # type: ignore[override]
        return self.matrix is None and self.value is None

    @property
    def capturable(self) -> bool:  # type: ignore[override]
        return not self.from_input or (self.neighbours is None and self.num_features <= WIDE)

    def operand(self, x: Tensor | None = None, hop: object = None) -> Operand:
        if self.matrix is not None:
            return (self.matrix,)
        if self.value is not None and self.crow is not None and self.col is not None:
            return self.value, self.crow, self.col
        if x is None:
            raise ValueError("a correlation graph made by name is computed from features: give 'x'")
        neighbours = 32 if self.neighbours is None and x.size(-1) > WIDE else self.neighbours
        if neighbours is None:
            return correlation_adjacency(x, self.self_loops, hop)
        return nearest_correlations(x, self.self_loops, neighbours, hop=hop)

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return stored_product(operand, block)

    def diagonal(self, operand: Operand) -> Tensor:
        return stored_diagonal(operand)


@torch.no_grad()
def correlation_adjacency(x: Tensor, self_loops: bool = True, hop: object = None) -> Operand:
    """Returns the normalised adjacency of :class:`CorrelationGraph` for the given features."""
    similarity = cosine_similarity(x, hop)
    share = similarity.softmax(dim=1)
    linked = share > CLEARLY / share.size(1)
    linked = linked | linked.t()
    eye = torch.eye(share.size(1), dtype=torch.bool, device=share.device)
    linked = linked | eye if self_loops else linked & ~eye
    if _worth_compressing(linked):
        row, col = linked.nonzero(as_tuple=True)
        return normalize_sparse(row, col, torch.ones(len(row), dtype=similarity.dtype), linked.size(0))
    return normalize_dense(linked.to(similarity.dtype))


def _worth_compressing(linked: Tensor) -> bool:
    """On a CPU, products with a large matrix of few links are faster sparse; a GPU would have to wait to know."""
    if linked.device.type != "cpu" or linked.size(0) < 512 or torch.compiler.is_compiling():
        return False
    return int(linked.sum()) < 0.2 * linked.numel()


@torch.no_grad()
def nearest_correlations(x: Tensor, self_loops: bool, neighbours: int, chunk: int = 256, hop: object = None) -> Operand:
    """Returns the same with at most so many neighbours chosen by each feature, sparse."""
    x = x.detach()
    num_features = x.size(-1)
    matrix = sparse_from_tensor(x) if is_sparse(x) else None
    table = x if matrix is not None else x.reshape(-1, num_features)
    squares = total_over_nodes(_column_squares(table, matrix), hop)
    scale = torch.where(squares > 0, squares, 1).rsqrt() * (squares > 0)
    rows, cols = [], []
    for start in range(0, num_features, chunk):
        columns = torch.arange(start, min(start + chunk, num_features), device=x.device)
        itself = (torch.arange(len(columns), device=x.device), columns)
        if matrix is None:
            gram = table[:, columns].t() @ table
        else:
            chosen = torch.zeros(num_features, len(columns), dtype=x.dtype, device=x.device)
            chosen[itself[::-1]] = 1
            gram = matrix.transpose_matmul(matrix.matmul(chosen)).t().contiguous()
        similarity = total_over_nodes(gram, hop) * scale * scale[columns].unsqueeze(1)
        similarity[itself] = 1
        # The rule of the softmax, without dividing: an entry exceeds the mean of its row.
        mean = similarity.exp().mean(dim=1, keepdim=True)
        similarity[itself] = -torch.inf  # the feature itself is the nearest and does not count
        value, nearest = similarity.topk(min(neighbours, num_features), dim=1)
        kept = value.exp() > CLEARLY * mean
        rows.append(columns.unsqueeze(1).expand_as(nearest)[kept])
        cols.append(nearest[kept])
    row, col = torch.cat(rows), torch.cat(cols)
    pairs = torch.stack([torch.cat([row, col]), torch.cat([col, row])]).unique(dim=1)
    if self_loops:
        pairs = torch.cat([pairs, torch.arange(num_features, device=x.device).expand(2, -1)], dim=1)
    return normalize_sparse(pairs[0], pairs[1], torch.ones(pairs.size(1), dtype=x.dtype, device=x.device), num_features)


def _column_squares(table: Tensor, matrix: SparseMatrix | None) -> Tensor:
    if matrix is None:
        return table.square().sum(dim=0)
    return matrix.value.new_zeros(matrix.num_cols).index_add(0, matrix.col, matrix.value.square())


@torch.no_grad()
def cosine_similarity(x: Tensor, hop: object = None) -> Tensor:
    """Returns the cosine similarity of every pair of columns; a column of zeros is similar to nothing but itself.

    Args:
        x (torch.Tensor): The features, dense or sparse.
        hop (Hop, optional): The node graph, which knows whether other processes hold rows too. (default: :obj:`None`)
    """
    x = x.detach()
    if is_sparse(x):
        x = x.to_sparse_coo()
        gram = torch.sparse.mm(x.t(), x).to_dense()
    else:
        x = x.reshape(-1, x.size(-1))
        gram = x.t() @ x
    gram = total_over_nodes(gram, hop)
    norm = gram.diagonal().sqrt()
    scale = torch.where(norm > 0, torch.where(norm > 0, norm, 1).reciprocal(), 0)
    eye = torch.eye(gram.size(1), dtype=torch.bool, device=gram.device)
    return (scale.unsqueeze(1) * gram * scale).masked_fill(eye, 1)
