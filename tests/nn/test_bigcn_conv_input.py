"""Inputs at the edge of what a layer takes, and what cannot be one."""

import warnings

import pytest
import torch

from bigcn import BiGCN, BiGCNConv

ring = torch.stack([torch.arange(6), torch.arange(6).roll(1)])


def test_an_exact_filter_of_a_directed_graph_warns():
    x = torch.randn(6, 3)
    with pytest.warns(UserWarning, match="directed"):
        BiGCNConv(3, 2, cached=True)(x, ring)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BiGCNConv(3, 2, cached=True)(x, torch.cat([ring, ring.flip(0)], dim=1))
        BiGCNConv(3, 2, cached=True, node_filter="taylor", node_strength=0.2)(x, ring)


def test_a_weighted_undirected_graph_is_its_own_transpose():
    weight = torch.rand(6, generator=torch.Generator().manual_seed(0))
    both = torch.cat([ring, ring.flip(0)], dim=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BiGCNConv(3, 2, cached=True)(torch.randn(6, 3), both, torch.cat([weight, weight]))


@pytest.mark.parametrize("kwargs", [{"flow": "target_to_source"}, {"aggr": "mean"}])
def test_the_filter_has_one_direction_and_one_sum(kwargs):
    with pytest.raises(ValueError, match="'aggr' and 'flow'"):
        BiGCNConv(3, 2, **kwargs)


def test_trains_after_inference_mode():
    conv, x = BiGCNConv(3, 2, cached=True), torch.randn(6, 3)
    both = torch.cat([ring, ring.flip(0)], dim=1)
    with torch.inference_mode():
        conv(x, both)
    conv(x, both).sum().backward()
    assert conv.lin.weight.grad is not None


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_sparse_features_on_entries_of_ones_own(layout, cached):
    """Without edge weights, :obj:`normalize=False` takes ones."""
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    conv = BiGCNConv(8, 3, normalize=False, node_filter="taylor", node_strength=0.3, cached=cached)
    x = torch.randn(5, 8).relu()
    torch.testing.assert_close(conv(x.to_sparse(layout=layout), edges), conv(x, edges))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("features", [8, 64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"feature_graph": "learnable"},
        {"feature_graph": "uniform"},
        {"drops_input": True, "dropout": 0.5},
        {"feature_graph_kwargs": {"weighting": "soft"}},
    ],
)
def test_a_graph_without_nodes(options, features, cached):
    model = BiGCN(features, 16, 2, 3, cached=cached, **options)
    out = model(torch.randn(0, features), torch.empty(2, 0, dtype=torch.long))
    assert out.shape == (0, 3)
    out.sum().backward()
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: BiGCNConv(8, 0), "'out_channels'"),
        (lambda: BiGCNConv(8, -1), "'out_channels'"),
        (lambda: BiGCNConv(0, 3), "'in_channels'"),
        (lambda: BiGCNConv((-1, -1), 3), "'in_channels'"),
        (lambda: BiGCN(8, 16, 0, 3), "'num_layers'"),
        (lambda: BiGCN(8, 0, 2, 3), "'hidden_channels'"),
        (lambda: BiGCN(8, 16, 2, 3, hidden_node_strength=-1.0), "'hidden_node_strength'"),
        (lambda: BiGCN(8, 16, 2, 3, hidden_feature_graph=torch.eye(16)), "'hidden_feature_graph'"),
        (lambda: BiGCNConv(8, 3, feature_graph="spectral", feature_graph_kwargs={"rnk": 3}), "'feature_graph_kwargs'"),
    ],
)
def test_what_cannot_be_a_layer_is_named(call, argument):
    with pytest.raises(ValueError, match=argument):
        call()
