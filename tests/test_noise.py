"""Noise: what holds for every kind of it, and the kinds by name."""

import doctest
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor
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

MakeRing = Callable[..., Data]
EdgeSet = Callable[[Tensor], set[tuple[int, int]]]

ONE_OF_EACH = [
    NoiseLevel(0.5, seed=3),
    NoiseRate(0.4, seed=3),
    ColumnNoise(0.5, level=2.0, seed=3),
    FeatureRate(0.5, seed=3),
    StructureMistakes(0.1, seed=3),
]
SPARSE = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]
NO_EDGES = torch.empty(2, 0, dtype=torch.long)

each = pytest.mark.parametrize("noise", ONE_OF_EACH, ids=repr)


@each
def test_same_seed_same_noise_and_input_untouched(ring: MakeRing, edge_set: EdgeSet, noise: Noise) -> None:
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
        assert edge_set(other(data).edge_index) != edge_set(first.edge_index)
    else:
        assert not torch.equal(other(data).x, first.x)


@each
def test_global_generators_are_left_alone(ring: MakeRing, noise: Noise) -> None:
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
def test_no_state_between_threads(ring: MakeRing, noise: Noise) -> None:
    graphs = [ring(n, d) for n, d in [(10, 8), (30, 5), (20, 12)] * 4]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(noise, graphs))
    for graph, result in zip(graphs, together, strict=True):
        alone = noise(graph)
        assert torch.equal(alone.x, result.x)
        assert torch.equal(alone.edge_index, result.edge_index)


@each
def test_every_nonnegative_integer_is_a_seed(ring: MakeRing, noise: Noise) -> None:
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
            act(Data(x=x, edge_index=NO_EDGES))


@each
def test_graph_with_several_kinds_of_node_is_refused(noise: Noise) -> None:
    data = HeteroData()
    data["paper"].x = torch.zeros(3, 2)
    with pytest.raises(ValueError, match=r"data\.(x|edge_index) must be"):
        noise(data)


def test_compose_batch_and_move(ring: MakeRing) -> None:
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
def test_noise_at_zero_changes_nothing(ring: MakeRing, noise: Noise) -> None:
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
    data = Data(x=torch.zeros(200, 200), edge_index=NO_EDGES)
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
    data = Data(x=torch.zeros(6, 4), edge_index=torch.tensor([[0, 1, 2, 5], [1, 0, 5, 2]]))
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
def test_same_noise_on_cuda(ring: MakeRing, noise: Noise, dtype: torch.dtype) -> None:
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
def test_same_noise_on_cuda_sparse(ring: MakeRing, noise: Noise, layout: torch.layout) -> None:
    data = ring()
    data.x = data.x.to_sparse(layout=layout)
    assert torch.equal(noise(data).x.to_dense(), noise(data.clone().to("cuda")).x.to_dense().cpu())


@pytest.mark.parametrize("noise", ONE_OF_EACH[:3], ids=repr)
@pytest.mark.parametrize("layout", SPARSE)
def test_noise_makes_sparse_features_dense(ring: MakeRing, noise: Noise, layout: torch.layout) -> None:
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


def test_noise_passes_gradients_on(ring: MakeRing) -> None:
    for noise in ONE_OF_EACH[:4]:
        data = ring()
        data.x.requires_grad_()
        noise(data).x.sum().backward()
        expected = torch.ones_like(data.x)
        if isinstance(noise, FeatureRate):
            expected = torch.zeros_like(data.x).index_fill(1, noise.changes(data).columns, 1.0)
        assert torch.equal(data.x.grad, expected)


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
