import doctest
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.testing import onlyCUDA
from torch_geometric.transforms import Compose, NormalizeFeatures

import bigcn.noise
from bigcn.noise import (
    CASES,
    ColumnNoise,
    FeatureRate,
    Noise,
    NoiseLevel,
    NoiseRate,
    StructureMistakes,
    make_noise,
)

ONE_OF_EACH = [
    NoiseLevel(0.5, seed=3),
    NoiseRate(0.4, seed=3),
    ColumnNoise(0.5, level=2.0, seed=3),
    FeatureRate(0.5, seed=3),
    StructureMistakes(0.1, seed=3),
]
SPARSE = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]

each = pytest.mark.parametrize("noise", ONE_OF_EACH, ids=repr)


def undirected(pairs: list[tuple[int, int]]) -> Tensor:
    edges = sorted({edge for i, j in pairs for edge in ((i, j), (j, i))})
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()


def ring(n: int = 20, d: int = 12, **attributes: object) -> Data:
    x = torch.arange(n * d, dtype=torch.float).reshape(n, d) / (n * d)
    return Data(x=x, edge_index=undirected([(i, (i + 1) % n) for i in range(n)]), **attributes)


def as_set(edge_index: Tensor) -> set[tuple[int, int]]:
    edges = [(int(i), int(j)) for i, j in edge_index.t()]
    assert len(edges) == len(set(edges))
    return set(edges)


def pairs_of(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(i, j) for i, j in edges if i < j}


def dense(x: Tensor) -> Tensor:
    return x.to_dense()


# What holds for every noise -------------------------------------------------------------------------------------------


@each
def test_same_seed_same_noise_and_input_untouched(noise: Noise) -> None:
    data = ring(edge_weight=torch.rand(40))
    before = data.clone()
    first, second = noise(data), noise(data)
    assert set(data.keys()) == set(before.keys())
    for key in before.keys():  # noqa: SIM118 (Data is no dict)
        assert torch.equal(data[key], before[key])
    assert set(first.keys()) == set(before.keys())
    for key in first.keys():  # noqa: SIM118
        assert torch.equal(first[key], second[key])
    other = type(noise)(*[value for key, value in vars(noise).items() if key != "seed"], seed=noise.seed + 1)
    if isinstance(noise, StructureMistakes):
        assert as_set(other(data).edge_index) != as_set(first.edge_index)
    else:
        assert not torch.equal(other(data).x, first.x)


@each
def test_global_generators_are_left_alone(noise: Noise) -> None:
    data = ring()
    random.seed(0), np.random.seed(0), torch.manual_seed(0)  # noqa: NPY002 (the point is the global generator)
    states = random.getstate(), str(np.random.get_state()), torch.get_rng_state()  # noqa: NPY002
    first = noise(data)
    noise.changes(data)
    assert random.getstate() == states[0]
    assert str(np.random.get_state()) == states[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    assert torch.equal(noise(data).x, first.x)
    assert torch.equal(noise(data).edge_index, first.edge_index)


@each
def test_no_state_between_threads(noise: Noise) -> None:
    graphs = [ring(n, d) for n, d in [(10, 8), (30, 5), (20, 12)] * 4]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(noise, graphs))
    for graph, result in zip(graphs, together, strict=True):
        alone = noise(graph)
        assert torch.equal(alone.x, result.x)
        assert torch.equal(alone.edge_index, result.edge_index)


@each
def test_every_nonnegative_integer_is_a_seed(noise: Noise) -> None:
    values = [value for key, value in vars(noise).items() if key != "seed"]
    seeds = [0, 1, 2**32, 2**32 + 1, 2**64, 2**200, np.int64(7)]
    results = [type(noise)(*values, seed=seed)(ring(60, 60)) for seed in seeds]
    drawn = {(*result.x.flatten().tolist(), *result.edge_index.flatten().tolist()) for result in results}
    assert len(drawn) == len(seeds)


@each
@pytest.mark.parametrize("seed", [-1, 1.5, 1.0, None, "1", True, float("nan")])
def test_bad_seed(noise: Noise, seed: object) -> None:
    values = [value for key, value in vars(noise).items() if key != "seed"]
    with pytest.raises(ValueError, match=r"^seed must be a non-negative integer, got .*\.$"):
        type(noise)(*values, seed=seed)


@pytest.mark.parametrize("kind", [NoiseLevel, ColumnNoise])
@pytest.mark.parametrize("level", [-0.1, float("nan"), float("inf"), "0.5", None, True, 1j, torch.tensor(0.5)])
def test_bad_level(kind: type, level: object) -> None:
    with pytest.raises(ValueError, match=r"^level must be a finite number, not negative, got .*\.$"):
        kind(level=level, **({"rate": 0.5} if kind is ColumnNoise else {}))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(NoiseRate, "rate"), (ColumnNoise, "rate"), (FeatureRate, "rate"), (StructureMistakes, "ratio")],
)
@pytest.mark.parametrize("value", [-1e-9, 1.0001, float("nan"), float("inf"), -float("inf"), "0.5", None, False])
def test_bad_rate(kind: type, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be a number from 0 to 1, got .*\.$"):
        kind(value)


@pytest.mark.parametrize("noise", ONE_OF_EACH[:4], ids=repr)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (None, "data.x must be a matrix"),
        (torch.zeros(4), "data.x must be a matrix"),
        (torch.zeros(4, 3, 2), "data.x must be a matrix"),
        (torch.zeros(4, 0), "data.x must be a matrix"),
        (torch.zeros(4, 3, dtype=torch.cfloat), "data.x must be a matrix"),
        (np.zeros((4, 3)), "data.x must be a matrix"),
        (torch.tensor([[1.0, float("nan")]]), "NaN or infinite"),
        (torch.tensor([[1.0, -float("inf")]]), "NaN or infinite"),
        (torch.tensor([[0.0, float("nan")]]).to_sparse_csr(), "NaN or infinite"),
    ],
)
def test_bad_features(noise: Noise, x: object, message: str) -> None:
    for act in (noise, noise.changes):
        with pytest.raises(ValueError, match=message):
            act(Data(x=x, edge_index=undirected([])))


@each
def test_graph_with_several_kinds_of_node_is_refused(noise: Noise) -> None:
    data = HeteroData()
    data["paper"].x = torch.zeros(3, 2)
    with pytest.raises(ValueError, match=r"data\.(x|edge_index) must be"):
        noise(data)


def test_compose_batch_and_move() -> None:
    data = ring(y=torch.arange(20))
    steps = [FeatureRate(0.5), NoiseLevel(0.1), StructureMistakes(0.05), NormalizeFeatures()]
    result = Compose(steps)(data)
    expected = steps[3](steps[2](steps[1](steps[0](data))))
    assert torch.equal(result.x, expected.x)
    assert torch.equal(result.edge_index, expected.edge_index)
    assert result.x.shape == (20, 6)
    assert torch.equal(result.y, data.y)
    result.validate()
    batch = Batch.from_data_list([result, result.to("cpu")])
    assert batch.num_nodes == 40
    assert torch.equal(batch[1].edge_index, result.edge_index)


@each
def test_noise_at_zero_changes_nothing(noise: Noise) -> None:
    data = ring()
    nothing = type(noise)(1.0 if isinstance(noise, FeatureRate) else 0.0)
    assert torch.equal(nothing(data).x, data.x)
    assert torch.equal(nothing(data).edge_index, data.edge_index)
    record = nothing.changes(data)
    for changed in (record.nodes, record.added, record.removed):
        assert changed is None or changed.numel() == 0
    if record.columns is not None:
        assert record.columns.tolist() == (list(range(12)) if isinstance(noise, FeatureRate) else [])


def test_classes_do_not_share_a_stream() -> None:
    data = Data(x=torch.zeros(200, 200), edge_index=undirected([]))
    level, column = NoiseLevel(1.0)(data).x.flatten(), ColumnNoise(1.0)(data).x
    for other in (column.flatten(), column.t().flatten()):
        assert abs(float(torch.corrcoef(torch.stack([level, other]))[0, 1])) < 5 / 200
    drawn = [
        NoiseRate(0.5).changes(data).nodes.tolist(),
        ColumnNoise(0.5).changes(data).columns.tolist(),
        FeatureRate(0.5).changes(data).columns.tolist(),
    ]
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        # Two independent halves of 200 share 50 ± 3.5.
        assert abs(len(set(drawn[i]) & set(drawn[j])) - 50) < 20


def test_a_seed_means_the_same_everywhere() -> None:
    data = Data(x=torch.zeros(6, 4), edge_index=undirected([(0, 1), (2, 5)]))
    assert NoiseLevel(1.0, seed=5)(data).x[0].tolist() == pytest.approx([1.1249653, -0.24645303, 0.10549051, 1.2159426])
    assert NoiseRate(0.5, seed=5).changes(data).nodes.tolist() == [1, 3, 4]
    assert ColumnNoise(0.5, seed=5).changes(data).columns.tolist() == [0, 1]
    assert FeatureRate(0.5, seed=5).changes(data).columns.tolist() == [0, 2]
    record = StructureMistakes(0.3, seed=5).changes(data)
    assert record.added.tolist() == [[0, 1, 2, 3], [2, 3, 3, 5]]
    assert record.removed.tolist() == [[0], [1]]


@onlyCUDA
@each
@pytest.mark.parametrize("dtype", [torch.float, torch.double, torch.half, torch.bfloat16])
def test_same_noise_on_cuda(noise: Noise, dtype: torch.dtype) -> None:
    data = ring(300, 40, edge_weight=torch.rand(600))
    data.x = data.x.to(dtype)
    here, there = noise(data), noise(data.clone().to("cuda"))
    for key in here.keys():  # noqa: SIM118
        assert there[key].is_cuda
        assert torch.equal(here[key], there[key].cpu())
    mine, theirs = vars(noise.changes(data)), vars(noise.changes(data.clone().to("cuda")))
    for key, value in mine.items():
        assert (value is None) == (theirs[key] is None)
        assert value is None or torch.equal(value, theirs[key].cpu())


@onlyCUDA
@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("noise", ONE_OF_EACH[:4], ids=repr)
def test_same_noise_on_cuda_sparse(noise: Noise, layout: torch.layout) -> None:
    data = ring()
    data.x = data.x.to_sparse(layout=layout)
    assert torch.equal(dense(noise(data).x), dense(noise(data.clone().to("cuda")).x).cpu())


# Noise on features ----------------------------------------------------------------------------------------------------


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


def test_noise_level_record() -> None:
    assert NoiseLevel(0.1).changes(ring(7)).nodes.tolist() == list(range(7))


def test_levels_share_their_noise() -> None:
    data = Data(x=torch.zeros(5, 4))
    torch.testing.assert_close(NoiseLevel(0.8)(data).x, 4 * NoiseLevel(0.2)(data).x)


@pytest.mark.parametrize("n", [1, 7, 100])
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.333, 0.5, 0.999, 1.0])
def test_noise_rate_changes_exactly_so_many_nodes(n: int, rate: float) -> None:
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
def test_column_noise_changes_exactly_so_many_columns(d: int, rate: float) -> None:
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


@pytest.mark.parametrize("noise", ONE_OF_EACH[:3], ids=repr)
@pytest.mark.parametrize("layout", SPARSE)
def test_noise_makes_sparse_features_dense(noise: Noise, layout: torch.layout) -> None:
    data = ring()
    data.x[data.x < 0.7] = 0
    sparse = data.clone()
    sparse.x = data.x.to_sparse(layout=layout)
    assert torch.equal(noise(sparse).x, noise(data).x)
    assert sparse.x.layout == layout
    for field, value in vars(noise.changes(data)).items():
        assert value is None or torch.equal(value, getattr(noise.changes(sparse), field))


@pytest.mark.parametrize("noise", ONE_OF_EACH[:3], ids=repr)
def test_noise_keeps_the_type_of_real_features(noise: Noise) -> None:
    for dtype in (torch.half, torch.bfloat16, torch.float, torch.double):
        assert noise(Data(x=torch.ones(6, 4, dtype=dtype))).x.dtype == dtype
    real = noise(Data(x=torch.ones(6, 4)))
    for dtype in (torch.bool, torch.uint8, torch.long):
        assert torch.equal(noise(Data(x=torch.ones(6, 4, dtype=dtype))).x, real.x)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(("level", "dtype"), [(1e300, torch.float), (1e6, torch.half)])
def test_noise_that_overflows_is_refused(level: float, dtype: torch.dtype) -> None:
    for noise in (NoiseLevel(level), ColumnNoise(1.0, level=level)):
        with pytest.raises(ValueError, match="level is too large"):
            noise(Data(x=torch.ones(50, 4, dtype=dtype)))


def test_noise_passes_gradients_on() -> None:
    for noise in ONE_OF_EACH[:4]:
        data = ring()
        data.x.requires_grad_()
        noise(data).x.sum().backward()
        expected = torch.ones_like(data.x)
        if isinstance(noise, FeatureRate):
            expected = torch.zeros_like(data.x).index_fill(1, noise.changes(data).columns, 1.0)
        assert torch.equal(data.x.grad, expected)


@given(d=st.integers(1, 40), rate=st.floats(0, 1), seed=st.integers(0, 2**70))
@settings(max_examples=50, deadline=None)
def test_feature_rate_keeps_so_many_columns_in_order(d: int, rate: float, seed: int) -> None:
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


@pytest.mark.parametrize("layout", SPARSE)
def test_feature_rate_keeps_sparse_features_sparse(layout: torch.layout) -> None:
    data = ring()
    data.x[data.x < 0.7] = 0
    sparse = data.clone()
    sparse.x = data.x.to_sparse(layout=layout)
    result = FeatureRate(0.5)(sparse).x
    assert result.layout == layout
    assert layout != torch.sparse_coo or result.is_coalesced()
    assert torch.equal(dense(result), FeatureRate(0.5)(data).x)
    assert torch.equal(dense(sparse.x), data.x)


def test_feature_rate_sums_repeated_sparse_entries() -> None:
    x = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.tensor([2.0, 3.0]), (2, 3))
    assert torch.equal(dense(FeatureRate(1.0)(Data(x=x)).x), torch.tensor([[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]))


# Mistakes in the structure --------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    n = draw(st.integers(0, 9))
    pairs = [(i, j) for i in range(n) for j in range(i, n) if draw(st.booleans())]
    edges = undirected(pairs)
    edges = edges[:, draw(st.permutations(range(edges.size(1))))]
    weight = torch.arange(2.0, 2 + edges.size(1)) if draw(st.booleans()) else None
    dtype = draw(st.sampled_from([torch.int32, torch.int64]))
    return Data(num_nodes=n, edge_index=edges.to(dtype), edge_weight=weight)


@given(data=graphs(), ratio=st.floats(0, 1), seed=st.integers(0, 2**70))
@settings(max_examples=200, deadline=None)
def test_structure_mistakes_properties(data: Data, ratio: float, seed: int) -> None:
    before, noise = data.clone(), StructureMistakes(ratio, seed=seed)
    result, record = noise(data), noise.changes(data)
    assert torch.equal(data.edge_index, before.edge_index)
    old, new = as_set(data.edge_index), as_set(result.edge_index)

    assert {(j, i) for i, j in new} == new
    assert {(i, j) for i, j in new if i == j} == {(i, j) for i, j in old if i == j}
    assert result.edge_index.t().tolist() == [list(edge) for edge in sorted(new)]
    assert result.edge_index.dtype == data.edge_index.dtype
    assert result.num_nodes == data.num_nodes

    added, removed = as_set(record.added), as_set(record.removed)
    assert added == pairs_of(new - old)
    assert removed == pairs_of(old - new)
    assert [tuple(pair) for pair in record.added.t().tolist()] == sorted(added)
    assert [tuple(pair) for pair in record.removed.t().tolist()] == sorted(removed)

    assert torch.equal(noise(data).edge_index, result.edge_index)
    # The flips depend on the nodes alone, so the same mistakes once more undo themselves.
    assert as_set(noise(result).edge_index) == old

    if data.edge_weight is not None:
        weights = {tuple(e): float(w) for e, w in zip(data.edge_index.t().tolist(), data.edge_weight, strict=True)}
        expected = [weights.get(tuple(edge), 1.0) for edge in result.edge_index.t().tolist()]
        assert result.edge_weight.tolist() == expected


@pytest.mark.parametrize("n", range(12))
def test_every_pair_is_flipped_at_ratio_one(n: int) -> None:
    data = Data(num_nodes=n, edge_index=undirected([(i, i + 1) for i in range(n - 1)] + [(0, 0)] * (n > 0)))
    everything = {(i, j) for i in range(n) for j in range(n) if i != j}
    loops = {(0, 0)} if n else set()
    result = StructureMistakes(1.0)(data)
    assert as_set(result.edge_index) == (everything - as_set(data.edge_index)) | loops
    empty = Data(num_nodes=n, edge_index=undirected([]))
    assert as_set(StructureMistakes(1.0)(empty).edge_index) == everything


@pytest.mark.parametrize("n", [9, 10])
@pytest.mark.parametrize("ratio", [0.02, 0.4])
def test_structure_mistakes_follow_their_definition(n: int, ratio: float) -> None:
    """Against the dense definition: an upper triangle of independent coins, mirrored, added modulo two."""
    data = Data(num_nodes=n, edge_index=undirected([(i, (i + 1) % n) for i in range(n)]))
    adjacency = torch.zeros(n, n, dtype=torch.bool)
    adjacency[data.edge_index[0], data.edge_index[1]] = True
    runs, pairs = 2000, n * (n - 1) // 2
    coins = torch.rand(runs, n, n, generator=torch.Generator().manual_seed(0)) < ratio
    upper = torch.triu(coins, diagonal=1)
    direct = adjacency ^ (upper | upper.transpose(1, 2))

    ours = torch.zeros(runs, n, n, dtype=torch.bool)
    for seed in range(runs):
        row, col = StructureMistakes(ratio, seed=seed)(data).edge_index
        ours[seed, row, col] = True

    triangle = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
    flips = {"ours": (ours ^ adjacency)[:, triangle], "direct": (direct ^ adjacency)[:, triangle]}
    for flipped in flips.values():  # the second shows that the yardstick itself is right
        # Each pair at its rate: a sum of squared standard scores, one for each pair.
        scores = (flipped.sum(0) - runs * ratio) / (runs * ratio * (1 - ratio)) ** 0.5
        assert 1e-4 < stats.chi2.sf(float(scores.square().sum()), df=pairs) < 1 - 1e-4
        # The number of flips, whose spread tells whether pairs are independent.
        counts = flipped.sum(1).numpy()
        edges = np.unique(stats.binom.ppf([0.2, 0.4, 0.6, 0.8], pairs, ratio))
        observed = np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1)
        expected = np.diff(np.concatenate([[0], stats.binom.cdf(edges, pairs, ratio), [1]])) * runs
        assert stats.chisquare(observed, expected).pvalue > 1e-4
        # Edges are lost at the rate at which non-edges appear: each is flipped as any pair.
        lost = int(flipped[:, adjacency[triangle]].sum())
        assert stats.binomtest(lost, int(flipped.sum()), n / pairs).pvalue > 1e-4
    table = [[int(f.sum()), f.numel() - int(f.sum())] for f in flips.values()]
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_structure_mistakes_in_a_million_nodes() -> None:
    n, ratio = 1_000_000, 1e-7
    i = torch.arange(n - 1)
    data = Data(num_nodes=n, edge_index=torch.stack([torch.cat([i, i + 1]), torch.cat([i + 1, i])]))
    noise = StructureMistakes(ratio, seed=11)
    result, record = noise(data), noise.changes(data)
    flips = torch.cat([record.added, record.removed], dim=1)
    assert stats.binomtest(flips.size(1), n * (n - 1) // 2, ratio).pvalue > 1e-4
    assert bool((flips[0] < flips[1]).all())
    assert bool((flips[0] >= 0).all())
    assert bool((flips[1] < n).all())
    # Ends everywhere, and each pair of tenths of the nodes as often as any other.
    counts = torch.bincount((flips[0] // 100_000) * 10 + flips[1] // 100_000, minlength=100).reshape(10, 10)
    expected = (torch.triu(torch.ones(10, 10), 1) + torch.eye(10) / 2).double()
    inside = expected > 0
    expected = expected[inside] / expected[inside].sum() * flips.size(1)
    assert int(counts[~inside].sum()) == 0
    assert stats.chisquare(counts[inside].numpy(), expected.numpy()).pvalue > 1e-4

    assert result.num_edges == data.num_edges + 2 * (record.added.size(1) - record.removed.size(1))
    key = result.edge_index[0] * n + result.edge_index[1]
    assert bool((key[1:] > key[:-1]).all())
    there = torch.isin(record.added[0] * n + record.added[1], key)
    assert bool(there.all())


def test_many_mistakes_in_a_large_graph_touch_edges_too() -> None:
    data = ring(3000, 1)
    record = StructureMistakes(0.01, seed=2).changes(data)
    assert stats.binomtest(record.removed.size(1), 3000, 0.01).pvalue > 1e-4
    assert stats.binomtest(record.added.size(1), 3000 * 2999 // 2 - 3000, 0.01).pvalue > 1e-4


@pytest.mark.parametrize("layout", SPARSE)
def test_structure_mistakes_leave_sparse_features_alone(layout: torch.layout) -> None:
    data = ring()
    data.x = data.x.to_sparse(layout=layout)
    result = StructureMistakes(0.1, seed=3)(data)
    assert result.x is data.x
    assert torch.equal(result.edge_index, StructureMistakes(0.1, seed=3)(ring()).edge_index)


def test_structure_mistakes_keep_an_edge_index_object() -> None:
    data = ring()
    plain = StructureMistakes(0.2)(data).edge_index
    data.edge_index = EdgeIndex(data.edge_index, sparse_size=(20, 20))
    result = StructureMistakes(0.2)(data).edge_index
    assert isinstance(result, EdgeIndex)
    assert torch.equal(result.validate().as_tensor(), plain)
    assert (result.sort_order, result.is_undirected, result.sparse_size()) == ("row", True, (20, 20))


def test_weights_of_several_columns() -> None:
    data = ring(edge_weight=torch.full((40, 2), 5.0))
    noise = StructureMistakes(0.2)
    result, added = noise(data), as_set(noise.changes(data).added)
    assert len(added) > 0
    for (i, j), weight in zip(result.edge_index.t().tolist(), result.edge_weight.tolist(), strict=True):
        assert weight == ([1.0, 1.0] if (min(i, j), max(i, j)) in added else [5.0, 5.0])


def test_inferred_number_of_nodes_does_not_shrink() -> None:
    data = Data(edge_index=undirected([(0, 2), (1, 2)]))
    with pytest.warns(UserWarning, match="num_nodes"):
        result = StructureMistakes(1.0)(data)
    assert (result.num_nodes, as_set(result.edge_index)) == (3, {(0, 1), (1, 0)})
    assert "num_nodes" not in data


def test_lists_of_edges_of_their_own_are_left_alone() -> None:
    labels = torch.tensor([[0, 1], [2, 3]])
    data = ring(edge_label_index=labels, edge_label=torch.ones(2), train_pos_edge_index=labels)
    result = StructureMistakes(0.1)(data)
    assert torch.equal(result.edge_label_index, labels)
    assert torch.equal(result.train_pos_edge_index, labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": None}, r"data\.edge_index must be a tensor of integers"),
        ({"edge_index": torch.zeros(2, 3)}, r"data\.edge_index must be a tensor of integers"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, r"data\.edge_index must be a tensor of integers"),
        ({"edge_index": torch.zeros(2, dtype=torch.long)}, r"data\.edge_index must be a tensor of integers"),
        ({"edge_index": [[0, 1], [1, 0]]}, r"data\.edge_index must be a tensor of integers"),
        ({"edge_index": torch.eye(20).to_sparse_csr()}, r"data\.edge_index must be a tensor of integers"),
        ({"edge_index": torch.tensor([[0, 20], [20, 0]])}, r"data\.edge_index must name nodes from 0 to 19"),
        ({"edge_index": torch.tensor([[0, -1], [-1, 0]])}, r"data\.edge_index must name nodes from 0 to 19"),
        ({"edge_index": torch.tensor([[0, 1, 2], [1, 0, 3]])}, r"each edge once in both directions"),
        ({"edge_index": torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])}, r"each edge once in both directions"),
        ({"edge_index": torch.tensor([[2, 2], [2, 2]])}, r"each edge once in both directions"),
        ({"edge_weight": torch.ones(39)}, r"data\.edge_weight must have one entry for each edge"),
        ({"edge_weight": torch.tensor(1.0)}, r"data\.edge_weight must have one entry for each edge"),
        ({"edge_weight": np.ones(40)}, r"data\.edge_weight must have one entry for each edge"),
        ({"edge_attr": torch.ones(40)}, r"data\.edge_attr is unknown for the edges that are added"),
        ({"edge_attr": torch.ones(40, 2)}, r"data\.edge_attr is unknown for the edges that are added"),
        ({"edge_type": torch.ones(40)}, r"data\.edge_type is unknown for the edges that are added"),
        ({"adj_t": torch.eye(20).to_sparse_csr()}, r"data\.adj_t is unknown for the edges that are added"),
    ],
)
def test_bad_edges(change: dict[str, object], message: str) -> None:
    data = ring()
    for key, value in change.items():
        data[key] = value
    for act in (StructureMistakes(0.1), StructureMistakes(0.1).changes):
        with pytest.raises(ValueError, match=message):
            act(data)


def test_a_batch_of_graphs_is_refused() -> None:
    with pytest.raises(ValueError, match="data must be a single graph"):
        StructureMistakes(0.1)(Batch.from_data_list([ring(), ring()]))


# By name --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_make_noise(case: str) -> None:
    noise = make_noise(case, 0.25, 9)
    assert isinstance(noise, CASES[case])
    assert next(iter(vars(noise).values())) == 0.25
    assert noise.seed == 9
    assert eval(repr(noise), vars(bigcn.noise)).__dict__ == noise.__dict__


def test_make_noise_clean_and_unknown() -> None:
    assert list(CASES) == ["noise-level", "noise-rate", "column-noise", "structure-mistakes", "feature-rate"]
    assert make_noise("clean", 0.0, 0) is None
    with pytest.raises(ValueError, match=r"one of clean, noise-level, .*, feature-rate, got 'salt'"):
        make_noise("salt", 0.1, 0)
    with pytest.raises(ValueError, match="rate must be"):
        make_noise("feature-rate", 1.5, 0)


def test_example_in_the_documentation() -> None:
    assert doctest.testmod(bigcn.noise).failed == 0
