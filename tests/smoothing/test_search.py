import numpy as np
import pytest

from bigcn.smoothing.search import BLOCKS, search_strengths

GRID1, GRID2, RANKS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0), (0.0, 1.0, 3.0, 10.0), (2, 4, 8)


def bowl(best):
    """An error with one valley: the further from the best choice, the larger."""

    def judge(choice):
        strengths = [(choice.lambda1, best[0]), (choice.lambda2, best[1])]
        distance = sum((np.log(a + 0.01) - np.log(b + 0.01)) ** 2 for a, b in strengths)
        return np.array([1 + distance + 0.1 * (choice.feature_graph != best[2]) + 0.1 * abs(choice.rank - best[3])])

    return judge


@pytest.mark.parametrize(
    "best",
    [
        (0.3, 3.0, "spectral", 4),
        (10.0, 1.0, "spectral", 2),
        (0.1, 10.0, "covariance", 0),
        (1.0, 0.0, "none", 0),
        (0.0, 10.0, "covariance", 0),
        (0.0, 0.0, "none", 0),
    ],
)
def test_the_bottom_of_a_valley_is_found(best):
    choice, tried = search_strengths(bowl(best), 16, GRID1, GRID2, RANKS)
    assert choice[:4] == best
    assert choice == tried[0]
    assert choice.error == 1
    assert len(set(tried)) == len(tried)
    assert [c.error for c in tried] == sorted(c.error for c in tried)


def test_across_a_narrow_valley():
    # Only the product of the strengths counts but for a slight preference: one at a time, every place seems best.
    def judge(choice):
        if not choice.lambda1 or not choice.lambda2 or choice.feature_graph != "covariance":
            return np.array([99.0])
        across, along = np.log(choice.lambda1 * choice.lambda2 / 3), np.log(choice.lambda1 / 0.3)
        return np.array([1 + 100 * across**2 + along**2])

    grid = (0.0, 0.3, 1.0, 3.0, 10.0)
    assert search_strengths(judge, 16, grid, grid, RANKS)[0][:2] == (0.3, 10.0)


@pytest.mark.parametrize(("spread", "directions"), [(0.01, 2), (10.0, 1)])
def test_a_direction_must_clearly_help(spread, directions):
    noise = np.random.default_rng(0).normal(size=BLOCKS) * spread

    def judge(choice):
        error = np.full(BLOCKS, (1.0 if choice.lambda1 else 5.0) / BLOCKS)
        if choice.lambda2:
            return error - (0.02 + noise - noise.mean()) / BLOCKS
        return error

    choice, tried = search_strengths(judge, 16, GRID1, GRID2, RANKS)
    assert (choice.lambda1 > 0) + (choice.lambda2 > 0) == directions
    assert tried[0].lambda2 > 0
