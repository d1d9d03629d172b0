"""The filter of a layer as buffers that follow it."""

import pytest
import torch

from bigcn import BiGCNConv
from bigcn.nn.two_way_filter import TwoWayFilter


def make(**options):
    settings = {
        "p": 3.0,
        "node_strength": 1.8,
        "feature_strength": 0.7,
        "iterations": 2,
        "node_filter": "exact",
        "feature_filter": "exact",
        "feature_operator": "laplacian",
        "tolerance": 1e-13,
    }
    return TwoWayFilter(**{**settings, **options})


def test_coefficients_survive_a_change_of_precision():
    filter = make(p=0.1)
    assert filter.coefficients.dtype == torch.float32
    expected = make(p=0.1).double()
    for moved in (filter.double(), make(p=0.1).half().double(), make(p=0.1).to(torch.bfloat16).to(torch.float64)):
        for name, buffer in moved.named_buffers():
            assert torch.equal(buffer, dict(expected.named_buffers())[name])
            assert buffer.dtype == torch.float64
    c, p = expected.coefficients, 0.1
    # The coefficient of A^2 B^2 after two rounds, and the sum, worked out by hand.
    assert c[2, 2].item() == pytest.approx(p**3 / (1 + p) ** 3, abs=1e-15)
    assert c.sum().item() == pytest.approx(1, abs=1e-15)
    assert expected.node_scale.item() == 1.8
    assert expected.feature_scale.item() == 0.7


@pytest.mark.parametrize("options", [{}, {"node_filter": "taylor", "feature_filter": "taylor"}])
def test_a_layer_made_in_single_is_exact_in_double(oracle, make_graph, options):
    conv = BiGCNConv(
        4, 3, feature_graph="learnable", tolerance=1e-14, node_strength=0.9, check_low_pass=False, **options
    )
    conv.double()
    x, edge_index = torch.randn(6, 4, dtype=torch.float64), make_graph(6, 8)
    l2 = oracle.learnable_laplacian(conv.feature_graph.logits.detach())
    expected = oracle.layer(conv, x, oracle.node_laplacian(edge_index, None, 6), l2)
    assert oracle.distance(conv(x, edge_index), expected) < 1e-13


def test_buffers_are_no_part_of_the_state_dict():
    assert not make().state_dict()
    assert not list(make().parameters())


def test_exact_forms_have_a_polynomial_and_taylor_forms_none():
    filter = make(node_filter="taylor")
    assert filter.node_chebyshev is None
    assert filter.feature_chebyshev is not None
    assert filter.num_hops == 2
    assert filter.num_feature_hops == filter.feature_chebyshev.size(0) - 1 > 2
    exact = make(feature_filter="taylor")
    assert exact.num_feature_hops == 2
    assert exact.num_hops == exact.node_chebyshev.size(0) - 1 > 2
    assert make(node_strength=0).num_hops == 0


@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_along_nodes_with_and_without_mixing(oracle, make_graph, form, count):
    filter = make(node_filter=form).double()
    laplacian = oracle.node_laplacian(make_graph(6, 7), None, 6)
    eye = torch.eye(6, dtype=torch.float64)
    a = eye - 1.8 * laplacian if form == "taylor" else torch.linalg.inv(eye + 1.8 * laplacian)
    parts = [torch.randn(6, 2, dtype=torch.float64) for _ in range(count)]
    mixing = torch.randn(3, count, dtype=torch.float64)
    blocks = [sum(mixing[i, m] * parts[m] for m in range(count)) for i in range(3)]
    expected = blocks[0] + a @ blocks[1] + a @ a @ blocks[2]
    hop = lambda block: (eye - laplacian) @ block  # noqa: E731
    assert oracle.distance(filter.along_nodes(parts, mixing, hop), expected) < 1e-11
    if form == "taylor":
        assert oracle.distance(filter.along_nodes(blocks, None, hop), expected) < 1e-11


@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("strength", [0.0, 1.8])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_mixing_before_the_product_changes_nothing(oracle, make_graph, form, strength, count):
    filter = make(node_filter=form, node_strength=strength).double()
    laplacian = oracle.node_laplacian(make_graph(6, 7), None, 6)
    hop = lambda block: block - laplacian @ block  # noqa: E731
    blocks = [torch.randn(4, 2, dtype=torch.float64) for _ in range(count)]
    x, mixing = torch.randn(6, 4, dtype=torch.float64), torch.randn(3, count, dtype=torch.float64)
    mixed, left = filter.mix_before_product(blocks, mixing)
    assert len(mixed) <= 3
    found = filter.along_nodes([x @ block for block in mixed], left, hop)
    expected = filter.along_nodes([x @ block for block in blocks], mixing, hop)
    assert oracle.distance(found, expected) < 1e-12


def test_it_says_what_it_is():
    assert repr(make()) == "TwoWayFilter(p=3, node=exact(1.8), feature=exact(0.7, laplacian), iterations=2)"
