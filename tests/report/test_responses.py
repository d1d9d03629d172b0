import pytest

from bigcn import BiGCNConv
from bigcn.experiments.comparison import ComparisonResult
from bigcn.filters import frequency_response
from bigcn.report.responses import response, responses


def test_every_bigcn_and_nothing_else(result: ComparisonResult) -> None:
    assert [found.model for found in responses(result)] == ["bigcn:exact+spectral+rank=16", "bigcn:published"]


def test_missing_settings_are_the_defaults_of_the_layer() -> None:
    conv = BiGCNConv(4, 2)
    found = response("bigcn", {})
    assert found.arguments["p"] == conv.filter.p
    assert found.arguments["node_strength"] == conv.filter.node_strength
    assert found.feature_graph == "none"
    assert found.arguments["feature_strength"] == 0
    assert found.one_way
    assert found.low_pass
    assert found.words.startswith("Low-pass, along the nodes only")


def test_grid_is_the_frequency_response() -> None:
    settings = {"p": 3.0, "node_strength": 1.8, "feature_strength": 0.7, "feature_graph": "learnable"}
    grid = response("bigcn", settings, resolution=5).grid
    direct = frequency_response(1.5, 0.5, p=3.0, node_strength=1.8, feature_strength=0.7)
    assert float(grid[3, 1]) == pytest.approx(float(direct))


def test_released_form_is_not_low_pass() -> None:
    settings = {"p": 3.0, "node_strength": 1.8, "feature_strength": 1.8, "feature_graph": "learnable"}
    settings |= {"node_filter": "taylor", "feature_filter": "taylor", "feature_operator": "adjacency"}
    found = response("bigcn:published", settings)
    assert not found.low_pass
    assert found.words.startswith("Not low-pass, along the nodes and a learnable feature graph: it flips the sign")


def test_spectral_graph_has_no_frequencies_above_one() -> None:
    settings = {"feature_graph": "spectral", "feature_filter": "taylor", "feature_strength": 0.5, "p": 1.0}
    found = response("bigcn", settings)
    assert found.highest == 1.0
    assert found.low_pass
    assert float(found.grid.min()) > 0
    assert not response("bigcn", settings | {"feature_graph": "learnable", "feature_strength": 1.0}).low_pass


def test_identity_scales_all_features_alike() -> None:
    found = response("bigcn", {"feature_graph": "identity"})
    assert found.one_way
    assert bool((found.grid == found.grid[:, :1]).all())


def test_given_graph_has_a_name() -> None:
    assert response("bigcn", {"feature_graph": [[0, 1], [1, 0]]}).feature_graph == "given"
