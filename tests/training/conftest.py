"""Members of populations, and what each gives alone."""

import copy
from dataclasses import replace

import pytest
import torch

from bigcn.datasets import Split, digits
from bigcn.nn.registry import ModelContext, get_model
from bigcn.noise import NoiseLevel, StructureMistakes
from bigcn.tasks import LinkPrediction, NodeClassification
from bigcn.training import TrainConfig, seeded, train
from bigcn.training.population import Member

NOISE = {
    "clean": lambda seed: None,
    "features": lambda seed: NoiseLevel(0.5, seed=seed),
    "edges": lambda seed: StructureMistakes(0.003, seed=seed),
}


@pytest.fixture
def double():
    """Lets numbers be of double precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _graph(nodes=150):
    """A part of the digits, in double precision."""
    data = digits()
    kept = torch.arange(data.num_nodes) < nodes
    data = data.subgraph(kept)
    data.x = data.x.double()
    return data


def _make_task(data, kind, seed, prepare=None):
    if kind == "link":
        return LinkPrediction(data, seed=seed, prepare=prepare)
    shuffled = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    train_nodes, val, test = shuffled[:40], shuffled[40:90], shuffled[90:]
    return NodeClassification(data, Split("random", train_nodes, val, test), prepare=prepare)


def _make_members(name, kind="node", case="clean", seeds=(1, 2), epochs=50, **changes):
    entry, clean = get_model(name), _graph()
    members = []
    for seed in seeds:
        noise = NOISE[case](seed)
        task = _make_task(clean if noise is None else noise(clean), kind, seed, entry.prepare)
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


def _alone(members):
    """Every member trained by itself, from a copy; its model and result."""
    out = []
    for member in members:
        model = copy.deepcopy(member.model)
        out.append((model, train(model, member.task, member.config, member.seed)))
    return out


def _assert_as_alone(members, expected, results, tolerance=1e-8):
    for member, (model, result), found in zip(members, expected, results, strict=True):
        assert replace(found, seconds=0.0, curves={}) == replace(result, seconds=0.0, curves={})
        for key, values in result.curves.items():
            assert found.curves[key] == pytest.approx(values, abs=tolerance)
        for (name, one), other in zip(model.named_parameters(), member.model.parameters(), strict=True):
            assert torch.allclose(one, other, rtol=0, atol=tolerance), name


@pytest.fixture
def graph():
    return _graph


@pytest.fixture
def make_task():
    return _make_task


@pytest.fixture
def make_members():
    return _make_members


@pytest.fixture
def alone():
    return _alone


@pytest.fixture
def assert_as_alone():
    return _assert_as_alone
