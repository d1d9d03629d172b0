"""Rows of a last filter are rows of what the model answers."""

import pytest
import torch

from bigcn import BiGCN
from bigcn.dense_filter import rows_pay
from bigcn.nn.asked_rows import kept_rows, last_filter, name_of
from bigcn.nn.baselines import APPNP, GCN, SGC
from bigcn.node_graphs import normalized_graph

N, D = 30, 12
ROWS = torch.tensor([3, 17, 3, 29])


def graph(directed=False):
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(0, N - 1, (2, 60), generator=generator)  # the last node has no edge
    return edges if directed else torch.cat([edges, edges.flip(0)], dim=1).unique(dim=1)


MODELS = {
    "exact": lambda: BiGCN(D, 8, 2, 4),
    "predict first": lambda: BiGCN(D, 8, 2, 4, feature_graph="none", node_strength=0.0, hidden_node_strength=9.0),
    "three rounds": lambda: BiGCN(D, 8, 3, 4, feature_graph="none", p=3.0, iterations=3, norm="layer_norm"),
    "not normalised": lambda: BiGCN(D, 8, 2, 4, feature_graph="none", normalize=False),
    "uniform": lambda: BiGCN(D, 8, 2, 4, feature_graph="uniform", feature_strength=0.5),
    "learnable": lambda: BiGCN(D, 8, 2, 4, feature_graph="learnable", feature_filter="taylor", feature_strength=0.5),
    "learnable, exact": lambda: BiGCN(D, 8, 2, 4, feature_graph="learnable", feature_strength=3.0),
    "appnp": lambda: APPNP(D, 8, 2, 4, K=5, alpha=0.2),
}


@pytest.mark.filterwarnings("ignore:the node graph is directed")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_rows_are_those_of_all_answers(kind, directed):
    torch.manual_seed(0)
    model, x, edges = MODELS[kind]().double(), torch.randn(N, D, dtype=torch.float64), graph(directed)
    if kind == "not normalised":
        edges = torch.arange(N).repeat(2, 1)  # a filter of more than that grows without bound
    expected = model(x, edges)
    gradient = torch.autograd.grad(expected[ROWS].square().sum(), list(model.parameters()), allow_unused=True)
    last = last_filter(model)
    with last.cache.giving(last.rows(ROWS, last.graph(x, edges, None))):
        out = model(x, edges)
    torch.testing.assert_close(out, expected[ROWS], rtol=1e-9, atol=1e-9)
    found = torch.autograd.grad(out.square().sum(), list(model.parameters()), allow_unused=True)
    torch.testing.assert_close(found, gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        BiGCN(D, 8, 1, 4),
        BiGCN(D, 8, 2, 4, jk="cat"),
        BiGCN(D, 8, 2, 4, gcn_layers=1),
        BiGCN(D, 8, 2, 4, feature_graph="correlation"),
        BiGCN(D, 8, 2, 4, cached=False),
        BiGCN(D, 8, 2, 4, hidden_node_strength=0.0),
        BiGCN(D, 8, 2, 4, top=8),
        BiGCN(D, 8, 2, 4, **{"node_filter": "taylor", "node_strength": 0.5}),
        GCN(D, 8, 2, 4),
        torch.nn.Linear(D, 4),
    ],
    ids=str,
)
def test_others_have_no_such_filter(model):
    assert last_filter(model) is None


def test_what_only_weights_come_after():
    for model in (SGC(D, 4), BiGCN(D, 8, 1, 4)):
        model(torch.randn(N, D), graph())
        assert kept_rows(model) is not None
    assert kept_rows(BiGCN(D, 8, 2, 4)) is kept_rows(BiGCN(D, 8, 1, 4, jk="cat")) is kept_rows(GCN(D, 8, 2, 4)) is None
    model = BiGCN(D, 8, 2, 4)
    assert name_of(model, last_filter(model).cache) == "convs.1._asked"


def test_rows_take_a_gpu_and_a_graph_of_not_too_many_nodes():
    matrix = normalized_graph(graph(), num_nodes=N)
    assert not rows_pay(matrix, 20, 140, 1500), "on a CPU hops are cheap"

    class OnGPU:
        is_cuda = True

        def __init__(self, entries):
            self.entries = entries

        def numel(self):
            return self.entries

        def element_size(self):
            return 4

    def pays(nodes, entries, trained=140, scored=1500):
        return rows_pay(matrix._replace(num_rows=nodes, value=OnGPU(entries)), 20, trained, scored)

    assert pays(2_708, 10_556), "few nodes"
    assert pays(19_717, 88_648), "few rows"
    assert not pays(19_717, 88_648, 10_000, 9_000), "many rows"
    assert not pays(169_343, 2_315_598), "more than they may take"
