"""Diffusion against PyG's exact transform, which holds a dense matrix."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import GDC
from torch_geometric.utils import to_dense_adj

from bigcn.nn.diffusion import diffuse


def oracle(edges, num_nodes, alpha, k, weight=None):
    transform = GDC(
        diffusion_kwargs={"method": "ppr", "alpha": alpha},
        sparsification_kwargs={"method": "topk", "k": k, "dim": 0},
    )
    out = transform(Data(edge_index=edges, edge_attr=weight, num_nodes=num_nodes))
    return to_dense_adj(out.edge_index, edge_attr=out.edge_attr, max_num_nodes=num_nodes)[0]


def dense(data):
    return to_dense_adj(data.edge_index, edge_attr=data.edge_weight, max_num_nodes=data.num_nodes)[0]


@pytest.fixture
def edges(make_graph):
    return make_graph(60, 120, torch.Generator().manual_seed(3), isolated=3).unique(dim=1)


@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.9])
@pytest.mark.parametrize("k", [1, 7, 64])
def test_matches_the_exact_transform(edges, alpha, k):
    out = diffuse(Data(edge_index=edges, num_nodes=60), alpha, k, tolerance=1e-7)
    torch.testing.assert_close(dense(out), oracle(edges, 60, alpha, k), rtol=1e-4, atol=2e-6)


def test_the_default_tolerance_is_close(edges):
    out = diffuse(Data(edge_index=edges, num_nodes=60))
    torch.testing.assert_close(dense(out), oracle(edges, 60, 0.15, 64), rtol=0, atol=2e-4)


def test_weighted_graphs(edges):
    weight = 1 + (edges.sum(dim=0) % 4).float()
    out = diffuse(Data(edge_index=edges, edge_weight=weight, num_nodes=60), k=9, tolerance=1e-7)
    torch.testing.assert_close(dense(out), oracle(edges, 60, 0.15, 9, weight), rtol=1e-4, atol=2e-6)


def test_columns_in_chunks_are_columns_at_once(edges, monkeypatch):
    whole = diffuse(Data(edge_index=edges, num_nodes=60), k=5)
    monkeypatch.setattr("bigcn.local_filter.BLOCK_ENTRIES", 60 * 7)
    parts = diffuse(Data(edge_index=edges.clone(), num_nodes=60), k=5)
    torch.testing.assert_close(dense(parts), dense(whole))


def test_every_node_has_neighbours_that_add_up_to_one(edges):
    out = diffuse(Data(x=torch.zeros(60, 2), edge_index=edges), k=5)
    into = torch.zeros(60).index_add(0, out.edge_index[1], out.edge_weight)
    torch.testing.assert_close(into, torch.ones(60))
    assert torch.bincount(out.edge_index[1]).max() <= 5
    assert (out.edge_weight > 0).all()


def test_components_stay_apart():
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    out = diffuse(Data(edge_index=edges, num_nodes=5))
    side = torch.tensor([0, 0, 1, 1, 2])
    assert torch.equal(side[out.edge_index[0]], side[out.edge_index[1]])


def test_the_graph_given_stays_as_it_was(edges):
    data = Data(edge_index=edges, num_nodes=60, y=torch.arange(60))
    out = diffuse(data)
    assert data.edge_index is edges
    assert data.edge_weight is None
    assert out.y is data.y


def test_the_same_graph_is_diffused_once(edges):
    first, second = (diffuse(Data(edge_index=edges, num_nodes=60)) for _ in range(2))
    assert first.edge_index is second.edge_index
    assert diffuse(Data(edge_index=edges, num_nodes=61)).edge_index is not first.edge_index


@pytest.mark.parametrize(("arguments", "name"), [({"alpha": 0.0}, "alpha"), ({"alpha": 1.5}, "alpha"), ({"k": 0}, "k")])
def test_nonsense_is_refused(edges, arguments, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        diffuse(Data(edge_index=edges, num_nodes=60), **arguments)


def test_directed_graphs_are_refused():
    with pytest.raises(ValueError, match="undirected"):
        diffuse(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3))
