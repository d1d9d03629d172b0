"""Mistakes in the structure of a graph, against the dense definition of them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from bigcn.noise import StructureMistakes

MakeRing = Callable[..., Data]
EdgeSet = Callable[[Tensor], set[tuple[int, int]]]


def undirected(pairs: list[tuple[int, int]]) -> Tensor:
    edges = sorted({edge for i, j in pairs for edge in ((i, j), (j, i))})
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()


def pairs_of(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(i, j) for i, j in edges if i < j}


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
def test_structure_mistakes_properties(edge_set: EdgeSet, data: Data, ratio: float, seed: int) -> None:
    before, noise = data.clone(), StructureMistakes(ratio, seed=seed)
    result, record = noise(data), noise.changes(data)
    assert torch.equal(data.edge_index, before.edge_index)
    old, new = edge_set(data.edge_index), edge_set(result.edge_index)

    assert {(j, i) for i, j in new} == new
    assert {(i, j) for i, j in new if i == j} == {(i, j) for i, j in old if i == j}
    assert result.edge_index.t().tolist() == [list(edge) for edge in sorted(new)]
    assert result.edge_index.dtype == data.edge_index.dtype
    assert result.num_nodes == data.num_nodes

    added, removed = edge_set(record.added), edge_set(record.removed)
    assert added == pairs_of(new - old)
    assert removed == pairs_of(old - new)
    assert [tuple(pair) for pair in record.added.t().tolist()] == sorted(added)
    assert [tuple(pair) for pair in record.removed.t().tolist()] == sorted(removed)

    assert torch.equal(noise(data).edge_index, result.edge_index)
    # The flips depend on the nodes alone, so the same mistakes once more undo themselves.
    assert edge_set(noise(result).edge_index) == old

    if data.edge_weight is not None:
        weights = {tuple(e): float(w) for e, w in zip(data.edge_index.t().tolist(), data.edge_weight, strict=True)}
        expected = [weights.get(tuple(edge), 1.0) for edge in result.edge_index.t().tolist()]
        assert result.edge_weight.tolist() == expected


@pytest.mark.parametrize("n", range(12))
def test_every_pair_is_flipped_at_ratio_one(edge_set: EdgeSet, n: int) -> None:
    data = Data(num_nodes=n, edge_index=undirected([(i, i + 1) for i in range(n - 1)] + [(0, 0)] * (n > 0)))
    everything = {(i, j) for i in range(n) for j in range(n) if i != j}
    loops = {(0, 0)} if n else set()
    result = StructureMistakes(1.0)(data)
    assert edge_set(result.edge_index) == (everything - edge_set(data.edge_index)) | loops
    empty = Data(num_nodes=n, edge_index=undirected([]))
    assert edge_set(StructureMistakes(1.0)(empty).edge_index) == everything


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


def test_many_mistakes_in_a_large_graph_touch_edges_too(ring: MakeRing) -> None:
    data = ring(3000, 1)
    record = StructureMistakes(0.01, seed=2).changes(data)
    assert stats.binomtest(record.removed.size(1), 3000, 0.01).pvalue > 1e-4
    assert stats.binomtest(record.added.size(1), 3000 * 2999 // 2 - 3000, 0.01).pvalue > 1e-4


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_structure_mistakes_leave_sparse_features_alone(ring: MakeRing, layout: torch.layout) -> None:
    data = ring()
    data.x = data.x.to_sparse(layout=layout)
    result = StructureMistakes(0.1, seed=3)(data)
    assert result.x is data.x
    assert torch.equal(result.edge_index, StructureMistakes(0.1, seed=3)(ring()).edge_index)


def test_structure_mistakes_keep_an_edge_index_object(ring: MakeRing) -> None:
    data = ring()
    plain = StructureMistakes(0.2)(data).edge_index
    data.edge_index = EdgeIndex(data.edge_index, sparse_size=(20, 20))
    result = StructureMistakes(0.2)(data).edge_index
    assert isinstance(result, EdgeIndex)
    assert torch.equal(result.validate().as_tensor(), plain)
    assert (result.sort_order, result.is_undirected, result.sparse_size()) == ("row", True, (20, 20))


def test_weights_of_several_columns(ring: MakeRing, edge_set: EdgeSet) -> None:
    data = ring(edge_weight=torch.full((40, 2), 5.0))
    noise = StructureMistakes(0.2)
    result, added = noise(data), edge_set(noise.changes(data).added)
    assert len(added) > 0
    for (i, j), weight in zip(result.edge_index.t().tolist(), result.edge_weight.tolist(), strict=True):
        assert weight == ([1.0, 1.0] if (min(i, j), max(i, j)) in added else [5.0, 5.0])


def test_inferred_number_of_nodes_does_not_shrink(edge_set: EdgeSet) -> None:
    data = Data(edge_index=undirected([(0, 2), (1, 2)]))
    with pytest.warns(UserWarning, match="num_nodes"):
        result = StructureMistakes(1.0)(data)
    assert (result.num_nodes, edge_set(result.edge_index)) == (3, {(0, 1), (1, 0)})
    assert "num_nodes" not in data


def test_lists_of_edges_of_their_own_are_left_alone(ring: MakeRing) -> None:
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
def test_bad_edges(ring: MakeRing, change: dict[str, object], message: str) -> None:
    data = ring()
    for key, value in change.items():
        data[key] = value
    for act in (StructureMistakes(0.1), StructureMistakes(0.1).changes):
        with pytest.raises(ValueError, match=message):
            act(data)


def test_a_batch_of_graphs_is_refused(ring: MakeRing) -> None:
    with pytest.raises(ValueError, match="data must be a single graph"):
        StructureMistakes(0.1)(Batch.from_data_list([ring(), ring()]))
