"""Training that was interrupted ends as if it had not been."""

import json

import pytest
import torch
from safetensors.torch import load, save
from torch_geometric.data import Data

from bigcn import BiGCN
from bigcn.datasets import Split
from bigcn.tasks import NodeClassification
from bigcn.training import TrainConfig, TrainSession, seeded, train


@pytest.fixture(scope="module")
def task() -> NodeClassification:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    x = torch.randn(60, 7, generator=generator) + y.unsqueeze(1)
    edges = torch.randint(0, 60, (2, 200), generator=generator)
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=y)
    return NodeClassification(data, Split("test", torch.arange(20), torch.arange(20, 40), torch.arange(40, 60)))


def build() -> BiGCN:
    with seeded(3):
        return BiGCN(7, 8, 2, 3, dropout=0.5, cached=True)


def stop_at(*epochs: int):
    return lambda progress: progress.epoch in epochs


@pytest.mark.parametrize(
    ("config", "stops"),
    [
        ({"max_epochs": 30, "patience": None}, (7,)),
        ({"max_epochs": 30, "patience": None, "curves": True}, (1, 12, 29)),
        ({"max_epochs": 200, "patience": 15}, (11,)),
        ({"max_epochs": 30, "patience": None, "evaluate_every": 10}, (4,)),
        ({"max_epochs": 30, "patience": None, "restore_best": False}, (7,)),
    ],
)
def test_goes_on_as_if_it_had_not_stopped(task, config, stops):
    config = TrainConfig(**config)
    whole = build()
    expected = train(whole, task, config, seed=5)

    session = TrainSession()
    for stop in stops:
        outcome = train(build(), task, config, 5, stop_at(stop), session)
        assert (outcome.stopped, outcome.epochs, session.epoch) == ("callback", stop, stop)
        # Through files: all of it is tensors and plain numbers.
        tensors = load(save({name: tensor.contiguous() for name, tensor in session.tensors.items()}))
        session = TrainSession(tensors, json.loads(json.dumps(session.numbers)))
    resumed = build()
    found = train(resumed, task, config, 5, session=session)

    assert (found.best_epoch, found.epochs, found.score) == (expected.best_epoch, expected.epochs, expected.score)
    assert (found.metrics, found.val_metrics) == (expected.metrics, expected.val_metrics)
    assert found.curves == expected.curves
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_a_parameter_without_a_gradient_goes_on_without(task):
    def with_spare() -> torch.nn.Module:
        model = build()
        model.spare = torch.nn.Linear(4, 4)
        return model

    config, session = TrainConfig(max_epochs=6, patience=None), TrainSession()
    whole = with_spare()
    train(whole, task, config, 5)
    train(with_spare(), task, config, 5, stop_at(3), session)
    resumed = with_spare()
    train(resumed, task, config, 5, session=session)
    for name, tensor in whole.convs.state_dict().items():
        assert torch.equal(tensor, resumed.convs.state_dict()[name]), name


def test_the_session_is_not_changed_by_going_on(task):
    session = TrainSession()
    train(build(), task, TrainConfig(max_epochs=30, patience=None), 5, stop_at(7), session)
    before = {name: tensor.clone() for name, tensor in session.tensors.items()}
    train(build(), task, TrainConfig(max_epochs=30, patience=None), 5, session=session)
    assert session.epoch == 7
    assert all(torch.equal(tensor, session.tensors[name]) for name, tensor in before.items())


def test_stopped_in_the_last_epoch(task):
    session, config = TrainSession(), TrainConfig(max_epochs=5, patience=None)
    first = train(build(), task, config, 5, stop_at(5), session)
    model = build()
    assert train(model, task, config, 5, session=session).metrics == first.metrics
    assert torch.equal(model.state_dict()["convs.0.lin.weight"], session.best_state["convs.0.lin.weight"])


def test_half_a_session_is_refused():
    with pytest.raises(ValueError, match="belong together"):
        TrainSession({"a": torch.zeros(1)})


def test_a_run_that_ended_by_itself_leaves_nothing(task):
    session = TrainSession()
    train(build(), task, TrainConfig(max_epochs=3), 5, session=session)
    assert session.numbers == {}
