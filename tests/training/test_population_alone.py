"""Members that cannot be stacked give what they would give alone all the same."""

import copy

import pytest
import torch
from torch_geometric.nn.models import GCN

from bigcn import BiGCN
from bigcn.datasets import digits, make_split
from bigcn.nn.baselines import GAT
from bigcn.tasks import LinkPrediction, NodeClassification
from bigcn.training import TrainConfig, train
from bigcn.training.population import Member, train_population

CONFIG = TrainConfig(max_epochs=8, patience=None)


class Plain(torch.nn.Module):
    """A model that nobody here has written."""

    def __init__(self, act=torch.relu):
        super().__init__()
        self.act, self.one, self.two = act, torch.nn.Linear(64, 8), torch.nn.Linear(8, 10)

    def forward(self, x, edge_index, edge_weight=None):
        return self.two(self.act(self.one(x)))


def nodes():
    data = digits()
    return NodeClassification(data, make_split(data, "digits", "random", 0))


def frozen():
    model = Plain()
    model.one.requires_grad_(False)
    return model


def with_unused():
    model = Plain()
    model.idle = torch.nn.Parameter(torch.ones(3))
    return model


MODELS = {
    "frozen": (frozen, frozen),
    "running statistics": (lambda: BiGCN(64, 8, 2, 10, dropout=0.0, norm="batch_norm"),) * 2,
    "other functions": (lambda: Plain(torch.relu), lambda: Plain(torch.tanh)),
    "an unused parameter": (with_unused, with_unused),
    "models of PyG": (lambda: GCN(64, 8, 2, 10),) * 2,
    "another attention": (lambda: GAT(64, 8, 2, 10, heads=2, add_self_loops=False, scales_rows=True),) * 2,
}


def equal_alone(models, tasks, configs):
    copies = [copy.deepcopy(model) for model in models]
    members = [Member(m, t, c, seed) for seed, (m, t, c) in enumerate(zip(models, tasks, configs, strict=True))]
    found = train_population(members)
    for seed, (alone, task, config, result) in enumerate(zip(copies, tasks, configs, found, strict=True)):
        expected = train(alone, task, config, seed=seed)
        assert result.best_epoch == expected.best_epoch
        assert result.metrics == pytest.approx(expected.metrics, abs=1e-5)
        # The model is the one that was scored.
        assert task.evaluate(models[seed])["val"][task.monitor] == pytest.approx(result.score, abs=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_models(kind):
    torch.manual_seed(0)
    task = nodes()
    decays = [TrainConfig(max_epochs=8, patience=None, weight_decay=decay) for decay in (5e-4, 1e-2)]
    equal_alone([make() for make in MODELS[kind]], [task, task], decays)


def test_links_with_other_shares():
    torch.manual_seed(0)
    tasks = [LinkPrediction(digits(), val_share=val, test_share=0.3 - val) for val in (0.2, 0.1)]
    equal_alone([Plain(), Plain()], tasks, [CONFIG, CONFIG])


def test_a_model_cannot_be_given_back_to_two_members():
    model, task = Plain(), nodes()
    with pytest.raises(ValueError, match="share a model"):
        train_population([Member(model, task, CONFIG, seed) for seed in (1, 2)])
