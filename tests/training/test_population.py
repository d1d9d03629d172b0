"""A member of a population gives what it would give alone."""

import copy
import gc
import weakref
from dataclasses import replace

import pytest
import torch

from bigcn import BiGCN
from bigcn.datasets import Split, digits, make_split
from bigcn.nn import bigcn_conv, feature_product, kept_input
from bigcn.nn.registry import ModelContext, get_model, model_names
from bigcn.noise import FeatureRate, NoiseLevel, StructureMistakes
from bigcn.tasks import LinkPrediction, NodeClassification
from bigcn.training import TrainConfig, population_state, seeded, train
from bigcn.training import population as module
from bigcn.training.population import Member, train_population

FORMS = ("bigcn:exact+spectral", "bigcn:exact+correlation", "bigcn:exact+learnable", "bigcn:taylor+uniform")
NOISE = {
    "clean": lambda seed: None,
    "features": lambda seed: NoiseLevel(0.5, seed=seed),
    "edges": lambda seed: StructureMistakes(0.003, seed=seed),
}


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def graph(nodes=150):
    """A part of the digits, in double precision."""
    data = digits()
    kept = torch.arange(data.num_nodes) < nodes
    data = data.subgraph(kept)
    data.x = data.x.double()
    return data


def make_task(data, kind, seed, prepare=None, protocol=None):
    if kind == "link":
        return LinkPrediction(data, seed=seed, prepare=prepare)
    shuffled = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    train_nodes, val, test = shuffled[:40], shuffled[40:90], shuffled[90:]
    return NodeClassification(data, Split("random", train_nodes, val, test), prepare=prepare)


def make_members(name, kind="node", case="clean", seeds=(1, 2), epochs=50, **changes):
    entry, clean = get_model(name), graph()
    members = []
    for seed in seeds:
        noise = NOISE[case](seed)
        task = make_task(clean if noise is None else noise(clean), kind, seed, entry.prepare)
        dataset = "cora" if "published" in name else "digits"
        context = ModelContext(dataset, "clean", kind, task.num_features, task.num_outputs, dropout=0.0)
        with seeded(seed):
            model = entry.build(context)
        config = TrainConfig.published(
            kind,
            max_epochs=epochs,
            weight_decay=seed * 1e-3,
            penalty=entry.training(context).penalty,
            **changes,
        )
        members.append(Member(model, task, config, seed))
    return members


def alone(members):
    """Every member trained by itself, from a copy; its model and result."""
    out = []
    for member in members:
        model = copy.deepcopy(member.model)
        out.append((model, train(model, member.task, member.config, member.seed)))
    return out


def assert_as_alone(members, expected, results, tolerance=1e-8):
    for member, (model, result), found in zip(members, expected, results, strict=True):
        assert replace(found, seconds=0.0, curves={}) == replace(result, seconds=0.0, curves={})
        for key, values in result.curves.items():
            assert found.curves[key] == pytest.approx(values, abs=tolerance)
        for (name, one), other in zip(model.named_parameters(), member.model.parameters(), strict=True):
            assert torch.allclose(one, other, rtol=0, atol=tolerance), name


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", [*model_names(), *FORMS])
def test_a_member_is_as_if_alone(name, case):
    members = make_members(name, case=case, epochs=50 if case == "edges" else 10, curves=True)
    assert_as_alone(members, alone(members), train_population(members))


def test_numbers_of_members_have_the_precision_of_the_data():
    members = make_members("mlp", epochs=50, curves=True)
    expected = alone(members)
    torch.set_default_dtype(torch.float32)  # which is what most users have, whatever their data
    assert_as_alone(members, expected, train_population(members), tolerance=1e-11)


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", ["bigcn:exact+none+node=0+hidden=10", "bigcn:exact+spectral"])
def test_a_member_is_as_if_alone_with_dense_filters(monkeypatch, name, case):
    members = make_members(name, case=case, epochs=30, curves=True)
    expected = alone(members)  # by hops
    monkeypatch.setattr(kept_input, "dense_pays", lambda *args: True)
    results = train_population(members)
    assert_as_alone(members, expected, results, tolerance=1e-3)  # that of the hops
    again = make_members(name, case=case, epochs=30, curves=True)
    assert_as_alone(again, alone(again), train_population(again))


@pytest.mark.parametrize("case", ["clean", "features"])
@pytest.mark.parametrize("name", [*model_names(), "bigcn:exact+spectral"])
def test_a_member_is_as_if_alone_with_full_lines(monkeypatch, name, case):
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
def test_a_member_is_as_if_alone_on_a_gpu(monkeypatch, name, case):
    """The step is captured, and captured anew when members are done."""
    monkeypatch.setattr(module, "LOOK_EVERY", 5)
    monkeypatch.setattr(module, "CAPTURE_BYTES", 0)
    fill_up(monkeypatch)
    members = make_members(name, case=case, seeds=range(1, 5), epochs=40, patience=6, curves=True)
    members = [replace(m, model=m.model.to("cuda"), task=m.task.to("cuda")) for m in members]
    assert_as_alone(members, alone(members), train_population(members), tolerance=1e-6)


@pytest.mark.parametrize("name", model_names())
def test_a_member_is_as_if_alone_in_link_prediction(name):
    members = make_members(name, "link", "features", epochs=20)
    assert_as_alone(members, alone(members), train_population(members))


def test_members_may_have_strengths_of_their_own():
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
def test_members_on_one_graph_may_differ(one, other):
    """In numbers, or in anything else: then they train alone."""
    first = make_members("bigcn", seeds=(1,), epochs=10)[0]
    members = []
    for options in (one, other):
        with seeded(1):
            model = BiGCN(64, 16, 2, 10, check_low_pass=False, **options)
        members.append(replace(first, model=model))
    assert_as_alone(members, alone(members), train_population(members))
    assert not torch.allclose(*(member.model(first.task.x, first.task.edge_index) for member in members))


def test_members_stop_each_for_itself(monkeypatch):
    monkeypatch.setattr(module, "LOOK_EVERY", 3)
    members = make_members("gcn", case="features", seeds=range(6), epochs=200)
    members = [replace(member, config=replace(member.config, patience=4, curves=True)) for member in members]
    expected = alone(members)
    assert len({result.epochs for _, result in expected}) > 2
    sizes = []
    results = train_population(members, on_look=lambda epoch, active: sizes.append(active))
    assert_as_alone(members, expected, results)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


def test_members_that_are_done_are_dropped_once_they_have_taken_as_long_as_that_takes(monkeypatch):
    monkeypatch.setattr(module, "LOOK_EVERY", 3)
    members = make_members("gcn", case="features", seeds=range(12), epochs=200, patience=4)
    found, drop = [], module.PopulationStep.drop
    monkeypatch.setattr(module.PopulationStep, "drop", lambda step, kept: found.append(len(kept)) or drop(step, kept))
    epochs = [result.epochs for result in train_population(members)]
    expected, size, idle = [], len(members), 0
    for epoch in range(3, max(epochs), 3):
        active = sum(end > epoch for end in epochs)
        idle += 3 * (size - active)
        if idle > size:
            expected.append(active)
            size, idle = active, 0
    assert found == expected
    assert 1 < len(expected) < len({3 * (end // 3) for end in epochs})


def test_memory_divides_a_population(monkeypatch):
    members = make_members("sgc", seeds=range(5), epochs=5)
    expected, sizes = alone(members), []
    together = module._train_together
    monkeypatch.setattr(module, "_train_together", lambda part, *rest: sizes.append(len(part)) or together(part, *rest))
    allowed = 2 * module.bytes_per_member(members)
    assert_as_alone(members, expected, train_population(members, max_memory=allowed))
    assert sizes == [2, 2, 1]
    assert_as_alone(members, expected, train_population(make_members("sgc", seeds=range(5), epochs=5), max_memory=1))
    assert sizes == [2, 2, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("name", ["gcn", "bigcn:published"])
def test_nothing_has_to_be_collected_for_its_memory_to_be_free(monkeypatch, name):
    kept, make = [], module.PopulationStep.__init__
    monkeypatch.setattr(
        module.PopulationStep, "__init__", lambda step, *rest: kept.append(weakref.ref(step)) or make(step, *rest)
    )
    members = make_members(name, case="features", seeds=range(3), epochs=12)
    gc.disable()
    try:
        train_population(members)
        assert [step() for step in kept] == [None]
    finally:
        gc.enable()


def test_what_did_not_fit_is_gone_when_fewer_are_tried(monkeypatch):
    members = make_members("gcn", seeds=range(4), epochs=5)
    expected, kept, sizes = alone(members), [], []
    train_step, empty = module.PopulationStep.train, torch.cuda.empty_cache

    def too_large(step, epoch):
        if step.size > 2:
            kept.append(weakref.ref(step))
            raise torch.cuda.OutOfMemoryError
        sizes.append(step.size)
        train_step(step, epoch)

    monkeypatch.setattr(module.PopulationStep, "train", too_large)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: sizes.append([step() for step in kept]) or empty())
    assert_as_alone(members, expected, train_population(members))
    assert sizes == [[None], *[2] * 10]


def test_a_member_that_diverges_fails_alone():
    members = make_members("gcn", seeds=(1, 2, 3), epochs=8)
    (_, expected_first), _, (_, expected_third) = alone(members)
    with torch.no_grad():
        next(members[1].model.parameters()).fill_(torch.nan)
    first, second, third = train_population(members)
    assert isinstance(second, FloatingPointError)
    assert "the loss is nan in epoch 1" in str(second)
    assert [first.metrics, third.metrics] == [expected_first.metrics, expected_third.metrics]


def test_members_drop_apart():
    members = make_members("mlp", seeds=(1, 1), epochs=3, restore_best=False)
    for member in members:
        member.model.mlp.dropout = [0.5, 0.5]
    same = [replace(member, task=members[0].task) for member in members]
    for one, other in zip(*(member.model.parameters() for member in same), strict=True):
        assert torch.equal(one, other)
    first, second = train_population([replace(m, config=replace(m.config, curves=True)) for m in same])
    assert first.curves["loss"] != second.curves["loss"]


def test_with_dropout_a_population_repeats_itself():
    def losses():
        members = make_members("gcn", epochs=5, curves=True)
        for member in members:
            member.model.dropout.p = 0.5
        return [result.curves["loss"] for result in train_population(members)]

    torch.manual_seed(1)
    first = losses()
    torch.manual_seed(2)
    assert losses() == first


def test_generators_are_left_as_they_were():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train_population(make_members("mlp", epochs=2))
    assert torch.equal(torch.rand(3), expected)


def test_what_cannot_be_stacked_is_trained_one_by_one(monkeypatch):
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
        (lambda member: replace(member, model=torch.nn.Linear(2, 2)), "one class"),
        (lambda member: replace(member, config=replace(member.config, learning_rate=0.5)), "weight decay and penalty"),
        (lambda member: replace(member, task=make_task(FeatureRate(0.5)(graph()), "node", 0)), "same size"),
        (lambda member: replace(member, task=make_task(graph(), "link", 0)), "one kind"),
    ],
)
def test_members_that_differ_too_much_are_refused(change, words):
    members = make_members("gcn", epochs=2)
    with pytest.raises(ValueError, match=words):
        train_population([members[0], change(members[1])])


def test_splits_may_differ_in_their_nodes():
    data = digits()
    data.x = data.x.double()
    members = make_members("sgc", epochs=20)
    members = [
        replace(m, task=NodeClassification(data, make_split(data, seed=m.seed)), config=replace(m.config, patience=5))
        for m in members
    ]
    assert_as_alone(members, alone(members), train_population(members))
