r"""Products of features and weights, :math:`\mathbf{X} \mathbf{W}^{\top}`, which take most of the time of small models.

The tensor cores of a GPU read lines of 16 bytes. Features with lines of another length, such as the 1,433 words of
Cora, take longer than with columns of zeros that fill the lines up; these are kept, and weights are filled up in every
step. Members of a population that share their features share one product.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg

from bigcn.sparse_diagonal import mapped

#: Lines are filled up to a multiple of so many columns, if they are none of the other.
FILLED, SUFFICES = 8, 4


def filling_pays(x: Tensor) -> bool:
    """Tells whether products with features are faster once their lines are filled up."""
    if not x.is_cuda or x.dim() != 2 or x.dtype != torch.float32 or not torch.backends.cuda.matmul.allow_tf32:
        return False
    return x.size(1) % SUFFICES != 0


def filled(x: Tensor) -> Tensor:
    """Returns features with columns of zeros up to a full line."""
    return F.pad(x, (0, -x.size(-1) % FILLED))


def feature_product(x: Tensor, weight: Tensor) -> Tensor:
    """Returns what :func:`torch.nn.functional.linear` does; features may be filled up.

    Args:
        x (torch.Tensor): The features, as they are or from :func:`filled`.
        weight (torch.Tensor): The weights, :obj:`[out_channels, in_channels]`.
    """
    more = x.size(-1) - weight.size(-1)
    if more > 0 and more == -weight.size(-1) % FILLED:
        weight = F.pad(weight, (0, more))
    if x.dim() != 2 or torch._C._functorch.peek_interpreter_stack() is None:
        return F.linear(x, weight)
    out: Tensor = _Product.apply(x, weight)
    return out


class _Product(torch.autograd.Function):
    """The product of members of a population: one for all that share their features."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return x @ weight.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x = grads[0] @ weight if ctx.needs_input_grad[0] else None
        # Faster than the transpose of the gradient times the features, which is the same.
        of_weight = (x.mT @ grads[0]).mT if ctx.needs_input_grad[1] else None
        return of_x, of_weight

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int | None], x: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        if in_dims[0] is None:
            assert in_dims[1] is not None
            weights = weight.movedim(in_dims[1], 0)
            members, width, _ = weights.shape
            return _Product.apply(x, weights.flatten(0, 1)).view(-1, members, width), 1
        return _Product.apply(x.movedim(in_dims[0], 0), mapped(weight, in_dims[1], info.batch_size, 0)), 0


class FeatureLinear(pyg.Linear):
    """PyG's linear layer, which also takes features from :func:`filled`."""

    def forward(self, x: Tensor) -> Tensor:
        out = feature_product(x, self.weight)
        return out if self.bias is None else out + self.bias


def take_filled(module: torch.nn.Module, in_channels: Any) -> int | None:
    """Lets the linear layers of a module that multiply features take them from :func:`filled` as well.

    Args:
        module (torch.nn.Module): The first layer of a model; its parameters stay what they are.
        in_channels (int): The number of features; returned, unless it is not known yet or there are several.
    """
    if not isinstance(in_channels, int) or in_channels < 0:
        return None
    for part in module.modules():
        if type(part) is pyg.Linear and part.in_channels == in_channels:
            part.__class__ = FeatureLinear
    return in_channels
