"""What the layer warns of, and what it refuses."""

import math
import warnings

import pytest
import torch

from bigcn import BiGCN, BiGCNConv
from bigcn.feature_graphs import GivenGraph
from bigcn.filters import NotLowPassWarning


def test_settings_that_are_no_low_pass_are_told():
    with pytest.warns(NotLowPassWarning, match=r"node_strength=1\.8 \(taylor\)") as caught:
        BiGCNConv(4, 3, node_strength=1.8, node_filter="taylor")
    assert caught[0].filename == __file__
    with pytest.warns(NotLowPassWarning, match="adjacency"):
        BiGCNConv(4, 3, feature_graph="uniform", feature_filter="taylor", feature_operator="adjacency")


@pytest.mark.filterwarnings("error")
def test_settings_that_are_low_pass_are_silent():
    BiGCNConv(4, 3)
    BiGCNConv(4, 3, node_strength=0, feature_strength=0)
    BiGCNConv(4, 3, feature_graph="learnable")
    # The strength of a direction that is left out does not count.
    BiGCNConv(4, 3, feature_strength=1.8, feature_filter="taylor")


def test_the_warning_can_be_silenced():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BiGCNConv(4, 3, node_strength=1.8, node_filter="taylor", check_low_pass=False)
        warnings.filterwarnings("ignore", category=NotLowPassWarning)
        BiGCNConv(4, 3, node_strength=1.8, node_filter="taylor")
    assert not caught


def test_published_settings_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BiGCN(4, out_channels=2, **BiGCN.published("cora"))


# Bad input.


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"p": -1}, "'p'"),
        ({"p": math.nan}, "'p'"),
        ({"p": math.inf}, "'p'"),
        ({"node_strength": -0.1}, "'node_strength'"),
        ({"node_strength": 1e9}, "'node_strength' must not exceed"),
        ({"node_strength": math.nan}, "'node_strength'"),
        ({"feature_strength": -0.1}, "'feature_strength'"),
        ({"feature_strength": math.inf}, "'feature_strength'"),
        ({"iterations": 0}, "'iterations'"),
        ({"iterations": 1.5}, "'iterations'"),
        ({"node_filter": "linear"}, "'node_filter'"),
        ({"feature_filter": "linear"}, "'feature_filter'"),
        ({"feature_operator": "both"}, "'feature_operator'"),
        ({"feature_operator": "adjacency"}, "'feature_operator=\"adjacency\"'"),
        ({"feature_graph": "unknown"}, "'feature_graph'"),
        ({"feature_graph": torch.eye(3)}, "'feature_graph' has 3 features, but the layer has 4"),
        ({"feature_graph": torch.full((4, 4), -1.0)}, "'feature_graph'"),
        ({"feature_graph": GivenGraph(torch.eye(4)), "feature_graph_kwargs": {"rank": 3}}, "'feature_graph_kwargs'"),
        ({"feature_graph": "spectral", "feature_graph_kwargs": 3}, "'feature_graph_kwargs' must be a dict"),
        # GCNConv(4, 3, False, True) is improved=False, cached=True.
        ({"p": False, "node_strength": True}, "'p'|'node_strength'"),
        ({"tolerance": "small"}, "'tolerance'"),
        ({"add_self_loops": False}, "'add_self_loops' is an option of GCNConv"),
        ({"tolerance": 0.0}, "'tolerance'"),
        ({"init": "ones"}, "'init'"),
    ],
)
def test_bad_settings(options, name):
    with pytest.raises(ValueError, match=name) as caught:
        BiGCNConv(4, 3, **options)
    assert "\n" not in str(caught.value)


EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([[1.0] * 4], EDGES), "'x'"),
        ((None, EDGES), "'x'"),
        ((torch.randn(4), EDGES), "'x'"),
        ((torch.randn(1, 1, 5, 4), EDGES), "'x'"),
        ((torch.ones(5, 4, dtype=torch.long), EDGES), "'x'"),
        ((torch.randn(5, 3), EDGES), "'x' must have 4 features"),
        ((torch.randn(5, 4, dtype=torch.float64), EDGES), "'x' must have the precision"),
        ((torch.randn(5, 4, dtype=torch.float64).to_sparse(), EDGES), "'x' must have the precision"),
        ((torch.randn(2, 5, 4).to_sparse(), EDGES), "'x'"),
        ((torch.randn(5, 4).to_sparse(1), EDGES), "'x'"),
        ((torch.randn(5, 4), EDGES.float()), "'edge_index'"),
        ((torch.randn(5, 4), EDGES.bool()), "'edge_index'"),
        ((torch.randn(5, 4), torch.zeros(3, 2, dtype=torch.long)), "'edge_index'"),
        ((torch.randn(5, 4), EDGES[0]), "'edge_index'"),
        ((torch.randn(5, 4), [[0], [1]]), "'edge_index'"),
        ((torch.randn(5, 4), torch.eye(4).to_sparse_csr()), "'edge_index'"),
        ((torch.randn(5, 4), torch.eye(5).to_sparse_csr(), torch.ones(5)), "'edge_weight'"),
        ((torch.randn(5, 4), EDGES, torch.ones(3)), "'edge_weight'"),
        ((torch.randn(5, 4), EDGES, torch.ones(2, dtype=torch.complex64)), "'edge_weight' must be real"),
        ((torch.randn(5, 4), EDGES, [1.0, 1.0]), "'edge_weight'"),
    ],
)
def test_bad_input(arguments, name, cached):
    with pytest.raises(ValueError, match=name):
        BiGCNConv(4, 3, cached=cached)(*arguments)
