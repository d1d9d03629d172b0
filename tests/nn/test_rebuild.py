import json

import pytest
import torch
from torch import Tensor

from bigcn import BiGCN
from bigcn.feature_graphs import CorrelationGraph, FeatureGraph, LearnableGraph, SpectralGraph
from bigcn.nn.rebuild import build_bigcn, describe_bigcn

X = torch.randn(40, 12, generator=torch.Generator().manual_seed(1))
EDGES = torch.randint(0, 40, (2, 120), generator=torch.Generator().manual_seed(2))
EDGES = torch.cat([EDGES, EDGES.flip(0)], dim=1)
ADJACENCY = (X.t() @ X).abs()
GRAPHS: dict[str, object] = {
    "none": "none",
    "spectral": "spectral",
    "learnable": "learnable",
    "uniform": "uniform",
    "kept spectral": SpectralGraph.from_data(X, EDGES, rank=4, weighting="soft", smoothing=3.0),
    "kept correlation": CorrelationGraph.from_features(X, self_loops=False),
    "learnable from data": LearnableGraph.from_features(X, self_loops=False),
    "given": ADJACENCY,
    "given sparse": (ADJACENCY * (ADJACENCY > 5)).to_sparse_csr(),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_there_and_back(graph: str | FeatureGraph | Tensor):
    torch.manual_seed(0)
    model = BiGCN(
        12, 8, 2, 3, dropout=0.5, drops_input=True, jk="max", feature_graph=graph, check_low_pass=False
    ).eval()
    arguments = json.loads(json.dumps(describe_bigcn(model)))
    again = build_bigcn(arguments, model.state_dict())
    assert torch.equal(model(X, EDGES), again(X, EDGES))
    assert describe_bigcn(again) == arguments
    assert again.convs[0].dropout.p == 0.5
    # Another graph than the one it was made on, where a graph that was kept must not be computed anew.
    assert torch.equal(model(X[:20] + 1, EDGES % 20), again(X[:20] + 1, EDGES % 20))


def test_what_older_descriptions_leave_out_is_what_it_was():
    model = BiGCN(12, 8, 2, 3, feature_graph="none", cached=False).eval()
    arguments = describe_bigcn(model)
    for name in ("feature_graph", "feature_filter", "cached"):
        del arguments[name]
    again = build_bigcn(arguments, model.state_dict())
    assert torch.equal(model(X, EDGES), again(X, EDGES))
    assert not again.convs[0].cached


def test_an_older_spectral_graph_was_exact_and_in_every_layer():
    hidden = {"feature_graph": "spectral", "hidden_feature_graph": "spectral", "feature_graph_kwargs": {"rank": 2}}
    model = BiGCN(12, 40, 2, 3, feature_filter="exact", cached=False, **hidden).eval()
    arguments = describe_bigcn(model) | {"hidden_feature_graph": None}
    for name in ("feature_filter", "cached"):
        del arguments[name]
    again = build_bigcn(arguments, model.state_dict())
    assert [str(conv.filter) for conv in again.convs] == [str(conv.filter) for conv in model.convs]
    assert [type(conv.feature_graph) for conv in again.convs] == [SpectralGraph, SpectralGraph]


def test_double_precision_stays():
    model = BiGCN(12, 8, 2, 3).double().eval()
    assert torch.equal(
        build_bigcn(describe_bigcn(model), model.state_dict())(X.double(), EDGES), model(X.double(), EDGES)
    )


def test_sizes_that_were_inferred():
    model = BiGCN(-1, 8, 2, 3)
    with pytest.raises(ValueError, match="not seen an input"):
        describe_bigcn(model)
    model(X, EDGES)
    assert describe_bigcn(model)["in_channels"] == 12


def test_what_no_file_can_hold_is_refused():
    with pytest.raises(ValueError, match="'act'"):
        describe_bigcn(BiGCN(12, 8, 2, 3, act=torch.nn.GELU()))


def test_weights_must_fit():
    model = BiGCN(12, 8, 2, 3)
    arguments, weights = describe_bigcn(model), dict(model.state_dict())
    missing = {name: tensor for name, tensor in weights.items() if name != "convs.1.bias"}
    with pytest.raises(ValueError, match=r"lack 'convs\.1\.bias'"):
        build_bigcn(arguments, missing)
    with pytest.raises(ValueError, match="have 'stranger'"):
        build_bigcn(arguments, weights | {"stranger": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"shape \[9\]"):
        build_bigcn(arguments, weights | {"convs.0.bias": torch.zeros(9)})
    with pytest.raises(ValueError, match="lack the feature graph"):
        build_bigcn({**arguments, "feature_graph": "given"}, weights)
