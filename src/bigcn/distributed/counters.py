"""Random numbers that depend on what they are for, not on who draws them.

A number is a hash of a seed and of counters: the epoch, the layer, the place of a node in the node table. Any number of
processes, on any device, draws the same one for the same node.
"""

from typing import Any

import torch
from torch import Tensor

_WORD = 1 << 64
_GOLDEN = 0x9E3779B97F4A7C15
#: How many rows of a mask are hashed in one go, which bounds the memory.
_CHUNK = 1 << 15


def key(*words: int) -> int:
    """Returns one word for several whole numbers, in order."""
    state = 0
    for word in words:
        state = _mix_word((state + _GOLDEN) % _WORD ^ (word % _WORD))
    return state


def mix(words: Tensor) -> Tensor:
    """Scrambles 64-bit words, each on its own, by the finalizer of SplitMix64."""
    words = words ^ _shifted(words, 30)
    words = words * _signed(0xBF58476D1CE4E5B9)
    words = words ^ _shifted(words, 27)
    words = words * _signed(0x94D049BB133111EB)
    return words ^ _shifted(words, 31)


def draw(stream: int, *counters: Tensor) -> Tensor:
    """Returns a random 64-bit word for each combination of counters.

    Args:
        stream (int): What :func:`key` returned.
        *counters (torch.Tensor): Whole numbers, broadcast against each other.
    """
    state: Tensor | None = None
    for counter in counters:
        start = _signed(stream) if state is None else state
        state = mix((counter * _signed(_GOLDEN)) ^ start)
    assert state is not None
    return mix(state)


def fractions(words: Tensor) -> Tensor:
    """Returns words as numbers between 0 and 1, in double precision."""
    return _shifted(words, 11).double() * 2.0**-53


def below(words: Tensor, bound: int) -> Tensor:
    """Returns words as whole numbers below a bound, all but uniformly."""
    return _shifted(words, 1) % bound


class CountedDropout(torch.nn.Module):
    """Dropout whose mask is drawn by :func:`draw` from seed, epoch, layer, node and column.

    Args:
        p (float): The share of entries that are dropped.
        rows (torch.Tensor): The place of each node in the node table.
        seed (int): The seed.
    """

    def __init__(self, p: float, rows: Tensor, seed: int) -> None:
        super().__init__()
        self.p, self.rows, self.seed = p, rows, seed
        self.epoch = self.layer = 0

    def begin(self, epoch: int) -> None:
        """Starts the forward pass of an epoch, whose layers are counted from zero."""
        self.epoch, self.layer = epoch, 0

    def mask(self, layer: int, width: int) -> Tensor:
        """Returns which entries a layer keeps."""
        stream = key(self.seed, self.epoch, layer)
        columns = torch.arange(width, device=self.rows.device).unsqueeze(0)
        least = int(self.p * 2**53)
        pieces = [_shifted(draw(stream, rows.unsqueeze(1), columns), 11) >= least for rows in self.rows.split(_CHUNK)]
        return torch.cat(pieces)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        layer, self.layer = self.layer, self.layer + 1
        dropped: Tensor = _Masked.apply(x, self.mask(layer, x.size(1)), 1 / (1 - self.p) if self.p < 1 else 0.0)
        return dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _Masked(torch.autograd.Function):
    """A product that keeps one byte per entry for the way back, not a number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return (x * mask).mul_(scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return (grad * ctx.saved_tensors[0]).mul_(ctx.scale), None, None


def _shifted(words: Tensor, places: int) -> Tensor:
    """Shifts to the right without the sign."""
    return (words >> places) & ((1 << (64 - places)) - 1)


def _signed(word: int) -> int:
    return word - _WORD if word >= _WORD // 2 else word


def _mix_word(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % _WORD
    return word ^ (word >> 31)
