"""Telling models apart, over paired seeds where they are known."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats


def paired_interval(
    first: Mapping[int, float], second: Mapping[int, float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Returns the mean difference of two models over the seeds they share, and its confidence interval.

    Args:
        first, second (dict): Scores by seed.
        confidence (float, optional): The confidence of the interval. (default: :obj:`0.95`)

    Example:
        >>> paired_interval({5: 0.8, 10: 0.9}, {5: 0.7, 10: 0.8})
        (0.1, 0.1, 0.1)
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        raise ValueError("a paired comparison needs two shared seeds at least")
    # Scores are counts over a test set, so differences below this are rounding.
    differences = np.round([first[seed] - second[seed] for seed in shared], 12)
    mean, spread = float(differences.mean()), float(differences.std(ddof=1)) / np.sqrt(len(shared))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(shared) - 1)) * spread
    low, high = (round(float(end), 12) for end in (mean - reach, mean + reach))
    return round(mean, 12), low, high


def unpaired_interval(
    means: Sequence[float], stds: Sequence[float], counts: Sequence[int], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Returns the difference of the means of two models and its confidence interval, as if their runs were independent
    (Welch's).

    Args:
        means (Sequence[float]): The two means.
        stds (Sequence[float]): The two standard deviations.
        counts (Sequence[int]): How many runs each is over, two at least.
        confidence (float, optional): The confidence of the interval. (default: :obj:`0.95`)

    Example:
        >>> unpaired_interval((0.8, 0.7), (0.0, 0.0), (10, 10))
        (0.1, 0.1, 0.1)
    """
    if min(counts) < 2:
        raise ValueError("a spread needs two runs at least")
    apart, (first, second) = means[0] - means[1], (std**2 / count for std, count in zip(stds, counts, strict=True))
    reach = 0.0
    if first + second > 0:
        freedom = (first + second) ** 2 / (first**2 / (counts[0] - 1) + second**2 / (counts[1] - 1))
        reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * float(np.sqrt(first + second))
    return round(apart, 12), round(apart - reach, 12), round(apart + reach, 12)


def is_tie(first: Mapping[int, float], second: Mapping[int, float], confidence: float = 0.95) -> bool:
    """Tells whether two models cannot be told apart: zero lies in the interval of their paired difference.

    With fewer than two shared seeds nothing can be said, and that counts as a tie.

    Args:
        first, second (dict): Scores by seed.
        confidence (float, optional): The confidence of the interval. (default: :obj:`0.95`)
    """
    if len(first.keys() & second.keys()) < 2:
        return True
    _, low, high = paired_interval(first, second, confidence)
    return low <= 0 <= high
