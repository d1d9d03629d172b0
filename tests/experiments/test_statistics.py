import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bigcn.experiments.statistics import is_tie, paired_interval

scores = st.dictionaries(st.integers(0, 9), st.integers(0, 1000).map(lambda hits: hits / 1000), min_size=3)


@given(scores, scores)
def test_interval_is_the_paired_t_interval(first, second):
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        assert is_tie(first, second)
        return
    a, b = (np.array([one[seed] for seed in shared]) for one in (first, second))
    mean, low, high = paired_interval(first, second)
    assert mean == pytest.approx((a - b).mean())
    if np.ptp(np.round(a - b, 9)) > 0:
        expected = stats.ttest_rel(a, b).confidence_interval(0.95)
        assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert is_tie(first, second) == (stats.ttest_rel(a, b).pvalue >= 0.05)
    else:
        assert is_tie(first, second) == (abs(mean) < 1e-9)


def test_same_gap_everywhere_is_no_tie():
    assert not is_tie({1: 0.5, 2: 0.6, 3: 0.7}, {1: 0.4, 2: 0.5, 3: 0.6})
    assert is_tie({1: 0.5}, {1: 0.1})
