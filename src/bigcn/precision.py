"""How precisely a GPU multiplies dense matrices of single precision."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fast_products() -> Iterator[None]:
    """Lets a GPU multiply dense matrices in TensorFloat-32 for a while: products of features and weights take most of
    the time of a population, and are several times faster with factors of eleven significant bits.
    """
    name, before, fast = _setting()
    setattr(torch.backends.cuda.matmul, name, fast)
    try:
        yield
    finally:
        setattr(torch.backends.cuda.matmul, name, before)


def fast_products_allowed() -> bool:
    """Tells whether a GPU may multiply dense matrices in TensorFloat-32."""
    _, now, fast = _setting()
    return now == fast


def _setting() -> tuple[str, bool | str, bool | str]:
    """Returns the name of PyTorch's setting, its value, and the one that is fast."""
    matmul = torch.backends.cuda.matmul
    try:
        return "allow_tf32", matmul.allow_tf32, True
    except RuntimeError:  # it was set by its newer name, and may only be read by that
        return "fp32_precision", matmul.fp32_precision, "tf32"
