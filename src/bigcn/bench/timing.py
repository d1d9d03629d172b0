"""Timing side by side: what a shared machine does to one contender it does to all."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

#: How many seconds a turn takes at least.
TURN = 0.3


class Ratio(NamedTuple):
    """How much faster a contender is than another: above one if it is.

    Args:
        ratio (float): The median over rounds of the time of the other over the time of the contender.
        low, high (float): The quartiles of the same ratios.
    """

    ratio: float
    low: float
    high: float


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu"
) -> dict[str, list[float]]:
    """Times contenders in turns and returns the seconds of a call in every round.

    A turn is as many calls in a row as fit into :data:`TURN`, at least one. Where there are more, the first does not
    count: steps of training follow each other, and it finds in the caches what the other contenders left there.

    Args:
        contenders (dict): What to call, by name.
        rounds (int): How many turns each has, after two that do not count.
        device (str, optional): The device to wait for. (default: :obj:`"cpu"`)
    """
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times: dict[str, list[float]] = {name: [] for name in contenders}
    is_long: set[str] = set()
    for turn in range(rounds + 2):
        for name, call in contenders.items():
            if name not in is_long:
                call()
            wait()
            start, calls = time.perf_counter(), 0
            while calls == 0 or time.perf_counter() - start < TURN:
                call()
                wait()
                calls += 1
            if calls == 1:
                is_long.add(name)
            if turn >= 2:
                times[name].append((time.perf_counter() - start) / calls)
    return times


def compare_times(times: Mapping[str, list[float]], contender: str, against: str) -> Ratio:
    """Returns how much faster one contender was than another.

    Args:
        times (dict): What :func:`interleaved` returned.
        contender, against (str): Their names.
    """
    paired = sorted(b / a for a, b in zip(times[contender], times[against], strict=True))
    quarter = len(paired) // 4
    return Ratio(statistics.median(paired), paired[quarter], paired[-1 - quarter])


def row(bench: str, graph: str, contender: str, against: str, ratio: Ratio) -> dict[str, Any]:
    """Returns a result with the columns that scripts rely on."""
    return {
        "bench": bench,
        "graph": graph,
        "contender": contender,
        "against": against,
        "ratio": ratio.ratio,
        "spread": [ratio.low, ratio.high],
    }
