"""Noise on features, against the distributions that it promises."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch_geometric.data import Data

from bigcn.noise import ColumnNoise, FeatureRate, NoiseLevel, NoiseRate

MakeRing = Callable[..., Data]


@pytest.mark.parametrize("level", [0.1, 0.9, 3.0])
def test_noise_level_is_normal_with_that_standard_deviation(level: float) -> None:
    x = torch.full((400, 50), 7.0, dtype=torch.double)
    noise = (NoiseLevel(level, seed=1)(Data(x=x)).x - x) / level
    assert stats.kstest(noise.flatten().numpy(), "norm").pvalue > 1e-3
    assert abs(noise.mean()) < 5 / 20_000**0.5
    assert abs(noise.std() - 1) < 5 / 40_000**0.5
    # Neither rows nor columns hang together.
    assert abs(noise.mean(0).std() * 20 - 1) < 0.5
    assert abs(noise.mean(1).std() * 50**0.5 - 1) < 0.2


def test_noise_level_record(ring: MakeRing) -> None:
    assert NoiseLevel(0.1).changes(ring(7)).nodes.tolist() == list(range(7))


def test_levels_share_their_noise() -> None:
    data = Data(x=torch.zeros(5, 4))
    torch.testing.assert_close(NoiseLevel(0.8)(data).x, 4 * NoiseLevel(0.2)(data).x)


@pytest.mark.parametrize("n", [1, 7, 100])
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.333, 0.5, 0.999, 1.0])
def test_noise_rate_changes_exactly_so_many_nodes(ring: MakeRing, n: int, rate: float) -> None:
    data = ring(n, 5)
    noise = NoiseRate(rate, seed=2)
    changed = (noise(data).x != data.x).any(dim=1).nonzero().flatten()
    assert changed.numel() == round(n * rate)
    assert torch.equal(noise.changes(data).nodes, changed)


def test_noise_rate_deviation_is_uniform_for_each_node() -> None:
    noise = NoiseRate(0.5, seed=4)
    data = Data(x=torch.zeros(600, 1000))
    rows = noise(data).x[noise.changes(data).nodes]
    deviation = rows.square().mean(dim=1).sqrt()
    assert stats.kstest(deviation.numpy(), "uniform").pvalue > 1e-2
    assert stats.kstest((rows / deviation.unsqueeze(1))[:, :20].flatten().numpy(), "norm").pvalue > 1e-3


def test_noise_rate_nodes_are_uniform() -> None:
    data = Data(x=torch.zeros(10, 1))
    counts = torch.zeros(10)
    for seed in range(1000):
        counts[NoiseRate(0.3, seed=seed).changes(data).nodes] += 1
    assert counts.sum() == 3000
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("d", [1, 9, 100])
@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5, 1.0])
def test_column_noise_changes_exactly_so_many_columns(ring: MakeRing, d: int, rate: float) -> None:
    data = ring(15, d)
    noise = ColumnNoise(rate, seed=6)
    changed = (noise(data).x != data.x).all(dim=0)
    assert torch.equal(changed, (noise(data).x != data.x).any(dim=0))
    assert int(changed.sum()) == round(d * rate)
    assert torch.equal(noise.changes(data).columns, changed.nonzero().flatten())


def test_column_noise_moments() -> None:
    data = Data(x=torch.ones(500, 40))
    noise = ColumnNoise(0.5, level=0.3, seed=1)
    drawn = (noise(data).x - 1)[:, noise.changes(data).columns] / 0.3
    assert drawn.shape == (500, 20)
    assert stats.kstest(drawn.flatten().numpy(), "norm").pvalue > 1e-3
    assert ColumnNoise(0.5, level=0.0).changes(data).columns.numel() == 0


@pytest.mark.parametrize("kind", [NoiseRate, ColumnNoise])
def test_a_higher_rate_adds_to_the_noise_of_a_lower_one(kind: type) -> None:
    data = Data(x=torch.zeros(40, 40))
    low, high = (kind(rate, seed=8)(data).x for rate in (0.3, 0.8))
    assert torch.equal(high[low != 0], low[low != 0])
    assert (high != 0).sum() > (low != 0).sum()


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(("level", "dtype"), [(1e300, torch.float), (1e6, torch.half)])
def test_noise_that_overflows_is_refused(level: float, dtype: torch.dtype) -> None:
    for noise in (NoiseLevel(level), ColumnNoise(1.0, level=level)):
        with pytest.raises(ValueError, match="level is too large"):
            noise(Data(x=torch.ones(50, 4, dtype=dtype)))


@given(d=st.integers(1, 40), rate=st.floats(0, 1), seed=st.integers(0, 2**70))
@settings(max_examples=50, deadline=None)
def test_feature_rate_keeps_so_many_columns_in_order(ring: MakeRing, d: int, rate: float, seed: int) -> None:
    data = ring(5, d)
    noise = FeatureRate(rate, seed=seed)
    columns = noise.changes(data).columns
    assert columns.numel() == max(1, round(d * rate))
    assert torch.equal(columns, columns.unique())
    assert torch.equal(noise(data).x, data.x[:, columns])


def test_feature_rate_columns_are_uniform_and_nested() -> None:
    data = Data(x=torch.zeros(1, 10))
    counts = torch.zeros(10)
    for seed in range(1000):
        columns = FeatureRate(0.4, seed=seed).changes(data).columns
        counts[columns] += 1
        assert set(columns.tolist()) <= set(FeatureRate(0.7, seed=seed).changes(data).columns.tolist())
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_feature_rate_keeps_sparse_features_sparse(ring: MakeRing, layout: torch.layout) -> None:
    data = ring()
    data.x[data.x < 0.7] = 0
    sparse = data.clone()
    sparse.x = data.x.to_sparse(layout=layout)
    result = FeatureRate(0.5)(sparse).x
    assert result.layout == layout
    assert layout != torch.sparse_coo or result.is_coalesced()
    assert torch.equal(result.to_dense(), FeatureRate(0.5)(data).x)
    assert torch.equal(sparse.x.to_dense(), data.x)


def test_feature_rate_sums_repeated_sparse_entries() -> None:
    x = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.tensor([2.0, 3.0]), (2, 3))
    assert torch.equal(FeatureRate(1.0)(Data(x=x)).x.to_dense(), torch.tensor([[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]))
