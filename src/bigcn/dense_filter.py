r"""The exact node filter :math:`\mathbf{A} = (\mathbf{I} + \lambda \mathbf{L}_1)^{-1}` as one dense matrix.

On a GPU a product with it takes less time than two dozen hops, as long as the graph has few nodes or many edges.
"""

from typing import Any

import torch
from torch import Tensor

from bigcn.sparse import SparseMatrix
from bigcn.sparse_diagonal import mapped, row_numbers
from bigcn.sparse_ops import own_precision

#: The most that a dense filter may take.
MAX_BYTES = 2**30
#: Up to so many nodes, hops take as long as it takes to start them.
FEW_NODES = 4096
#: How many entries of a dense product take the time of one of a sparse one.
DENSE_ADVANTAGE = 32


def dense_pays(graph: SparseMatrix, hops: int) -> bool:
    """Tells whether products with a dense filter take less time than its hops.

    Args:
        graph (SparseMatrix): The normalised node graph.
        hops (int): How many hops the filter takes.
    """
    nodes, value = graph.num_rows, graph.value
    if not value.is_cuda or nodes**2 * value.element_size() > MAX_BYTES:
        return False
    return nodes <= FEW_NODES or nodes**2 <= DENSE_ADVANTAGE * hops * value.numel()


def rows_pay(graph: SparseMatrix, hops: int, trained: int, scored: int) -> bool:
    """Tells whether products with some rows of a filter take less time than its hops, in a training step (forward and
    backward) and an evaluation together.

    Args:
        graph (SparseMatrix): The normalised node graph.
        hops (int): How many hops the filter takes.
        trained, scored (int): How many rows are asked for in a training step and in an evaluation.
    """
    nodes, value = graph.num_rows, graph.value
    if not value.is_cuda or (trained + scored) * nodes * value.element_size() > MAX_BYTES:
        return False
    return nodes <= FEW_NODES or (2 * trained + scored) * nodes <= 3 * DENSE_ADVANTAGE * hops * value.numel()


def dense_resolvent(graph: SparseMatrix, strength: float) -> Tensor:
    r"""Returns :math:`(\mathbf{I} + \lambda (\mathbf{I} - \mathbf{N}))^{-1}`, computed in double precision.

    Args:
        graph (SparseMatrix): The normalised node graph :math:`\mathbf{N}`, symmetric.
        strength (float): :math:`\lambda`.
    """
    entries = (row_numbers(graph.crow), graph.col)
    matrix = torch.zeros(graph.num_rows, graph.num_rows, dtype=torch.float64, device=graph.value.device)
    matrix.index_put_(entries, -strength * graph.value.double(), accumulate=True)
    matrix.diagonal().add_(1 + strength)
    return torch.linalg.inv(matrix).to(graph.value.dtype)


class _Product(torch.autograd.Function):
    """The product of a matrix that learns nothing with a dense block."""

    @staticmethod
    def forward(matrix: Tensor, block: Tensor) -> Tensor:
        with own_precision(block):
            return (matrix @ block.to(matrix.dtype)).to(block.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, constant_product(ctx.saved_tensors[0].mT, grads[0])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int | None], matrix: Tensor, block: Tensor) -> tuple[Tensor, int]:
        if in_dims[0] is not None:
            blocks = mapped(block, in_dims[1], info.batch_size, 0)
            return constant_product(matrix.movedim(in_dims[0], 0), blocks), 0
        # All members side by side, so that the matrix is read once.
        assert in_dims[1] is not None
        block = block.movedim(in_dims[1], -2)
        out = constant_product(matrix, block.reshape(*block.shape[:-2], -1))
        return out.view(*out.shape[:-1], *block.shape[-2:]), block.dim() - 2


def constant_product(matrix: Tensor, block: Tensor) -> Tensor:
    """Returns the product of a matrix that learns nothing with a dense block.

    Args:
        matrix (torch.Tensor): Shape :obj:`[m, n]`, or with a batch dimension in front.
        block (torch.Tensor): Shape :obj:`[n, h]`, likewise.
    """
    out: Tensor = _Product.apply(matrix, block)
    return out
