import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from bigcn.distributed.counters import below, draw, fractions, key, mix
from bigcn.distributed.pairs import PairParts, has_entry


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(1, 20), columns=st.integers(1, 40), density=st.floats(0, 1))
def test_entries_are_found_by_bisection(seed, rows, columns, density):
    generator = np.random.default_rng(seed)
    matrix = csr_array(random_array((rows, columns), density=density, rng=generator))
    matrix.sort_indices()
    row, col = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).t()
    crow, indices = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)
    wanted = (matrix.toarray() != 0).reshape(-1)
    assert np.array_equal(has_entry(crow, indices, row, col).numpy(), wanted)


def test_parts_are_symmetric_and_have_their_shares():
    one, other = torch.from_numpy(np.random.default_rng(0).integers(10**9, size=(2, 200_000)))
    parts = PairParts(3, 0.1, 0.2)(one, other)
    assert torch.equal(parts, PairParts(3, 0.1, 0.2)(other, one))
    assert not torch.equal(parts, PairParts(4, 0.1, 0.2)(other, one))
    for part, share in ((0, 0.7), (1, 0.1), (2, 0.2)):
        assert abs(float((parts == part).double().mean()) - share) < 0.005


def test_words_are_those_of_splitmix():
    # The reference: SplitMix64 from the state 0 gives these first outputs.
    golden = 0x9E3779B97F4A7C15
    states = [(i * golden) % 2**64 for i in (1, 2, 3)]
    words = mix(torch.tensor([s - 2**64 if s >= 2**63 else s for s in states]))
    assert [int(w) % 2**64 for w in words] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_draws_are_uniform_and_unrelated():
    words = draw(key(1, 2), torch.arange(100_000))
    values = fractions(words)
    counts = np.histogram(values.numpy(), bins=50, range=(0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 90  # chi-squared with 49 degrees of freedom, p < 0.001
    other = fractions(draw(key(1, 3), torch.arange(100_000)))
    assert abs(float(torch.corrcoef(torch.stack([values, other]))[0, 1])) < 0.015
    assert abs(float(torch.corrcoef(torch.stack([values[1:], values[:-1]]))[0, 1])) < 0.015
    places = below(words, 7)
    assert torch.bincount(places, minlength=7).max() < 100_000 / 7 * 1.03
    assert key(1, 2) != key(2, 1)
