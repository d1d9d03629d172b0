import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import KNNImputer

from bigcn.datasets import digits
from bigcn.smoothing import fill_missing, imputation, impute, smooth

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def holes(shape: tuple[int, ...], share: float, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random(shape) < share)


def rmse(filled: torch.Tensor, truth: torch.Tensor, gaps: torch.Tensor) -> float:
    return float((filled - truth)[gaps].square().mean().sqrt())


def test_missing_pixels_are_filled_better_than_by_nearest_rows():
    data = digits().subgraph(torch.arange(900))
    gaps = holes(data.x.shape, 0.3)
    broken = torch.where(gaps, torch.nan, data.x)
    result = impute(broken, gaps, data.edge_index, standardize=False)
    assert torch.equal(result.x[~gaps], data.x[~gaps])
    nearest = torch.from_numpy(KNNImputer().fit_transform(broken.numpy()))
    assert rmse(result.x, data.x, gaps) < 0.95 * rmse(nearest, data.x, gaps)
    assert result.choice.lambda2 > 0
    without = impute(broken, gaps, data.edge_index, standardize=False, lambda2=(0.0,))
    assert rmse(result.x, data.x, gaps) < 0.95 * rmse(without.x, data.x, gaps)
    assert [choice.error for choice in result.tried] == sorted(choice.error for choice in result.tried)
    assert result.choice == result.tried[0]


def test_one_direction_of_one_strength_is_smoothing_of_the_known_entries():
    rng = np.random.default_rng(0)
    x, gaps = torch.from_numpy(rng.normal(size=(4, 3))), torch.zeros(4, 3, dtype=torch.bool)
    gaps[1, 2] = gaps[3, 0] = True
    broken = torch.where(gaps, torch.nan, x)
    mean, scale = broken.nanmean(dim=0), (broken - broken.nanmean(dim=0)).square().nanmean(dim=0).sqrt()
    expected = smooth((broken - mean) / scale, PATH, lambda1=2.0, missing="fill") * scale + mean
    filled = impute(x, gaps, PATH, nodes=("given",), lambda1=(2.0,), lambda2=(0.0,)).x
    torch.testing.assert_close(filled[gaps], expected[gaps], atol=1e-2, rtol=0)


@given(st.integers(0, 500), st.integers(1, 12), st.integers(1, 5), st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_known_values_stay_and_gaps_become_finite(seed, rows, columns, share):
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    gaps = holes((rows, columns), share, seed)
    source = torch.arange(rows - 1)
    path = torch.cat([torch.stack([source, source + 1]), torch.stack([source + 1, source])], dim=1)
    filled = fill_missing(torch.where(gaps, torch.inf, x), gaps, path)
    assert torch.equal(filled[~gaps], x[~gaps])
    assert bool(torch.isfinite(filled).all())


def test_units_do_not_matter():
    data = digits()
    x, kept = data.x[:300, 10:30].double(), (data.edge_index < 300).all(dim=0)
    gaps, edges = holes(x.shape, 0.2), data.edge_index[:, kept]
    factor, shift = 10.0 ** torch.arange(-10, 10).double(), torch.arange(20).double()
    plain, scaled = fill_missing(x, gaps, edges), fill_missing(x * factor + shift * factor, gaps, edges)
    torch.testing.assert_close((scaled - shift * factor) / factor, plain, atol=2e-3, rtol=0)


def test_columns_that_depend_fill_each_other_without_a_graph():
    one = torch.linspace(-2, 2, 200).unsqueeze(1)
    x = torch.cat([one, 3 * one + 1, -one], dim=1)
    gaps = holes(x.shape, 0.2)
    gaps[gaps.all(dim=1), 0] = False
    result = impute(x, gaps, None)
    assert rmse(result.x, x, gaps) < 0.1
    assert result.choice.nodes == "nearest"


def test_a_large_table_is_judged_by_a_part(monkeypatch):
    monkeypatch.setattr(imputation, "CHOOSE_ON", 200)
    data = digits()
    gaps = holes(data.x.shape, 0.2)
    filled = impute(data.x, gaps, data.edge_index, nodes=("given",), standardize=False, rounds=3)
    means = torch.where(gaps, torch.nan, data.x).nanmean(dim=0)
    assert rmse(filled.x, data.x, gaps) < 0.75 * rmse(means.expand_as(data.x), data.x, gaps)


def test_nothing_missing_and_nothing_known():
    x = torch.ones(4, 2)
    assert impute(x, torch.zeros(4, 2, dtype=torch.bool), PATH).x is x
    gaps = torch.tensor([[True, False]] * 4)
    assert torch.equal(fill_missing(x, gaps, PATH), torch.tensor([[0.0, 1.0]] * 4))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"missing": torch.zeros(4, 3, dtype=torch.bool)}, "'missing'"),
        ({"missing": torch.zeros(4, 2)}, "'missing'"),
        ({"x": torch.tensor([[1.0, torch.inf]] * 4)}, "'x' must not have infinite"),
        ({"edge_index": torch.tensor([[0], [9]])}, "'edge_index' names node 9"),
        ({"edge_index": torch.tensor([[0], [1]])}, "'edge_index' must be undirected"),
        ({"hidden": 0.0}, "'hidden'"),
        ({"rounds": 0}, "'rounds'"),
        ({"lambda1": (-1.0,)}, "'lambda1'"),
        ({"lambda2": ()}, "'lambda2' must name a strength"),
        ({"x": torch.ones(4, 2, dtype=torch.int64)}, "'x' must be of single or double precision"),
        ({"x": torch.ones(4, 2, dtype=torch.float16)}, "'x' must be of single or double precision"),
        ({"edge_index": torch.eye(5).to_sparse()}, r"'edge_index' must have shape \[4, 4\]"),
        ({"nodes": ("far",)}, "'nodes'"),
        ({"groups": [1]}, "'groups'"),
    ],
)
def test_bad_input_is_named(options, named):
    missing = torch.zeros(4, 2, dtype=torch.bool)
    missing[0, 0] = True
    with pytest.raises(ValueError, match=named):
        impute(**{"x": torch.ones(4, 2), "missing": missing, "edge_index": PATH, **options})
