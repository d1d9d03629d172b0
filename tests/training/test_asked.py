"""Members of whose filters only the rows that are asked for are computed give what they would give alone."""

from dataclasses import replace

import pytest
import torch

from bigcn import BiGCN
from bigcn.tasks import NodeClassification
from bigcn.training import asked, seeded
from bigcn.training import population as module
from bigcn.training.population import train_population
from bigcn.training.population_state import PopulationStep, bytes_per_member

#: Models that end with a filter of which rows can be had.
BY_FILTER = (
    "bigcn:exact+none+node=0+hidden=10",
    "bigcn:exact+spectral",
    "bigcn:exact+none+p=3+k=3",
    "bigcn:exact+learnable",
    "bigcn:exact+uniform+code+feature=1",
    "appnp",
)
NOISE = ("clean", "features", "edges")

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture
def rows(monkeypatch):
    """Lets rows of a filter pay, and returns how many were made at a time."""
    made = []
    monkeypatch.setattr(asked, "rows_pay", lambda *args: True)
    original = asked.last_filter

    def counting(model):
        last = original(model)

        def count(some, graph):
            made.append(some.numel())
            return last.rows(some, graph)

        return None if last is None else last._replace(rows=count)

    monkeypatch.setattr(asked, "last_filter", counting)
    return made


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", BY_FILTER)
def test_a_member_is_as_if_alone(name, case, rows, monkeypatch, make_members, alone, assert_as_alone):
    """Members are dropped as they end."""
    monkeypatch.setattr(module, "LOOK_EVERY", 5)
    members = make_members(name, case=case, seeds=range(1, 5), epochs=40, patience=6, curves=True)
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == [150] * 4  # every member has a split of its own, of 40 and 110 nodes


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", ["bigcn:exact+spectral", "bigcn:exact+none+p=3+k=3", "bigcn:exact+learnable"])
def test_a_member_whose_filter_would_be_dense_is_as_if_alone(
    name, case, rows, monkeypatch, make_members, alone, assert_as_alone
):
    """Rows of an exact inverse, and not those of the series, which is a little off."""
    monkeypatch.setattr("bigcn.nn.kept_input.dense_pays", lambda *args: True)
    members = make_members(name, case=case, epochs=30, curves=True)
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == [150] * 2


def test_members_on_one_graph_share_rows(rows, make_members, alone, assert_as_alone):
    members = make_members(BY_FILTER[0], epochs=20)
    members = [replace(member, task=members[0].task) for member in members]
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == [150]


def test_members_on_one_graph_may_differ_in_strengths(rows, make_members, alone, assert_as_alone):
    first = make_members("bigcn", seeds=(1,), epochs=20)[0]
    members = []
    for p, strength in ((1.0, 5.0), (3.0, 9.0)):
        with seeded(1):
            members.append(
                replace(first, model=BiGCN(64, 16, 2, 10, p=p, node_strength=strength, check_low_pass=False))
            )
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == [150] * 2


@pytest.mark.parametrize("name", ["gcn", "mlp", "bigcn:published", "bigcn:exact+correlation"])
def test_others_need_all_rows(name, rows, make_members, alone, assert_as_alone):
    members = make_members(name, epochs=5)
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == []


@pytest.mark.parametrize("layers", [1, 2])
def test_a_normalisation_after_the_last_layer_needs_all_rows(layers, rows, make_members, alone, assert_as_alone):
    members = make_members("bigcn", epochs=10)
    for number, member in enumerate(members):
        with seeded(number):
            model = BiGCN(64, 8, layers, 10, norm="layer_norm", jk="last", feature_graph="none")
        members[number] = replace(member, model=model)
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == []


class AllNodes(NodeClassification):
    """Looks at nodes that nobody asked about."""

    def loss_of(self, out, *questions):
        return super().loss_of(out, *questions) + out.softmax(dim=-1).square().mean()


@pytest.mark.parametrize("name", ["gcn", "sgc", BY_FILTER[0]])
def test_a_task_that_looks_at_all_nodes_needs_all_rows(name, rows, make_members, alone, assert_as_alone):
    assert not AllNodes.by_rows
    assert NodeClassification.by_rows
    members = make_members(name, epochs=10)
    for member in members:
        member.task.__class__ = AllNodes
    members = [replace(member, task=members[0].task) for member in members]
    assert_as_alone(members, alone(members), train_population(members))
    assert rows == []


def test_rows_of_filters_that_differ_are_counted(rows, make_members):
    members = make_members("bigcn", seeds=(1, 2))
    task = members[0].task
    models = [BiGCN(64, 16, 2, 10, node_strength=strength) for strength in (5.0, 9.0)]
    same = asked.asked_bytes([models[0]] * 2, [task, task])
    assert (same, asked.asked_bytes(models, [task, task]) > 0) == (0, True)


def test_links_need_all_rows(rows, make_members):
    train_population(make_members(BY_FILTER[0], "link", epochs=5))
    assert rows == []


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("one_split", [True, False])
@pytest.mark.parametrize("name", ["sgc", "bigcn"])
def test_features_that_only_weights_come_after(name, one_split, case, make_members, alone, assert_as_alone):
    members = make_members(name, case=case, seeds=(1, 2, 3), epochs=20, curves=True)
    if name == "bigcn":
        with seeded(1):
            layers = [BiGCN(64, 16, 1, 10) for _ in members]
        members = [replace(member, model=layer) for member, layer in zip(members, layers, strict=True)]
    if one_split:
        task = members[0].task
        members = [
            replace(m, task=task.with_features(m.task.x)) if case == "features" else replace(m, task=task)
            for m in members
        ]
    step = PopulationStep(members, capture=False)
    of_training, of_scoring = ([stack.values for stack in seen.kept.values()] for seen in (step.training, step.scoring))
    for found, nodes in ((of_training, 40), (of_scoring, 110)):
        sizes = {x.shape[-2:] for x in found if isinstance(x, torch.Tensor)}
        assert sizes == {(nodes, 64)}, "all rows are not held besides"
    assert_as_alone(members, alone(members), train_population(members))


def test_what_rows_take_is_counted(rows, make_members):
    own = make_members(BY_FILTER[0], case="edges")
    shared = [replace(member, task=own[0].task) for member in own]
    more = bytes_per_member(own) - bytes_per_member(shared)
    assert more == 150 * 150 * own[0].task.x.element_size()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("name", [*BY_FILTER, "sgc"])
def test_a_member_is_as_if_alone_on_a_gpu(name, case, monkeypatch, make_members, alone, assert_as_alone):
    """The step is captured, and captured anew when members are done."""
    monkeypatch.setattr(module, "LOOK_EVERY", 5)
    monkeypatch.setattr(module, "CAPTURE_BYTES", 0)
    members = make_members(name, case=case, seeds=range(1, 5), epochs=40, patience=6, curves=True)
    members = [replace(m, model=m.model.to("cuda"), task=m.task.to("cuda")) for m in members]
    assert asked.rows_suffice(members[0].model, members[0].task) is (name != "sgc")
    assert_as_alone(members, alone(members), train_population(members), tolerance=1e-6)
