import contextlib
import itertools
import json
import warnings
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.feature_graphs import FEATURE_GRAPHS
from bigcn.filters import NotLowPassWarning
from bigcn.nn import BiGCN
from bigcn.nn.bigcn_forms import BIGCN_WORDS
from bigcn.nn.registry import MODELS, ModelContext, ModelSpec, build_model, get_model, model_names

NODE = ModelContext("cora", "clean", "node", in_channels=12, out_channels=5)
LINK = ModelContext("cora", "clean", "link", in_channels=12, out_channels=32)
GRAPHS = tuple(FEATURE_GRAPHS)
EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])


def settings_of(name, context=NODE):
    return get_model(name).settings(context)


@pytest.mark.parametrize("name", [*MODELS, "bigcn:exact+spectral", "bigcn:taylor+learnable+adjacency"])
@pytest.mark.parametrize("context", [NODE, LINK], ids=["node", "link"])
def test_every_model_is_built_and_trains_a_step(name, context):
    model = build_model(name, context)
    weight = torch.full((6,), 0.5) if name == "gdc" else None
    out = model(torch.randn(6, 12), EDGES, weight)
    assert out.shape == (6, context.out_channels)
    out.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", [*MODELS, "bigcn:spectral+soft+rank=3"])
def test_settings_can_be_stored(name):
    assert json.loads(json.dumps(settings_of(name))) == settings_of(name)


def test_the_registry_knows_its_names():
    assert set(model_names()) == set(MODELS)
    assert {"bigcn", "bigcn:published", "gcn", "sage", "gat", "gin", "gdc", "appnp", "sgc", "mlp"} <= set(MODELS)
    for name, spec in MODELS.items():
        assert spec.name == name
        assert isinstance(spec, ModelSpec)
        assert get_model(name) is spec
    assert get_model(" GCN ") is MODELS["gcn"]


def test_a_new_model_is_one_entry(monkeypatch):
    linear = ModelSpec("linear", "Linear", lambda i, out_channels: torch.nn.Linear(i, out_channels), lambda c: {})
    monkeypatch.setitem(MODELS, "linear", linear)
    assert build_model("linear", NODE).out_features == 5
    assert "linear" in model_names()


@pytest.mark.parametrize(("context", "hidden"), [(NODE, 16), (LINK, 32)])
@pytest.mark.parametrize("name", ["bigcn", "bigcn:published", "gcn", "sage", "gin", "gdc"])
def test_two_layers_of_the_papers_width(name, context, hidden):
    model = build_model(name, context)
    assert (model.num_layers, model.hidden_channels, model.dropout.p) == (2, hidden, 0.5)


def test_a_context_can_ask_for_other_sizes():
    context = ModelContext("cora", "clean", "node", 12, 5, hidden_channels=24, num_layers=3, dropout=0.1)
    for name in ("bigcn", "bigcn:published", "gcn", "gat"):
        model = build_model(name, context)
        assert (model.num_layers, model.hidden_channels, model.dropout.p) == (3, 24, 0.1)


def test_gat_has_its_own_width():
    assert [conv.heads * conv.out_channels for conv in build_model("gat", NODE).convs] == [64, 5]


def test_only_gdc_prepares_its_graph():
    assert [name for name, spec in MODELS.items() if spec.prepare is not MODELS["gcn"].prepare] == ["gdc"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"task": "graph"}, "task"),
        ({"in_channels": 0}, "in_channels"),
        ({"hidden_channels": 0}, "hidden_channels"),
        ({"num_layers": 0}, "num_layers"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_contexts_refuse_nonsense(change, name):
    arguments = {"dataset": "cora", "case": "clean", "task": "node", "in_channels": 3, "out_channels": 2} | change
    with pytest.raises(ValueError, match=f"'{name}'"):
        ModelContext(**arguments)


# The grammar of BiGCN.


def test_no_word_is_the_library_default():
    """For nodes as :class:`BiGCN` has it; links have a weaker filter, and no feature graph."""
    named = build_model("bigcn", replace(NODE, in_channels=64)).eval()
    plain = BiGCN(64, hidden_channels=16, num_layers=2, out_channels=5, dropout=0.5).eval()
    plain.load_state_dict(named.state_dict())
    x = torch.randn(30, 64)
    assert torch.equal(named(x, EDGES), plain(x, EDGES))
    assert named.dropout.p == plain.dropout.p
    settings = settings_of("bigcn", LINK)
    assert (settings["feature_graph"], settings["node_strength"]) == ("none", 3.0)


@pytest.mark.parametrize("dataset", ["cora", "pubmed", "computers", "my own"])
@pytest.mark.parametrize("case", ["clean", "structure-mistakes", "a kind of one's own"])
@pytest.mark.parametrize("task", ["node", "link"])
def test_published_is_published(dataset, case, task):
    context = ModelContext(dataset, case, task, 12, 5)
    assert settings_of("bigcn:published", context) == BiGCN.published(dataset, case, task) | {"cached": True}


@pytest.mark.parametrize(
    ("dataset", "task", "weight_decay"),
    [
        ("cora", "node", 7e-3),
        ("CiteSeer", "node", 7e-3),
        ("pubmed", "node", 5e-4),
        ("photo", "node", 5e-4),
        ("cora", "link", 5e-4),
    ],
)
def test_published_training(dataset, task, weight_decay):
    training = get_model("bigcn:published").training(ModelContext(dataset, "clean", task, 12, 5))
    assert (training.learning_rate, training.weight_decay, training.penalty) == (0.01, weight_decay, 1.0)
    assert get_model("bigcn:published+none").training(NODE).penalty == 0


@pytest.mark.parametrize("name", ["bigcn", "gcn", "gat", "mlp", "bigcn:taylor+learnable+adjacency"])
def test_other_training(name):
    training = get_model(name).training(NODE)
    assert (training.learning_rate, training.weight_decay, training.penalty) == (0.01, 5e-4, 0.0)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
def test_every_combination_says_what_it_builds(graph, form, operator):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotLowPassWarning)
        model = build_model(f"bigcn:{form}+{graph}+{operator}", NODE)
    for layer, conv in enumerate(model.convs):
        hidden = "none" if graph == "spectral" and layer > 0 else graph
        assert type(conv.feature_graph) is FEATURE_GRAPHS[hidden]
        assert conv.filter.node_filter == form
        assert conv.filter.feature_operator == operator
        if operator == "laplacian" and graph != "spectral":
            assert conv.filter.feature_filter == form
        assert conv.cached


def test_the_operator_of_the_released_code_has_no_graph_of_its_own():
    assert settings_of("bigcn:code")["feature_graph"] == "none"
    assert settings_of("bigcn:code+uniform")["feature_graph"] == "uniform"


@pytest.mark.parametrize("context", [NODE, LINK])
def test_a_rank_speaks_of_a_spectral_graph(context):
    assert settings_of("bigcn:rank=3", context) == settings_of("bigcn:spectral+rank=3", context)


def test_taylor_brings_the_strengths_of_the_paper():
    found = settings_of("bigcn:taylor", ModelContext("photo", "clean", "node", 12, 5))
    assert (found["p"], found["node_strength"], found["feature_strength"]) == (1.5, 0.8, 0.8)
    assert settings_of("bigcn:taylor+node=0.3+p=2")["node_strength"] == 0.3
    found = settings_of("bigcn:exact+none+node=0+hidden=10")
    assert (found["node_strength"], found["hidden_node_strength"]) == (0.0, 10.0)
    assert "p" not in settings_of("bigcn:exact")


@pytest.mark.parametrize("name", ["bigcn:spectral", "bigcn:exact+spectral", "bigcn:exact+spectral+node=10"])
def test_the_spectral_filter_is_the_projector(name):
    model = build_model(f"{name}+rank=4", NODE)
    x = torch.randn(40, 12)
    graph = model.convs[0].feature_graph
    (block, projected), weights = graph.powers(graph.operand(x), torch.eye(12), model.convs[0].filter.along_features())
    b = weights[1, 0] * block + weights[1, 1] * projected
    torch.testing.assert_close(b @ b, b, atol=1e-5, rtol=1e-4)
    assert int(torch.linalg.matrix_rank(b, tol=1e-3)) == 4
    assert model.convs[0].filter.node_filter == "exact"


@pytest.mark.parametrize(("features", "rank"), [(64, 16), (1433, 64)])
def test_a_spectral_graph_never_keeps_everything(features, rank):
    model = build_model("bigcn:spectral", ModelContext("digits", "clean", "node", features, 10))
    assert model.convs[0].feature_graph.rank == rank
    assert not model.convs[0].feature_graph.trivial


def test_a_feature_strength_keeps_the_form_of_the_filter():
    assert settings_of("bigcn:exact+spectral+feature=2")["feature_filter"] == "exact"
    assert settings_of("bigcn:exact+spectral+feature=2")["feature_strength"] == 2.0


def test_numbers_and_options_arrive():
    found = settings_of("bigcn:spectral+soft+rank=3+p=2+node=4+feature=.5+k=3")
    assert found["feature_graph_kwargs"] == {"rank": 3, "weighting": "soft"}
    assert (found["p"], found["node_strength"], found["feature_strength"], found["iterations"]) == (2.0, 4.0, 0.5, 3)
    assert build_model("bigcn:k=3", NODE).convs[0].filter.iterations == 3


@pytest.mark.parametrize(("alias", "word"), [("text", "laplacian"), ("code", "adjacency")])
def test_aliases(alias, word):
    assert settings_of(f"bigcn:published+{alias}") == settings_of(f"bigcn:published+{word}")


def test_published_can_be_changed_word_by_word():
    found = settings_of("bigcn:published+uniform+text+p=7")
    assert (found["feature_graph"], found["feature_operator"], found["p"]) == ("uniform", "laplacian", 7.0)
    assert found["init"] == "released"


@settings(max_examples=60, deadline=None)
@given(st.permutations(["exact", "spectral", "soft", "rank=5", "p=3", "node=2"]), st.integers(1, 6))
def test_the_order_of_words_does_not_matter(words, count):
    chosen = words[:count]
    if "spectral" not in chosen:
        chosen = [word for word in chosen if word not in ("soft", "rank=5")] + ["spectral"]
    assert settings_of("bigcn:" + "+".join(chosen)) == settings_of("bigcn:" + "+".join(sorted(chosen)))


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(["none", "uniform", "learnable"], 2)))
def test_two_feature_graphs_are_refused(first, second):
    with pytest.raises(ValueError, match=repr(second)):
        get_model(f"bigcn:{first}+{second}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bigcn:spectrl", "did you mean 'spectral'"),
        ("bigcn:exact+lernable", "did you mean 'learnable'"),
        ("bigcn:q=3", "unknown word 'q=3'"),
        ("bigcn:", "unknown word ''"),
        ("bigcn:exact+", "unknown word ''"),
        ("bigcn:p=three", "'p' needs a number"),
        ("bigcn:k=2.5", "'k' needs a whole number"),
        ("bigcn:p=", "'p' needs a number"),
        ("bigcn:p=1+p=2", "'p=2' contradicts or repeats"),
        ("bigcn:taylor+exact", "'exact' contradicts"),
        ("bigcn:text+code", "'code' contradicts"),
        ("bigcn:none+soft", "'soft' goes with 'spectral'"),
        ("bigcn:uniform+rank=3", "'rank=' goes with 'spectral'"),
        ("bigcm", "did you mean 'bigcn'"),
        ("gcn:exact", "'gcn' takes no words"),
        ("bigcn:published:exact", "unknown word"),
        ("", "unknown model ''"),
    ],
)
def test_what_is_not_understood_is_refused(name, message):
    with pytest.raises(ValueError, match="model") as caught:
        get_model(name)
    assert message in str(caught.value)


def test_a_complaint_lists_what_is_known():
    with pytest.raises(ValueError, match="known") as caught:
        get_model("bigcn:zzzz")
    assert all(word in str(caught.value) for word in (*GRAPHS, *BIGCN_WORDS, "p=", "node=", "feature=", "k=", "rank="))
    with pytest.raises(ValueError, match="known") as caught:
        get_model("zzzz")
    assert all(name in str(caught.value) for name in MODELS)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_a_model_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert get_model("bigcn:" + text).model is BiGCN


def test_strengths_of_ones_own_that_make_no_low_pass_filter_are_warned_about():
    with pytest.warns(NotLowPassWarning):
        build_model("bigcn:taylor+node=5", NODE)
