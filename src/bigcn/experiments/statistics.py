"""Telling models apart over paired seeds."""

from collections.abc import Mapping

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
