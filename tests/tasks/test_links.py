import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from bigcn.datasets import digits
from bigcn.nn.registry import get_model
from bigcn.tasks import LinkPrediction
from bigcn.tasks.links import pair_scores

PARTS = ("train", "val", "test")


class Answers(torch.nn.Module):
    def __init__(self, embeddings):
        super().__init__()
        self.embeddings = torch.nn.Parameter(embeddings)
        self.seen = None

    def forward(self, x, edge_index, edge_weight=None):
        self.seen = (x, edge_index, edge_weight)
        return self.embeddings


def random_graph(num_nodes, share, seed, weighted=False):
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((num_nodes, num_nodes)) < share, 1)
    edges = torch.from_numpy(np.argwhere(upper | upper.T).T)
    edges = edges[:, torch.from_numpy(generator.permutation(edges.size(1)))]
    weight = 1 + edges.sum(dim=0).float() if weighted else None
    return Data(x=torch.zeros(num_nodes, 2), edge_index=edges, edge_weight=weight)


def as_set(pairs):
    return {frozenset(pair) for pair in pairs.t().tolist()}


@settings(max_examples=80, deadline=None)
@given(st.integers(8, 20), st.floats(0.2, 0.45), st.integers(0, 2**40), st.sampled_from(["fresh", "fixed"]))
def test_nothing_leaks(num_nodes, share, seed, negatives):
    data = random_graph(num_nodes, share, seed % 1000)
    edges = as_set(data.edge_index)
    if len(edges) < 10 or 2 * len(edges) > num_nodes * (num_nodes - 1) // 2:
        return
    task = LinkPrediction(data, seed=seed, negatives=negatives)
    positives = {part: as_set(task.positives[part]) for part in PARTS}
    assert set().union(*positives.values()) == edges
    assert sum(map(len, positives.values())) == len(edges)  # disjoint
    for part in PARTS:
        assert task.positives[part].size(1) == len(positives[part])
    # Messages pass on training edges alone, in both directions.
    assert as_set(task.edge_index) == positives["train"]
    assert task.edge_index.size(1) == 2 * len(positives["train"])
    for epoch in range(5):
        found = [task.training_negatives(epoch), task.fixed_negatives["val"], task.fixed_negatives["test"]]
        sets = [as_set(pairs) for pairs in found]
        for part, pairs, members in zip(PARTS, found, sets, strict=True):
            assert pairs.size(1) == len(members) == len(positives[part])
            assert all(len(pair) == 2 for pair in members)  # no node with itself
            assert not members & edges
        assert len(set().union(*sets)) == sum(map(len, sets))


def test_shares():
    task = LinkPrediction(digits(), seed=5)
    assert [task.positives[part].size(1) for part in PARTS] == [4313, 539, 539]
    assert LinkPrediction(digits(), val_share=0.2, test_share=0.5).positives["train"].size(1) == 5391 - 1078 - 2696


def test_seeds():
    first, again, other = (LinkPrediction(digits(), seed=seed) for seed in (5, 5, 6))
    for part in PARTS:
        assert torch.equal(first.positives[part], again.positives[part])
        assert torch.equal(first.fixed_negatives[part], again.fixed_negatives[part])
        assert as_set(first.positives[part]) != as_set(other.positives[part])
    assert torch.equal(first.edge_index, again.edge_index)
    assert torch.equal(first.training_negatives(3), again.training_negatives(3))
    assert as_set(first.training_negatives(3)) != as_set(other.training_negatives(3))


def test_the_global_generators_are_not_used():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    first = LinkPrediction(digits(), seed=5)
    state = torch.get_rng_state()
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert torch.equal(first.training_negatives(0), LinkPrediction(digits(), seed=5).training_negatives(0))
    torch.manual_seed(0)
    assert torch.equal(torch.get_rng_state(), state)


def test_fresh_negatives_differ_between_epochs_and_fixed_ones_do_not():
    fresh, fixed = (LinkPrediction(digits(), negatives=kind) for kind in ("fresh", "fixed"))
    assert as_set(fresh.training_negatives(1)) != as_set(fresh.training_negatives(2))
    assert torch.equal(fresh.training_negatives(1), fresh.training_negatives(1))
    assert torch.equal(fixed.training_negatives(1), fixed.training_negatives(2))


def test_edges_keep_their_weights():
    task = LinkPrediction(random_graph(20, 0.3, 1, weighted=True))
    assert torch.equal(task.edge_weight, 1 + task.edge_index.sum(dim=0).float())


def test_a_task_with_other_features_moves_alone():
    task = LinkPrediction(digits(), seed=1)
    other = task.with_features(task.x * 2).to("meta")
    assert other.positives["train"].is_meta
    assert not any(pairs.is_meta for part in (task.positives, task.fixed_negatives) for pairs in part.values())
    assert task.loss(Answers(torch.ones(1797, 2))).isfinite()


def test_self_loops_are_no_links():
    data = random_graph(20, 0.3, 1)
    edges = as_set(data.edge_index)
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[4], [4]])], dim=1)
    task = LinkPrediction(data)
    assert set().union(*(as_set(task.positives[part]) for part in PARTS)) == edges


def test_loss_by_hand():
    data = random_graph(12, 0.4, 3)
    model = Answers(torch.randn(12, 5))
    task = LinkPrediction(data, seed=1)
    unit = model.embeddings / model.embeddings.norm(dim=1, keepdim=True)
    expected = []
    for pairs, linked in ((task.positives["train"], 1), (task.training_negatives(7), 0)):
        for i, j in pairs.t().tolist():
            probability = torch.sigmoid(unit[i] @ unit[j])
            expected.append(-torch.log(probability if linked else 1 - probability))
    torch.testing.assert_close(task.loss(model, epoch=7), torch.stack(expected).mean())


def test_the_loss_has_the_floor_that_the_documentation_names():
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    pairs = torch.cat([edges[:, ::2], torch.tensor([[0, 1], [2, 3]])], dim=1)
    perfect = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    score = pair_scores(perfect, pairs)
    loss = F.binary_cross_entropy_with_logits(score, torch.tensor([1.0, 1.0, 0.0, 0.0]))
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-1)))


def test_auc_is_that_of_scikit_learn():
    task = LinkPrediction(digits(), seed=2)
    model = Answers(torch.randn(1797, 4))
    scores = task.evaluate(model)
    unit = F.normalize(model.embeddings.detach().double(), dim=1).numpy()
    for part in ("val", "test"):
        both = torch.cat([task.positives[part], task.fixed_negatives[part]], dim=1).numpy()
        linked = np.repeat([1, 0], both.shape[1] // 2)
        expected = roc_auc_score(linked, (unit[both[0]] * unit[both[1]]).sum(axis=1))
        assert scores[part]["roc_auc"] == pytest.approx(expected, abs=1e-5)


def test_embeddings_of_length_zero_do_no_harm():
    task = LinkPrediction(random_graph(12, 0.4, 3))
    model = Answers(torch.zeros(12, 5))
    task.loss(model).backward()
    assert torch.isfinite(model.embeddings.grad).all()
    assert task.evaluate(model)["test"]["roc_auc"] == 0.5


def test_preparing_sees_the_training_edges_alone():
    seen = []

    def look(data):
        seen.append(data.edge_index)
        return get_model("gdc").prepare(data)

    task = LinkPrediction(digits(), prepare=look)
    assert as_set(seen[0]) == as_set(task.positives["train"])
    assert task.edge_weight is not None


def test_link_metrics_are_monitored():
    task = LinkPrediction(digits(), embedding_channels=8)
    assert (task.name, task.monitor, task.num_outputs) == ("link", "roc_auc", 8)
    assert set(task.evaluate(Answers(torch.randn(1797, 8)))["val"]) == {"roc_auc", "average_precision"}


def test_directed_graphs_are_refused():
    data = random_graph(12, 0.4, 3)
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    with pytest.raises(ValueError, match="undirected"):
        LinkPrediction(data)


def test_graphs_with_too_few_pairs_left_are_refused():
    complete = torch.combinations(torch.arange(9)).t()
    data = Data(x=torch.zeros(9, 1), edge_index=torch.cat([complete, complete.flip(0)], dim=1))
    with pytest.raises(ValueError, match="not edges"):
        LinkPrediction(data)
    data.edge_index = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="too few"):
        LinkPrediction(data)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"negatives": "some"}, "negatives"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"val_share": 0.0}, "val_share"),
        ({"test_share": 1.0}, "test_share"),
        ({"val_share": 0.5, "test_share": 0.5}, "val_share"),
        ({"embedding_channels": 0}, "embedding_channels"),
    ],
)
def test_nonsense_is_refused(arguments, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        LinkPrediction(random_graph(12, 0.4, 3), **arguments)


def test_a_million_nodes():
    n = 1_000_000
    ring = torch.stack([torch.arange(0, n, 100), (torch.arange(0, n, 100) + 1) % n])
    data = Data(x=torch.zeros(n, 1), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    task = LinkPrediction(data)
    assert task.training_negatives(0).size(1) == 8000
