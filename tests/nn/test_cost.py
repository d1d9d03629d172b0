import pytest
import torch

from bigcn import BiGCNConv
from bigcn.feature_graphs import SpectralGraph
from bigcn.nn.cost import SPARSE_BELOW, sparse_or_none, weights_first


def conv(in_channels, out_channels, **kwargs):
    return BiGCNConv(in_channels, out_channels, check_low_pass=False, **kwargs)


@pytest.mark.parametrize("graph", ["learnable", "correlation", "spectral", "uniform", "identity", "none"])
@pytest.mark.parametrize("form", ["taylor", "exact"])
def test_the_narrow_side_is_filtered(graph, form):
    x = torch.empty(2000, 300, device="meta")
    narrow = conv(300, 16, feature_graph=graph, node_filter=form, feature_filter=form)
    wide = conv(300, 5000, feature_graph=graph, node_filter=form, feature_filter=form)
    assert weights_first(narrow.feature_graph, narrow.filter, x, 10_000, 16)
    assert not weights_first(wide.feature_graph, wide.filter, x, 10_000, 5000)


def test_features_are_sparse_where_few_are_not_zero():
    x = torch.zeros(10, 200)
    x.view(-1)[: int(SPARSE_BELOW * x.numel()) - 1] = 1
    assert torch.equal(sparse_or_none(x).matmul(torch.eye(200)), x)
    x.view(-1)[: int(SPARSE_BELOW * x.numel()) + 1] = 1
    assert sparse_or_none(x) is None
    assert sparse_or_none(torch.ones(3, 3).to_sparse_csr()) is not None


def test_many_rounds_are_refused_before_they_cancel():
    with pytest.raises(ValueError, match="'iterations' of 50"):
        BiGCNConv(4, 2, iterations=50)
    BiGCNConv(4, 2, iterations=8, p=3.0, check_low_pass=False)


def test_a_spectral_graph_filters_by_default_and_leaves_hidden_layers_alone():
    assert [SpectralGraph(d).rank for d in (16, 31, 32, 64, 256, 5000)] == [16, 31, 8, 16, 64, 64]
    assert SpectralGraph(16).trivial
    assert not SpectralGraph(64).trivial


def test_the_layer_tells_its_strongest_edges():
    x = torch.randn(30, 40, generator=torch.Generator().manual_seed(0))
    x[:, 2] *= 20
    x[:, 7] = x[:, 2]
    edges = torch.stack([torch.arange(30), torch.arange(30).roll(1)])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    layer = conv(40, 2, feature_graph="spectral", feature_graph_kwargs={"rank": 2})
    names = [f"feature {i}" for i in range(40)]
    assert ("feature 2", "feature 7") in [edge[:2] for edge in layer.top_edges(3, names, x, edges)]
