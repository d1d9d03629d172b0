import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from torch_geometric.data import Data

from bigcn.datasets import Split
from bigcn.tasks import NodeClassification
from bigcn.tasks.nodes import classification_scores, degrees


class Answers(torch.nn.Module):
    """A model that has learned its answers by heart."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)
        self.dropout = torch.nn.Dropout(0.5)
        self.seen = None

    def forward(self, x, edge_index, edge_weight=None):
        self.seen = (x, edge_index, edge_weight)
        return self.dropout(self.logits)


def split(train, val, test):
    return Split("by hand", *(torch.tensor(part) for part in (train, val, test)))


@pytest.fixture
def data():
    """Degrees 3, 2, 2, 2, 1, 0, 0 besides a self-loop at the last node."""
    pairs = torch.tensor([[0, 0, 0, 1, 3], [1, 2, 3, 2, 4]])
    loop = torch.tensor([[6], [6]])
    return Data(
        x=torch.randn(7, 3),
        edge_index=torch.cat([pairs, pairs.flip(0), loop], dim=1),
        y=torch.tensor([0, 1, 2, 0, 1, 2, 0]),
    )


PARTS = split([0], [1, 2], [3, 4, 5, 6])


def test_degrees_leave_self_loops_out(data):
    assert degrees(data).tolist() == [3, 2, 2, 2, 1, 0, 0]


def test_loss_is_the_cross_entropy_of_training_nodes(data):
    logits = torch.randn(7, 3)
    model = Answers(logits).eval()
    loss = NodeClassification(data, split([4, 0], [1], [2])).loss(model)
    torch.testing.assert_close(loss, F.cross_entropy(logits[[4, 0]], torch.tensor([1, 0])))
    loss.backward()
    assert model.logits.grad[[1, 2, 3, 5, 6]].abs().sum() == 0


def test_scores_by_hand(data):
    #                         right  wrong right  right  wrong  right  wrong
    predicted = torch.tensor([0, 0, 2, 0, 2, 2, 1])
    model = Answers(F.one_hot(predicted, 3).float())
    task = NodeClassification(data, PARTS, low_degree=1)
    scores = task.evaluate(model)
    assert scores["val"]["accuracy"] == 0.5
    assert scores["test"]["accuracy"] == 0.5
    assert scores["test"]["accuracy_isolated"] == 0.5  # nodes 5 and 6
    assert scores["test"]["accuracy_low_degree"] == pytest.approx(1 / 3)  # nodes 4, 5 and 6
    label = data.y.numpy()
    for part, nodes in (("val", PARTS.val), ("test", PARTS.test)):
        expected = f1_score(label[nodes], predicted.numpy()[nodes], average="macro")
        assert scores[part]["macro_f1"] == pytest.approx(expected)


def test_groups_that_are_empty_have_no_score(data):
    task = NodeClassification(data, split([5], [6], [0, 1]), low_degree=1)
    assert set(task.evaluate(Answers(torch.randn(7, 3)))["test"]) == {"accuracy", "macro_f1"}
    task = NodeClassification(data, split([5], [6], [0, 1]))
    assert "accuracy_low_degree" in task.evaluate(Answers(torch.randn(7, 3)))["test"]


def test_evaluation_has_no_dropout_and_no_gradients(data):
    model = Answers(torch.randn(7, 3)).train()
    task = NodeClassification(data, PARTS)
    assert task.evaluate(model) == task.evaluate(model)
    assert model.training
    task.evaluate(model.eval())
    assert not model.training


def test_preparing_changes_what_the_model_sees_and_not_the_scores(data):
    def lonely(graph):
        graph = graph.clone()
        graph.edge_index, graph.edge_weight = graph.edge_index[:, :1], torch.ones(1)
        return graph

    model = Answers(torch.randn(7, 3))
    plain, prepared = NodeClassification(data, PARTS), NodeClassification(data, PARTS, prepare=lonely)
    assert plain.evaluate(model) == prepared.evaluate(model)
    assert model.seen[1].shape == (2, 1)
    assert model.seen[2].tolist() == [1.0]


def test_the_model_always_sees_the_very_same_tensors(data):
    model, task = Answers(torch.randn(7, 3)), NodeClassification(data, PARTS)
    task.loss(model)
    first = model.seen
    task.evaluate(model)
    assert all(a is b for a, b in zip(first, model.seen, strict=True))


def test_whole_numbers_as_features(data):
    data.x = torch.ones(7, 3, dtype=torch.long)
    assert NodeClassification(data, PARTS).x.dtype == torch.float32


def test_the_number_of_classes(data):
    assert NodeClassification(data, PARTS).num_outputs == 3
    assert NodeClassification(data, PARTS, num_classes=5).num_outputs == 5
    with pytest.raises(ValueError, match="'num_classes'"):
        NodeClassification(data, PARTS, num_classes=2)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data.update({"x": None}), "features"),
        (lambda data: data.update({"x": torch.ones(7)}), "features"),
        (lambda data: data.update({"edge_index": None}), "edges"),
        (lambda data: data.update({"y": None}), "labels"),
        (lambda data: data.update({"y": torch.zeros(7)}), "labels"),
        (lambda data: data.update({"y": torch.zeros(6, dtype=torch.long)}), "labels"),
        (lambda data: data.update({"y": torch.tensor([0, 1, -1, 0, 0, 0, 0])}), "without a label"),
    ],
)
def test_graphs_that_lack_something_are_refused(data, spoil, message):
    spoil(data)
    with pytest.raises(ValueError, match=message):
        NodeClassification(data, PARTS)


def test_splits_of_another_graph_are_refused(data):
    with pytest.raises(ValueError, match="node 7"):
        NodeClassification(data, split([0], [1], [7]))
    with pytest.raises(ValueError, match="'low_degree'"):
        NodeClassification(data, PARTS, low_degree=-1)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_scores_are_those_of_scikit_learn(pairs):
    label, predicted = np.array(pairs).T
    scores = classification_scores(label, predicted, 5)
    assert scores["accuracy"] == pytest.approx(accuracy_score(label, predicted))
    assert scores["macro_f1"] == pytest.approx(f1_score(label, predicted, average="macro"))
