"""PyG graphs in the hands of estimators: what counts, what is refused, and what is left alone."""

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data, HeteroData

from bigcn import BiGCNClassifier
from bigcn.datasets import digits
from bigcn.estimators.pyg_graph import as_own_graph

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def small(**more) -> Data:
    return Data(**({"x": torch.eye(4), "edge_index": EDGES, "y": torch.tensor([0, 0, 1, 1])} | more))


def masks(train, val, test) -> dict[str, torch.Tensor]:
    return {
        f"{part}_mask": torch.tensor([node in nodes for node in range(4)])
        for part, nodes in (("train", train), ("val", val), ("test", test))
        if nodes is not None
    }


@pytest.fixture(scope="module")
def fitted():
    return BiGCNClassifier(search=False, max_epochs=5).fit(digits())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (masks([0, 2], None, [1, 3]), "train_mask and test_mask but no val_mask"),
        (masks([0, 2], None, None), "train_mask but no val_mask or test_mask"),
        ({name: mask.view(4, 1) for name, mask in masks([0, 2], [1], [3]).items()}, r"train_mask\[:, 0\]"),
        (masks([0, 2], [], [1, 3]), "val_mask of 'graph' has no node with a label"),
        (masks([0, 2], [1], [3]) | {"val_mask": torch.ones(3, dtype=torch.bool)}, "val_mask .* each of 4 nodes"),
        (masks([0, 2], [1], [3]) | {"test_mask": torch.tensor([3])}, "test_mask .* each of 4 nodes"),
        ({"y": torch.rand(4)}, "whole numbers as labels"),
        ({"y": torch.zeros(4, 2).long()}, "whole numbers as labels"),
        ({"x": torch.eye(4).index_fill(1, torch.tensor([2]), torch.nan)}, "row 0, column 2"),
        ({"x": torch.eye(4).index_fill(0, torch.tensor([3]), torch.inf).to_sparse()}, "row 3, column 0"),
        ({"edge_index": torch.tensor([[0, -1], [-1, 0]])}, "names node -1"),
        ({"edge_index": torch.tensor([[0, 4], [4, 0]])}, "names node 4"),
        ({"edge_weight": torch.tensor([1, 1, -1, -1, 1, 1.0])}, "negative"),
        ({"edge_weight": torch.tensor([1, 1, torch.nan, torch.nan, 1, 1])}, "finite"),
        ({"edge_index": None}, "edge_index"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(more, said):
    with pytest.raises(ValueError, match=said):
        BiGCNClassifier(search=False, max_epochs=1).fit(small(**more))


def test_other_things_than_graphs_are_refused():
    for wrong in (HeteroData(), torch.eye(3), Data(), Data(x=torch.ones(3), edge_index=EDGES)):
        with pytest.raises(ValueError, match="'graph' must"):
            as_own_graph(wrong)


def test_masks_decide_what_trains():
    data = T.RandomNodeSplit(num_val=300, num_test=900)(digits())
    model = BiGCNClassifier(search=False, max_epochs=2).fit(data)
    for part in ("train", "val", "test"):
        assert torch.equal(getattr(model.split_, part), data[f"{part}_mask"].nonzero().view(-1)), part
        data[f"{part}_mask"] = data[f"{part}_mask"].numpy()
    again = BiGCNClassifier(search=False, max_epochs=2).fit(data)
    assert np.array_equal(again.predict(data), model.predict(data))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8, torch.int64])
def test_labels_may_be_integers_of_any_kind(dtype, fitted):
    data = digits()
    data.y = data.y.to(dtype).view(-1, 1)
    model = BiGCNClassifier(search=False, max_epochs=5).fit(data)
    assert np.array_equal(model.predict(data), fitted.predict(digits()))


def test_truth_values_are_labels():
    data = digits()
    data.y = data.y > 4
    assert BiGCNClassifier(search=False, max_epochs=20).fit(data).score(data) > 0.8


def test_classes_are_the_labels_that_there_are():
    data = digits()
    plain = BiGCNClassifier(search=False, max_epochs=5).fit(data)
    data.y = 3 * data.y + 1
    data.y[:5] = -1
    own = as_own_graph(data, learns_labels=True)
    assert own.data.y[:5].tolist() == [-1] * 5
    assert own.summary.unlabelled == 5
    model = BiGCNClassifier(search=False, max_epochs=5).fit(data)
    assert model.classes_.tolist() == [1, 4, 7, 10, 13, 16, 19, 22, 25, 28]
    assert model.predict_proba(data).shape == (data.num_nodes, 10)
    assert (model.predict(data) == 3 * plain.predict(data) + 1).mean() > 0.7


def test_a_new_graph_needs_no_labels_and_no_masks(fitted):
    data = digits()
    expected = fitted.predict(data)
    for y in (None, data.y.view(-1, 1), data.y.float(), data.y.clone().fill_(7)):
        other = digits()
        other.y = y
        other.train_mask, other.test_mask = torch.zeros(2, data.num_nodes).bool()
        assert np.array_equal(fitted.predict(other), expected)
    other.y = data.y.clone().fill_(7)
    assert fitted.score(other) == (expected == 7).mean()
    other.y = data.y.clone().fill_(-1)
    with pytest.raises(ValueError, match="has a label to compare with"):
        fitted.score(other)


def test_features_that_are_missing_are_refused_not_guessed(fitted):
    data = digits()
    data.x = data.x.index_put((torch.tensor(33), torch.tensor(5)), torch.tensor(torch.nan))
    with pytest.raises(ValueError, match="row 33, column 5"):
        fitted.predict(data)


def test_edges_may_be_a_sparse_matrix(fitted):
    data = T.ToSparseTensor(layout=torch.sparse_csr)(digits())
    assert data.edge_index is None
    assert np.allclose(fitted.predict_proba(data), fitted.predict_proba(digits()), atol=1e-5)


def test_the_graph_stays_where_it_was(fitted, monkeypatch):
    data = digits()
    before = data.x
    moved = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self, *args, **kwargs: moved(self, *args, **kwargs).clone())
    fitted.predict(data)
    assert data.x is before, "a graph on a GPU would have been moved"


def test_numpy_numbers_are_numbers(tmp_path):
    data = digits()
    model = BiGCNClassifier(
        search=False, seed=np.int64(1), max_epochs=np.int64(3), settings={"node_strength": np.float32(2)}
    ).fit(data)
    model.save(tmp_path / "model")
    loaded = BiGCNClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(data), model.predict(data))
