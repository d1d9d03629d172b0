"""Searching strengths and feature graphs, one thing at a time."""

from collections.abc import Callable, Sequence

import numpy as np

from bigcn.smoothing.selection import SmoothingChoice

#: Returns the error of a choice in parts that add up, one for each of some blocks of rows, or in one part.
Judge = Callable[[SmoothingChoice], np.ndarray]
#: In how many blocks of rows errors are kept, to tell how sure a difference is.
BLOCKS = 64
#: How often strengths and graph are gone through.
ROUNDS = 4
#: By what share of the error a further direction must lower it at least.
NEGLIGIBLE = 0.001


def search_strengths(
    judge: Judge, num_features: int, lambda1: Sequence[float], lambda2: Sequence[float], ranks: Sequence[int]
) -> tuple[SmoothingChoice, tuple[SmoothingChoice, ...]]:
    """Tries strengths and feature graphs, and returns the choice and all that was tried, best first.

    Args:
        judge (Callable): Returns the error of a choice.
        num_features (int): The number of columns.
        lambda1, lambda2 (Sequence[float]): The strengths to try.
        ranks (Sequence[int]): The ranks of spectral graphs to try.
    """
    tried: dict[SmoothingChoice, np.ndarray] = {}

    def error(choice: SmoothingChoice) -> float:
        return float(tried[choice].sum())

    def best_of(candidates: Sequence[SmoothingChoice]) -> SmoothingChoice:
        for candidate in candidates:
            if candidate not in tried:
                tried[candidate] = judge(candidate)
        return min(candidates, key=error)

    # The errors in the choices stay zero until the end: NaN would not equal itself, and be tried twice.
    first, second = (sorted(grid)[len(grid) // 2] for grid in (lambda1, lambda2))
    best_of([SmoothingChoice(value, 0.0, "none", 0, 0.0) for value in sorted({0.0, *lambda1})])
    spectral = [("spectral", rank) for rank in ranks if rank < num_features]
    # Each family of graphs on its own: the best strengths of one are poor ones for the other.
    for family in (spectral, [("covariance", 0)] if num_features > 1 else []):
        if not family or not any(lambda2):
            continue
        mine = [SmoothingChoice(value, second, *kind, 0.0) for value in sorted({0.0, first}) for kind in family]
        current: SmoothingChoice | None = None
        for _ in range(ROUNDS):
            before, current = current, best_of(mine)
            if current == before:
                break
            mine += [current._replace(lambda2=value) for value in lambda2 if value > 0]
            current = best_of(mine)
            mine += [current._replace(lambda1=value) for value in lambda1]
            current = best_of(mine)
            mine += [current._replace(feature_graph=graph, rank=rank) for graph, rank in family]
            # One direction stands in for the other, so that the best may lie across: more of one, less of the other.
            mine += [
                current._replace(lambda1=one, lambda2=other)
                for one in _beside(current.lambda1, lambda1)
                for other in _beside(current.lambda2, lambda2)
                if other > 0
            ]
    ranked = sorted(tried, key=error)
    chosen = _simplest(ranked, tried)
    return chosen._replace(error=error(chosen)), tuple(choice._replace(error=error(choice)) for choice in ranked)


def _simplest(ranked: Sequence[SmoothingChoice], tried: dict[SmoothingChoice, np.ndarray]) -> SmoothingChoice:
    """Returns the choice of fewest directions whose error is the lowest, give or take a standard error."""
    best = ranked[0]
    for directions in range(_directions(best)):
        simple = next((choice for choice in ranked if _directions(choice) == directions), None)
        if simple is None:
            continue
        excess = tried[simple] - tried[best]
        doubt = np.sqrt(len(excess)) * excess.std(ddof=1) if len(excess) > 1 else 0.0
        if excess.sum() <= max(doubt, NEGLIGIBLE * tried[best].sum()):
            return simple
    return best


def _directions(choice: SmoothingChoice) -> int:
    return (choice.lambda1 > 0) + (choice.lambda2 > 0)


def _beside(value: float, grid: Sequence[float]) -> list[float]:
    """Returns the strengths of a grid next below and next above one of them."""
    steps = sorted(grid)
    place = steps.index(value) if value in steps else 0
    return [steps[i] for i in (place - 1, place + 1) if 0 <= i < len(steps)]
