import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.tasks.pairs import PairSampler, num_pairs, pair_numbers, pairs_of


@pytest.mark.parametrize("n", range(2, 14))
def test_every_number_is_one_pair(n):
    pairs = pairs_of(np.arange(num_pairs(n)), n)
    assert {frozenset(pair) for pair in pairs.T.tolist()} == {frozenset(p) for p in itertools.combinations(range(n), 2)}
    for one, other in (pairs, pairs[::-1]):
        assert pair_numbers(one, other, n).tolist() == list(range(num_pairs(n)))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 2_000_000_000).flatmap(lambda n: st.tuples(st.just(n), *[st.integers(0, n - 1)] * 2)))
def test_large_graphs_keep_their_pairs(case):
    n, one, other = case
    if one != other:
        number = pair_numbers(np.array([one]), np.array([other]), n)
        assert 0 <= int(number[0]) < num_pairs(n)
        assert set(pairs_of(number, n)[:, 0].tolist()) == {one, other}


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 9), st.randoms(use_true_random=False), st.integers(0, 2**32))
def test_draws_are_distinct_and_avoid_what_is_excluded(n, random, seed):
    excluded = random.sample(range(num_pairs(n)), random.randint(0, num_pairs(n)))
    sampler = PairSampler(n, np.array(excluded, dtype=np.int64))
    assert sampler.available == num_pairs(n) - len(excluded)
    drawn = sampler.draw(sampler.available, np.random.default_rng(seed))
    assert sorted(drawn.tolist()) == sorted(set(range(num_pairs(n))) - set(excluded))
    with pytest.raises(ValueError, match="left"):
        sampler.draw(sampler.available + 1, np.random.default_rng(seed))


def test_draws_are_uniform():
    excluded = np.array([0, 1, 5, 9])
    sampler, generator = PairSampler(6, excluded), np.random.default_rng(0)
    count = np.bincount(np.concatenate([sampler.draw(4, generator) for _ in range(3000)]), minlength=15)
    assert count[excluded].sum() == 0
    expected = 4 * 3000 / 11
    assert (np.abs(np.delete(count, excluded) - expected) < 5 * np.sqrt(expected)).all()


def test_the_first_half_of_a_draw_is_like_the_second():
    sampler, generator = PairSampler(8, np.array([], dtype=np.int64)), np.random.default_rng(1)
    draws = np.stack([sampler.draw(20, generator) for _ in range(2000)])
    assert abs(draws[:, :10].mean() - draws[:, 10:].mean()) < 0.3


def test_a_million_nodes():
    n = 1_000_000
    generator = np.random.default_rng(2)
    edges = pair_numbers(generator.integers(0, n // 2, 5000), generator.integers(n // 2, n, 5000), n)
    drawn = PairSampler(n, edges).draw(5000, generator)
    assert len(np.unique(drawn)) == 5000
    assert not np.isin(drawn, edges).any()
    one, other = pairs_of(drawn, n)
    assert (one != other).all()
    assert one.max() < n > other.max()
