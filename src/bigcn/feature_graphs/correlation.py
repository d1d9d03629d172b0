r"""The paper's fixed feature graph: features whose columns are similar are linked."""

import torch
from torch import Tensor

from bigcn.feature_graphs.base import FeatureGraph, Operand, normalize_dense
from bigcn.sparse import is_sparse


class CorrelationGraph(FeatureGraph):
    r"""Links features whose columns point the same way.

    The cosine similarities between columns go through a softmax per row, an edge exists where either of the two
    entries of a pair exceeds the mean of that matrix (which is :math:`1/d`), and the graph is normalised with
    self-loops.

    A graph made by name is computed from the input of its layer in each forward pass, without gradient; one made by
    :meth:`from_features` is fixed and part of the :obj:`state_dict`.

    Args:
        num_features (int): The number of features, or :obj:`-1` to take it from the first input.
        self_loops (bool, optional): If set to :obj:`False`, adds no self-loops. (default: :obj:`True`)
    """

    matrix: Tensor | None

    def __init__(self, num_features: int, self_loops: bool = True) -> None:
        super().__init__(num_features)
        self.self_loops = self_loops
        self.register_buffer("matrix", None)

    @classmethod
    def from_features(cls, x: Tensor, self_loops: bool = True) -> "CorrelationGraph":
        """Computes the graph once and keeps it.

        Args:
            x (torch.Tensor): The features, dense or sparse.
            self_loops (bool, optional): See :class:`CorrelationGraph`. (default: :obj:`True`)
        """
        graph = cls(x.size(-1), self_loops)
        graph.matrix = correlation_adjacency(x, self_loops)
        return graph

    @property
    def from_input(self) -> bool:  # type: ignore[override]
        return self.matrix is None

    def operand(self, x: Tensor | None = None, hop: object = None) -> Operand:
        if self.matrix is not None:
            return (self.matrix,)
        if x is None:
            raise ValueError("a correlation graph made by name is computed from features: give 'x'")
        return (correlation_adjacency(x, self.self_loops),)

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return operand[0] @ block

    def diagonal(self, operand: Operand) -> Tensor:
        return operand[0].diagonal()


@torch.no_grad()
def correlation_adjacency(x: Tensor, self_loops: bool = True) -> Tensor:
    """Returns the normalised adjacency of :class:`CorrelationGraph` for the given features."""
    similarity = cosine_similarity(x)
    share = similarity.softmax(dim=1)
    linked = share > 1 / share.size(1)
    linked = linked | linked.t()
    eye = torch.eye(share.size(1), dtype=torch.bool, device=share.device)
    linked = linked | eye if self_loops else linked & ~eye
    return normalize_dense(linked.to(similarity.dtype))


@torch.no_grad()
def cosine_similarity(x: Tensor) -> Tensor:
    """Returns the cosine similarity of every pair of columns; a column of zeros is similar to nothing but itself."""
    x = x.detach()
    if is_sparse(x):
        x = x.to_sparse_coo()
        gram = torch.sparse.mm(x.t(), x).to_dense()
    else:
        x = x.reshape(-1, x.size(-1))
        gram = x.t() @ x
    norm = gram.diagonal().sqrt()
    scale = torch.where(norm > 0, torch.where(norm > 0, norm, 1).reciprocal(), 0)
    eye = torch.eye(gram.size(1), dtype=torch.bool, device=gram.device)
    return (scale.unsqueeze(1) * gram * scale).masked_fill(eye, 1)
