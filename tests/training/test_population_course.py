"""How a population goes: who stops and is dropped, what memory it takes, what is drawn."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch

from bigcn import BiGCN
from bigcn.training import population as module
from bigcn.training import population_state
from bigcn.training.population import train_population

pytestmark = pytest.mark.usefixtures("double")


def test_members_stop_each_for_itself(monkeypatch, make_members, alone, assert_as_alone):
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


@pytest.mark.parametrize(("captured", "sharers"), [(False, 1), (False, 5), (True, 1), (True, 5)])
def test_members_that_are_done_are_dropped_once_they_have_taken_as_long_as_that_takes(
    captured, sharers, monkeypatch, make_members
):
    """With others on the GPU they have sooner: all wait for them, and nobody for the host, which captures."""
    monkeypatch.setattr(module, "LOOK_EVERY", 3)
    monkeypatch.setattr(population_state, "_captured", lambda call: call)
    members = make_members("gcn", case="features", seeds=range(12), epochs=200, patience=4)
    more = 50 // sharers if captured else 0
    monkeypatch.setattr(module, "CAPTURE_BYTES", 50 * module.bytes_per_member(members))
    found, drop = [], module.PopulationStep.drop
    monkeypatch.setattr(module.PopulationStep, "drop", lambda step, kept: found.append(len(kept)) or drop(step, kept))
    epochs = [result.epochs for result in train_population(members, capture=captured, sharers=sharers)]
    expected, size, idle = [], len(members), 0
    for epoch in range(3, max(epochs), 3):
        active = sum(end > epoch for end in epochs)
        idle += 3 * (size - active)
        if idle > size + more:
            expected.append(active)
            size, idle = active, 0
    assert found == expected
    assert 1 + (more <= 10) <= len(expected) < len({3 * (end // 3) for end in epochs})


def test_memory_divides_a_population(monkeypatch, make_members, alone, assert_as_alone):
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
def test_nothing_has_to_be_collected_for_its_memory_to_be_free(monkeypatch, name, make_members):
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


def test_what_did_not_fit_is_gone_when_fewer_are_tried(monkeypatch, make_members, alone, assert_as_alone):
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


def test_a_member_that_diverges_fails_alone(make_members, alone):
    members = make_members("gcn", seeds=(1, 2, 3), epochs=8)
    (_, expected_first), _, (_, expected_third) = alone(members)
    with torch.no_grad():
        next(members[1].model.parameters()).fill_(torch.nan)
    first, second, third = train_population(members)
    assert isinstance(second, FloatingPointError)
    assert "the loss is nan in epoch 1" in str(second)
    assert [first.metrics, third.metrics] == [expected_first.metrics, expected_third.metrics]


def test_members_drop_apart(make_members):
    members = make_members("mlp", seeds=(1, 1), epochs=3, restore_best=False)
    for member in members:
        member.model.mlp.dropout = [0.5, 0.5]
    same = [replace(member, task=members[0].task) for member in members]
    for one, other in zip(*(member.model.parameters() for member in same), strict=True):
        assert torch.equal(one, other)
    first, second = train_population([replace(m, config=replace(m.config, curves=True)) for m in same])
    assert first.curves["loss"] != second.curves["loss"]


def test_members_drop_their_inputs_apart(make_members):
    members = make_members("bigcn:none", seeds=(1, 1), epochs=3, curves=True)
    dropping = []
    for member in members:
        model = BiGCN(**{**member.model.arguments, "dropout": 0.5, "drops_input": True}).double()
        model.load_state_dict(member.model.state_dict())
        model.dropout.p = 0.0  # between the layers
        dropping.append(replace(member, model=model, task=members[0].task))
    first, second = train_population(dropping)
    assert first.curves["loss"] != second.curves["loss"]


def test_with_dropout_a_population_repeats_itself(make_members):
    def losses():
        members = make_members("gcn", epochs=5, curves=True)
        for member in members:
            member.model.dropout.p = 0.5
        return [result.curves["loss"] for result in train_population(members)]

    torch.manual_seed(1)
    first = losses()
    torch.manual_seed(2)
    assert losses() == first


def test_generators_are_left_as_they_were(make_members):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train_population(make_members("mlp", epochs=2))
    assert torch.equal(torch.rand(3), expected)
