r"""Products of features and weights, :math:`\mathbf{X} \mathbf{W}^{\top}`, which take most of the time of small models.

The tensor cores of a GPU read lines of 16 bytes. Features with lines of another length, such as the 1,433 words of
Cora, take longer than with columns of zeros that fill the lines up; these are kept, and weights are filled up in every
step. Members of a population that share their features share one product.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch.overrides import TorchFunctionMode

from bigcn.precision import fast_products_allowed
from bigcn.sparse_diagonal import mapped

#: Lines are filled up to a multiple of so many columns, if they are none of the other.
FILLED, SUFFICES = 8, 4


def filling_pays(x: Tensor) -> bool:
    """Tells whether products with features are faster once their lines are filled up."""
    if not x.is_cuda or x.dim() != 2 or x.size(1) % SUFFICES == 0:
        return False
    return x.layout == torch.strided and x.dtype == torch.float32 and fast_products_allowed()


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
    if x.dim() != 2 or not _is_mapped_once() or torch.is_autocast_enabled(x.device.type):
        return F.linear(x, weight)
    out: Tensor = _Product.apply(x, weight)
    return out


def _is_mapped_once() -> bool:
    """Tells whether :func:`torch.func.vmap` is at work, once and alone, as in a population."""
    stack = None if torch.compiler.is_compiling() else get_interpreter_stack()
    return stack is not None and len(stack) == 1 and stack[0].key() == TransformType.Vmap


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


class FeatureProducts(TorchFunctionMode):
    """While it lasts, linear layers multiply by :func:`feature_product`.

    Args:
        in_channels (int): The number of features, before they were filled up.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is F.linear:
            return self._linear(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if input.size(-1) != weight.size(-1) and weight.size(-1) != self.in_channels:
            return F.linear(input, weight, bias)  # which says what is wrong
        out = feature_product(input, weight)
        return out if bias is None else out + bias
