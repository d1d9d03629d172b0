import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import digits
from bigcn.noise import NoiseLevel
from bigcn.smoothing import denoise, denoising
from bigcn.smoothing.neighbours import nearest_edges


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(denoising, "ENTRIES", 2_000)


@pytest.fixture(scope="module")
def few() -> Data:
    data = digits()
    # Zeros, ones and twos, with the pixels in the middle.
    small = data.subgraph(data.y < 3)
    small.x = small.x[:, 16:48]
    return small


def error(result, clean: torch.Tensor) -> float:
    return float((result.x - clean).square().mean())


def line(rows: int) -> torch.Tensor:
    source = torch.arange(rows - 1)
    return torch.cat([torch.stack([source, source + 1]), torch.stack([source + 1, source])], dim=1)


def test_noisy_digits_are_cleaned_in_both_directions():
    clean = digits()
    noisy = NoiseLevel(0.5, seed=1)(clean)
    grid = {"lambda1": (0.0, 2.0, 4.0), "lambda2": (0.0, 10.0), "ranks": (4, 12)}
    result = denoise(noisy.x, noisy.edge_index, **grid)
    one_way = [denoise(noisy.x, noisy.edge_index, **{**grid, name: (0.0,)}) for name in ("lambda1", "lambda2")]
    assert result.directions == "both"
    assert [other.directions for other in one_way] == ["features", "nodes"]
    assert error(result, clean.x) < 0.9 * min(error(other, clean.x) for other in one_way)
    assert error(result, clean.x) < 0.25 / 5
    assert result.best("both") == result.choice
    assert result.best("nodes").lambda2 == 0
    assert len(result.feature_graph.top_edges(5)) == 5


def test_known_noise_estimates_the_error_of_the_result(few):
    for level in (0.1, 0.6):
        noisy = NoiseLevel(level, seed=2)(few)
        result = denoise(noisy.x, noisy.edge_index, noise=level)
        assert result.criterion == "noise"
        assert result.choice.error == pytest.approx(error(result, few.x), rel=0.15)
        assert error(result, few.x) < 0.8 * level**2


def test_no_noise_is_left_alone(few):
    result = denoise(few.x, few.edge_index, noise=0.0)
    assert result.directions == "none"
    assert torch.equal(result.x, few.x)


def test_where_nothing_goes_together_nothing_is_done():
    x = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
    edges = torch.randint(300, (2, 900), generator=torch.Generator().manual_seed(1))
    edges = torch.cat([edges, edges.flip(0)], dim=1)[:, edges[0].repeat(2) != edges[1].repeat(2)].unique(dim=1)
    result = denoise(x, edges)
    assert result.directions == "none"
    assert torch.equal(result.x, x)


def test_one_direction_alone_is_said_so():
    generator = torch.Generator().manual_seed(0)
    place = torch.linspace(0, 12, 300)
    # Columns that are strangers to each other, smooth along the path, and the same rows shuffled, with alike columns.
    smooth_rows = torch.stack([(place * f).sin() for f in (1.0, 1.7, 2.3, 3.1)], dim=1)
    noise = 0.3 * torch.randn(300, 4, generator=generator)
    assert denoise(smooth_rows + noise, line(300), ranks=(1,)).directions == "nodes"
    alike = torch.randn(300, 1, generator=generator).expand(-1, 4) * torch.tensor([1.0, -1.0, 1.5, 1.0])
    assert denoise(alike + noise, line(300), ranks=(1,)).directions == "features"
    assert denoise(alike + noise, None, ranks=(1,)).directions == "features"


def test_columns_that_nothing_restores_are_told():
    generator = torch.Generator().manual_seed(0)
    place = torch.linspace(0, 12, 400)
    smooth_rows = torch.stack([(place * f).sin() for f in (1.0, 1.7)], dim=1)
    strangers = torch.randn(400, 3, generator=generator)  # nobody knows about these
    x = torch.cat([smooth_rows + 0.1 * torch.randn(400, 2, generator=generator), strangers, torch.ones(400, 1)], dim=1)
    explained = denoise(x, line(400)).explained
    assert (explained[:2] > 0.8).all()
    assert (explained[2:5] < 0.1).all()
    assert explained[5] == 0.0  # a constant leaves nothing to restore
    together = denoise(x, line(400), groups=[0, 1, 1, 2, 3, 4]).explained
    assert 0.1 < together[1] == together[2] < 0.8
    assert denoise(x, line(400), noise=0.1).explained is None


def test_missing_values_are_filled_and_never_judged_by(few):
    noisy = NoiseLevel(0.3, seed=3)(few)
    gaps = torch.from_numpy(np.random.default_rng(0).random(few.x.shape) < 0.2)
    result = denoise(torch.where(gaps, torch.nan, noisy.x), noisy.edge_index)
    means = few.x.mean(dim=0).expand_as(few.x)
    assert float((result.x - few.x)[gaps].square().mean()) < 0.6 * float((means - few.x)[gaps].square().mean())
    assert float((result.x - few.x)[~gaps].square().mean()) < 0.5 * 0.09


def test_columns_of_a_category_do_not_give_each_other_away():
    generator = np.random.default_rng(0)
    x = torch.from_numpy(np.eye(3)[generator.integers(3, size=400)]).float()
    assert denoise(x, None, ranks=(1, 2)).directions == "features"
    assert denoise(x, None, ranks=(1, 2), groups=[5, 5, 5]).directions == "none"


def test_a_large_table_is_judged_by_a_part(few, monkeypatch):
    monkeypatch.setattr(denoising, "CHOOSE_ON", 150)
    noisy = NoiseLevel(0.5, seed=1)(few)
    assert error(denoise(noisy.x, noisy.edge_index), few.x) < 0.25 / 3


def test_a_constant_table_without_noise_stays():
    assert torch.equal(denoise(torch.ones(20, 3), line(20), noise=0.0).x, torch.ones(20, 3))


def test_a_table_may_be_part_of_a_computation(few):
    learned = few.x.clone().requires_grad_()
    assert torch.equal(denoise(learned, few.edge_index).x, denoise(few.x, few.edge_index).x)


def test_weights_of_edges_count():
    x = torch.tensor([[0.0], [1.0], [5.0]]) + torch.linspace(0, 0.5, 30).repeat(3, 1)
    edges = nearest_edges(x, 2)
    weight = torch.ones(edges.size(1))
    weight[(edges == 2).any(dim=0)] = 0.01
    options = {"lambda1": (4.0,), "lambda2": (0.0,), "noise": 10.0}
    assert not torch.allclose(denoise(x, edges, **options).x, denoise(x, edges, weight, **options).x, atol=0.05)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"x": torch.full((4, 2), torch.inf)}, "'x'"),
        ({"edge_index": torch.tensor([[0], [9]])}, "'edge_index' names node 9"),
        ({"noise": -1.0}, "'noise'"),
        ({"noise": float("nan")}, "'noise'"),
        ({"hidden": 1.0}, "'hidden'"),
        ({"lambda2": (-1.0,)}, "'lambda2'"),
        ({"lambda2": ()}, "'lambda2'"),
        ({"x": torch.ones(4, 2).bfloat16()}, "single or double precision"),
        ({"groups": [1, 2, 3]}, "'groups'"),
        ({"x": torch.full((4, 2), torch.nan)}, "too few known entries"),
    ],
)
def test_bad_input_is_named(options, named):
    with pytest.raises(ValueError, match=named):
        denoise(**{"x": torch.randn(4, 2), "edge_index": line(4), **options})
