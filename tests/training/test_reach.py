"""Members that see a part of their graph give what they would give alone on all of it."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import Split
from bigcn.nn.registry import ModelContext, get_model
from bigcn.tasks import NodeClassification
from bigcn.training import TrainConfig, seeded
from bigcn.training import population as module
from bigcn.training.population import Member, train_population
from bigcn.training.population_state import PopulationStep, bytes_per_member
from bigcn.training.reach import is_local

LOCAL = ("gcn", "gdc", "sage", "gin", "gat", "mlp")

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture
def make(double):
    """Makes members on a path of 80 nodes with a few chords, trained at one end and judged near it."""

    def make(name, layers=2, noise=False, device="cpu", epochs=40, patience=6, **settings):
        draw = torch.Generator().manual_seed(7)
        first = torch.arange(79)
        edges = torch.cat([torch.stack([first, first + 1]), torch.tensor([[1, 30, 60], [4, 33, 75]])], dim=1)
        x = torch.rand(80, 12, generator=draw)
        data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.arange(80) % 3)
        order = torch.randperm(20, generator=draw)
        split = Split("own", order[:5], order[5:12], order[12:])
        entry = get_model(name)
        base = NodeClassification(data, split, prepare=entry.prepare).to(device)
        members = []
        for seed in range(1, 5):
            more = torch.randn(80, 12, generator=draw).to(device)
            task = base.with_features(base.x + more) if noise else base
            context = ModelContext("digits", "clean", "node", 12, 3, dropout=0.0)
            with seeded(seed):
                model = entry.model(12, out_channels=3, **{**entry.settings(context), "num_layers": layers, **settings})
            config = TrainConfig.published(
                "node", max_epochs=epochs, patience=patience, weight_decay=seed * 1e-3, curves=True
            )
            members.append(Member(model.to(device), task, config, seed))
        return members

    return make


def nodes_seen(members):
    step = PopulationStep(members, capture=False)
    return [seen.graph.values[0].size(-2) for seen in (step.training, step.scoring)]


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", LOCAL)
def test_a_member_is_as_if_alone(name, layers, noise, monkeypatch, make, alone, assert_as_alone):
    """Members are dropped as they end."""
    if name == "mlp" and layers == 1:
        pytest.skip("a perceptron of one layer has no hidden channels")
    monkeypatch.setattr(module, "LOOK_EVERY", 5)
    members = make(name, layers, noise)
    assert_as_alone(members, alone(members), train_population(members))


@pytest.mark.parametrize(("name", "hops"), [("gcn", 2), ("gat", 2), ("sage", 1), ("gin", 1), ("mlp", 0)])
def test_only_what_answers_depend_on_is_seen(name, hops, make):
    members = make(name)
    task = members[0].task
    expected = []
    for asked in (task.questions()[0], task.scored()[0]):
        near = set(asked.tolist())
        for _ in range(hops):
            near |= {s for s, t in task.edge_index.t().tolist() if t in near}
        expected.append(len(near))
    assert nodes_seen(members) == expected
    assert expected[1] < 80


@pytest.mark.parametrize("name", LOCAL)
def test_edges_may_have_32_bits(name, make, alone, assert_as_alone):
    members = make(name, epochs=10)
    task = members[0].task
    task.edge_index = task.edge_index.int()
    assert_as_alone(members, alone(members), train_population(members))


@pytest.mark.parametrize("name", ["gdc", "sage", "gin"])
def test_a_product_that_members_share_is_not_counted_for_each(name, make):
    members = make(name)
    own = make(name, noise=True)
    x = members[0].task.x
    width = members[0].model(x, members[0].task.edge_index, members[0].task.edge_weight).numel()
    assert bytes_per_member(members) < 5 * sum(8 * p.numel() for p in members[0].model.parameters()) + 400 * width
    assert bytes_per_member(own) - bytes_per_member(members) >= 2 * 8 * x.numel()


def test_rows_are_scaled_as_on_all_of_the_graph(make, alone, assert_as_alone):
    members = make("gcn", scales_rows=True)
    assert max(nodes_seen(members)) < 80
    assert_as_alone(members, alone(members), train_population(members))


@pytest.mark.parametrize("changes", [{"norm": "batch_norm"}, {"jk": "cat"}])
def test_others_see_everything(changes, make):
    members = make("gcn", **changes)
    assert not is_local(members[0].model)
    assert nodes_seen(members) == [80, 80]


def test_members_with_splits_of_their_own_see_everything(make, alone, assert_as_alone):
    members = make("gcn")
    other = members[0].task
    split = replace(
        other.split, train=other.split.train.flip(0) + 1, val=other.split.val + 20, test=other.split.test + 50
    )
    data = Data(x=other.x, edge_index=other.edge_index, y=torch.arange(80) % 3)
    members = [members[0], replace(members[1], task=NodeClassification(data, split))]
    assert nodes_seen(members) == [80, 80]
    assert_as_alone(members, alone(members), train_population(members))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("name", LOCAL)
def test_a_member_is_as_if_alone_on_a_gpu(name, noise, monkeypatch, make, alone, assert_as_alone):
    """The step is captured, and captured anew when members are done."""
    monkeypatch.setattr(module, "LOOK_EVERY", 5)
    monkeypatch.setattr(module, "CAPTURE_BYTES", 0)
    members = make(name, noise=noise, device="cuda")
    assert max(nodes_seen(members)) < 80
    assert_as_alone(members, alone(members), train_population(members), tolerance=1e-6)
