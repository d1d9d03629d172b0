"""A member of a population gives what it would give alone."""

from dataclasses import replace

import pytest
import torch

from bigcn import BiGCN
from bigcn.datasets import digits, make_split
from bigcn.nn import bigcn_conv, feature_product, kept_input
from bigcn.nn.registry import model_names
from bigcn.noise import FeatureRate
from bigcn.tasks import NodeClassification
from bigcn.training import population as module
from bigcn.training import population_state, seeded
from bigcn.training.population import train_population

FORMS = (
    "bigcn:exact+spectral",
    "bigcn:exact+correlation",
    "bigcn:exact+learnable",
    "bigcn:taylor+uniform",
    "bigcn:exact+spectral+node=9+p=30+k=1+top=16",
)
#: Kinds of noise, see the fixtures.
NOISE = ("clean", "features", "edges")

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", [*model_names(), *FORMS])
def test_a_member_is_as_if_alone(name, case, make_members, alone, assert_as_alone):
    members = make_members(name, case=case, epochs=50 if case == "edges" else 10, curves=True)
    assert_as_alone(members, alone(members), train_population(members))


def test_numbers_of_members_have_the_precision_of_the_data(make_members, alone, assert_as_alone):
    members = make_members("mlp", epochs=50, curves=True)
    expected = alone(members)
    torch.set_default_dtype(torch.float32)  # which is what most users have, whatever their data
    assert_as_alone(members, expected, train_population(members), tolerance=1e-11)


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", ["bigcn:exact+none+node=0+hidden=10", "bigcn:exact+spectral"])
def test_a_member_is_as_if_alone_with_dense_filters(monkeypatch, name, case, make_members, alone, assert_as_alone):
    members = make_members(name, case=case, epochs=30, curves=True)
    expected = alone(members)  # by hops
    monkeypatch.setattr(kept_input, "dense_pays", lambda *args: True)
    results = train_population(members)
    assert_as_alone(members, expected, results, tolerance=1e-3)  # that of the hops
    again = make_members(name, case=case, epochs=30, curves=True)
    assert_as_alone(again, alone(again), train_population(again))


@pytest.mark.parametrize("case", ["clean", "features"])
@pytest.mark.parametrize("name", [*model_names(), "bigcn:exact+spectral"])
def test_a_member_is_as_if_alone_with_full_lines(monkeypatch, name, case, make_members, alone, assert_as_alone):
    members = make_members(name, case=case, epochs=10, curves=True)
    expected = alone(members)
    widths = fill_up(monkeypatch)
    assert_as_alone(members, expected, train_population(members))
    assert set(widths) == {64}


def fill_up(monkeypatch):
    """Lets features have full lines; the widths that were filled up are added to what is returned."""
    monkeypatch.setattr(feature_product, "FILLED", 24)
    widths = []
    for part in (bigcn_conv, kept_input, population_state):
        monkeypatch.setattr(part, "filling_pays", lambda x: x.dim() == 2 and x.size(1) == 64)
        monkeypatch.setattr(part, "filled", lambda x: widths.append(x.size(1)) or feature_product.filled(x))
    return widths


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", [*model_names(), *FORMS])
def test_a_member_is_as_if_alone_on_a_gpu(monkeypatch, name, case, make_members, alone, assert_as_alone):
    """The step is captured, and captured anew when members are done."""
    monkeypatch.setattr(module, "LOOK_EVERY", 5)
    monkeypatch.setattr(module, "CAPTURE_BYTES", 0)
    fill_up(monkeypatch)
    members = make_members(name, case=case, seeds=range(1, 5), epochs=40, patience=6, curves=True)
    members = [replace(m, model=m.model.to("cuda"), task=m.task.to("cuda")) for m in members]
    assert_as_alone(members, alone(members), train_population(members), tolerance=1e-6)


@pytest.mark.parametrize("name", model_names())
def test_a_member_is_as_if_alone_in_link_prediction(name, make_members, alone, assert_as_alone):
    members = make_members(name, "link", "features", epochs=20)
    assert_as_alone(members, alone(members), train_population(members))


def test_members_may_have_strengths_of_their_own(make_members, alone, assert_as_alone):
    members = []
    for seed, (p, node, feature) in enumerate([(1.0, 5.0, 1.0), (3.0, 1.2, 0.4), (0.5, 9.0, 2.0)]):
        first = make_members("bigcn:exact+correlation", seeds=(seed,), epochs=20)[0]
        with seeded(seed):
            model = BiGCN(
                64,
                16,
                2,
                10,
                p=p,
                node_strength=node,
                feature_strength=feature,
                feature_graph="correlation",
                cached=True,
            )
        members.append(replace(first, model=model))
    degrees = {member.model.convs[0].filter.node_chebyshev.size(0) for member in members}
    assert len(degrees) == 3  # of three polynomials, two are filled up
    assert_as_alone(members, alone(members), train_population(members))


RING = torch.eye(64, dtype=torch.float64)
GIVEN = [RING.roll(step, 0) + RING.roll(-step, 0) for step in (1, 7)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"p": 1.0}, {"p": 3.0}),
        ({"node_filter": "taylor", "node_strength": 0.9}, {"node_filter": "taylor", "node_strength": 0.1}),
        ({"feature_graph": "uniform", "feature_strength": 0.5}, {"feature_graph": "uniform", "feature_strength": 4.0}),
        ({"node_strength": 0.0}, {"node_strength": 5.0}),
        ({"hidden_node_strength": 0.0}, {"hidden_node_strength": 5.0}),
        ({"normalize": True}, {"normalize": False}),
        ({"iterations": 1}, {"iterations": 2}),
        ({"feature_graph_kwargs": {"rank": 16}}, {"feature_graph_kwargs": {"rank": 2}}),
        ({"feature_graph_kwargs": {"smoothing": 1.0}}, {"feature_graph_kwargs": {"smoothing": 50.0}}),
        ({}, {"feature_graph_kwargs": {"weighting": "soft"}}),
        ({"act": "relu"}, {"act": "elu"}),
        ({"feature_graph": GIVEN[0]}, {"feature_graph": GIVEN[1]}),
    ],
    ids=lambda options: ",".join(options) or "default",
)
def test_members_on_one_graph_may_differ(one, other, make_members, alone, assert_as_alone):
    """In numbers, or in anything else: then they train alone."""
    first = make_members("bigcn", seeds=(1,), epochs=10)[0]
    members = []
    for options in (one, other):
        with seeded(1):
            model = BiGCN(64, 16, 2, 10, check_low_pass=False, **options)
        members.append(replace(first, model=model))
    assert_as_alone(members, alone(members), train_population(members))
    assert not torch.allclose(*(member.model(first.task.x, first.task.edge_index) for member in members))


def test_what_cannot_be_stacked_is_trained_one_by_one(monkeypatch, make_members, alone, assert_as_alone):
    members = make_members("gcn", epochs=4)

    def cannot(*args):
        raise module.CannotStack("different")

    expected = alone(members)
    monkeypatch.setattr(module, "_train_together", cannot)
    assert_as_alone(members, expected, train_population(members))


def test_nobody_is_nothing():
    assert train_population([]) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda member, *_: replace(member, model=torch.nn.Linear(2, 2)), "one class"),
        (
            lambda member, *_: replace(member, config=replace(member.config, learning_rate=0.5)),
            "weight decay and penalty",
        ),
        (
            lambda member, make_task, graph: replace(member, task=make_task(FeatureRate(0.5)(graph()), "node", 0)),
            "same size",
        ),
        (lambda member, make_task, graph: replace(member, task=make_task(graph(), "link", 0)), "one kind"),
    ],
)
def test_members_that_differ_too_much_are_refused(change, words, graph, make_task, make_members):
    members = make_members("gcn", epochs=2)
    with pytest.raises(ValueError, match=words):
        train_population([members[0], change(members[1], make_task, graph)])


def test_splits_may_differ_in_their_nodes(make_members, alone, assert_as_alone):
    data = digits()
    data.x = data.x.double()
    members = make_members("sgc", epochs=20)
    members = [
        replace(m, task=NodeClassification(data, make_split(data, seed=m.seed)), config=replace(m.config, patience=5))
        for m in members
    ]
    assert_as_alone(members, alone(members), train_population(members))
