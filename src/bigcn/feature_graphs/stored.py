r"""Graphs that are stored as a matrix: :math:`\mathbf{N}_2` dense as :obj:`(matrix,)`, or CSR as :obj:`(value, crow,
col)`.
"""

import torch
from torch import Tensor

from bigcn.feature_graphs.base import Operand
from bigcn.sparse import SparseMatrix, sparse_from_edges


def normalize_dense(adjacency: Tensor) -> Operand:
    r"""Returns :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`, with a one on the diagonal of isolated features
    so that their row of the Laplacian is zero.
    """
    degree = adjacency.sum(dim=1)
    connected = degree > 0
    scale = torch.where(connected, torch.where(connected, degree, 1).rsqrt(), 0)
    return (scale.unsqueeze(1) * adjacency * scale + torch.diag((~connected).to(adjacency.dtype)),)


def normalize_sparse(row: Tensor, col: Tensor, value: Tensor, num_features: int) -> Operand:
    """Returns the same for a symmetric matrix given by its entries."""
    degree = value.new_zeros(num_features).index_add(0, row, value)
    scale = torch.where(degree > 0, degree, 1).rsqrt()
    alone = (degree == 0).nonzero().view(-1)
    matrix = sparse_from_edges(
        torch.cat([row, alone]),
        torch.cat([col, alone]),
        torch.cat([scale[row] * value * scale[col], value.new_ones(alone.numel())]),
        (num_features, num_features),
    )
    return matrix.value, matrix.crow, matrix.col


def stored_product(operand: Operand, block: Tensor) -> Tensor:
    r"""Returns :math:`\mathbf{N}_2` times a block."""
    if len(operand) == 1:
        return operand[0] @ block
    value, crow, col = operand
    size = crow.numel() - 1
    return SparseMatrix(crow, col, value, crow, col, value, size, size).matmul(block)


def stored_diagonal(operand: Operand) -> Tensor:
    r"""Returns the diagonal of :math:`\mathbf{N}_2`."""
    if len(operand) == 1:
        return operand[0].diagonal()
    value, crow, col = operand
    size = crow.numel() - 1
    row = torch.repeat_interleave(torch.arange(size, device=col.device), crow.diff())
    return value.new_zeros(size).index_add(0, row[row == col], value[row == col])
