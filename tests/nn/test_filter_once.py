"""Features that are filtered once and kept, against the same layer that keeps nothing."""

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from bigcn import BiGCN, BiGCNConv
from bigcn.nn.two_way_filter import TwoWayFilter

GRAPHS = ["none", "identity", "uniform", "correlation", "spectral"]


@pytest.fixture
def filtered(monkeypatch):
    """The widths of all blocks that were filtered along the nodes."""
    widths = []
    along_nodes = TwoWayFilter.along_nodes

    def counted(self, parts, *args):
        widths.append(parts[0].size(-1))
        return along_nodes(self, parts, *args)

    monkeypatch.setattr(TwoWayFilter, "along_nodes", counted)
    return widths


@pytest.fixture
def problem():
    """A graph dense enough that one product of its features takes less than many hops."""
    generator = torch.Generator().manual_seed(0)
    adjacency = torch.rand(40, 40, generator=generator).triu(1) > 0.6
    edge_index = (adjacency | adjacency.t()).nonzero().t().contiguous()
    return torch.randn(40, 30, generator=generator, dtype=torch.float64), edge_index


def both(name, form, operator):
    settings = {"feature_graph": name, "node_filter": form, "feature_filter": form, "feature_operator": operator}
    torch.manual_seed(3)
    kept = BiGCNConv(30, 4, cached=True, check_low_pass=False, node_strength=0.8, **settings).double()
    plain = BiGCNConv(30, 4, cached=False, check_low_pass=False, node_strength=0.8, **settings).double()
    plain.load_state_dict(kept.state_dict())
    return kept, plain


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("form", "operator"), [("exact", "laplacian"), ("taylor", "laplacian"), ("taylor", "adjacency")]
)
def test_output_and_gradients_are_the_same(problem, filtered, name, form, operator):
    x, edge_index = problem
    kept, plain = both(name, form, operator)
    for _ in range(3):
        for conv in (kept, plain):
            conv.zero_grad()
            conv(x, edge_index).square().sum().backward()
        torch.testing.assert_close(kept.lin.weight.grad, plain.lin.weight.grad, rtol=1e-10, atol=1e-10)
    for conv in (kept, plain):
        conv.eval()
    torch.testing.assert_close(kept(x, edge_index), plain(x, edge_index), rtol=1e-10, atol=1e-10)
    assert filtered.count(30) == 1, "the features are filtered once"
    assert len(filtered) == 1 + 4, "and the layer that keeps nothing filters every time"


def test_features_or_graph_edited_in_place_are_filtered_anew(problem):
    x, edge_index = problem
    kept, plain = both("spectral", "exact", "laplacian")
    kept(x, edge_index)
    x[3] += 1.0
    torch.testing.assert_close(kept(x, edge_index), plain(x, edge_index))
    edge_index[:, :2] = edge_index[:, :2].flip(0)
    torch.testing.assert_close(kept(x, edge_index), plain(x, edge_index))


def test_a_finished_graph_edited_in_place_is_another(problem):
    x, edge_index = problem
    adjacency = torch.rand(30, 30, dtype=torch.float64)
    conv = BiGCNConv(30, 4, feature_graph=adjacency + adjacency.t(), cached=True).double()
    before = conv(x, edge_index)
    for buffer in conv.feature_graph.buffers():
        buffer.mul_(torch.linspace(0.5, 1.0, 30, dtype=torch.float64).unsqueeze(1))
    after = conv(x, edge_index)
    conv._filtered.clear()
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, conv(x, edge_index))


def test_who_only_predicts_filters_the_narrow_side(problem, filtered):
    x, edge_index = problem
    kept, _ = both("none", "exact", "laplacian")
    kept.eval()(x, edge_index)
    assert filtered == [4]
    kept.train()(x, edge_index)
    kept.eval()(x.clone(), edge_index)
    assert filtered == [4, 30, 4], "other features than those of the training"


def test_learning_the_features_or_the_graph_of_the_features_keeps_nothing(problem, filtered):
    x, edge_index = problem
    kept, _ = both("none", "exact", "laplacian")
    kept(x.clone().requires_grad_(), edge_index).sum().backward()
    learnable, _ = both("learnable", "exact", "laplacian")
    learnable(x, edge_index).sum().backward()
    assert 30 not in filtered
    assert learnable.feature_graph.packed_logits.grad.abs().sum() > 0


def test_members_of_different_strength_that_share_their_features(problem):
    x, edge_index = problem
    models = [
        BiGCN(30, 8, 2, 3, node_strength=strength, iterations=1, cached=True, tolerance=1e-9).double()
        for strength in (2.0, 2.01)
    ]
    assert models[0].convs[0].filter.node_chebyshev.shape == models[1].convs[0].filter.node_chebyshev.shape
    parameters, buffers = stack_module_state(models)

    def call(parameters, buffers):
        return functional_call(models[0], (parameters, buffers), (x, edge_index))

    for _ in range(2):
        together = vmap(call)(parameters, buffers)
        for model, out in zip(models, together, strict=True):
            torch.testing.assert_close(out, model(x, edge_index))


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr, torch.sparse_coo])
def test_features_that_are_dropped_are_filtered_once(problem, filtered, layout):
    x, edge_index = problem
    x = x if layout == torch.strided else x.to_sparse(layout=layout)
    conv = BiGCNConv(30, 4, dropout=0.5, cached=True).double()
    for _ in range(3):
        conv(x, edge_index).sum().backward()
    assert filtered == [30]
