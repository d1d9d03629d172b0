import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from bigcn.datasets import Split
from bigcn.datasets.own import InputError, OwnGraph
from bigcn.estimators.ordering import check_labels, ordered, stratified_split
from bigcn.estimators.pyg_graph import as_own_graph


def test_the_order_of_rows_leaves_no_trace(make_graph):
    plain, shuffled = (ordered(make_graph(shuffle=seed)) for seed in (None, 3))
    assert not torch.equal(plain.order, shuffled.order)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(plain.data[key], shuffled.data[key]), key


def test_edges_and_weights_move_with_their_nodes():
    data = Data(
        x=torch.tensor([[3.0], [1.0], [2.0]]),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_weight=torch.tensor([0.1, 0.1, 0.7, 0.7]),
        y=torch.tensor([0, 1, -1]),
    )
    graph = as_own_graph(data)
    graph = OwnGraph(graph.data, np.array(["c", "a", "b"]), graph.encoding, graph.summary)
    found = ordered(graph)
    assert found.data.x.view(-1).tolist() == [1, 2, 3]
    assert found.data.y.tolist() == [1, -1, 0]
    dense = torch.zeros(3, 3).index_put(tuple(found.data.edge_index), found.data.edge_weight)
    assert torch.allclose(dense, torch.tensor([[0, 0.7, 0.1], [0.7, 0, 0], [0.1, 0, 0]]))
    assert torch.equal(found.back(found.data.x), data.x)
    split = found.forth(Split("column", torch.tensor([0]), torch.tensor([1]), torch.tensor([2])))
    assert [part.item() for part in (split.train, split.val, split.test)] == [2, 0, 1]


def test_ids_of_mixed_types_have_an_order():
    graph = as_own_graph(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]])))
    mixed = OwnGraph(graph.data, np.array([7, "x", 2.5], dtype=object), graph.encoding, graph.summary)
    assert ordered(mixed).order.tolist() == [2, 0, 1]


@given(
    counts=st.lists(st.integers(2, 40), min_size=2, max_size=6).filter(lambda counts: max(counts) > 2),
    unlabelled=st.integers(0, 20),
    seed=st.integers(0, 10**6),
)
def test_splits_are_stratified(counts, unlabelled, seed):
    label = torch.tensor([kind for kind, count in enumerate(counts) for _ in range(count)] + [-1] * unlabelled)
    label = label[torch.randperm(len(label), generator=torch.Generator().manual_seed(seed))]
    names = tuple(map(str, range(len(counts))))
    split = stratified_split(label, names, seed)
    parts = torch.cat([split.train, split.val, split.test])
    assert sorted(parts.tolist()) == (label >= 0).nonzero().view(-1).tolist()
    for kind, count in enumerate(counts):
        train, val, test = (int((label[part] == kind).sum()) for part in (split.train, split.val, split.test))
        assert train >= 1
        assert test >= 1
        assert val >= (count > 2)
        assert abs(val - 0.2 * count) <= 1
        assert abs(test - 0.2 * count) <= 1
    again = stratified_split(label, names, seed)
    assert torch.equal(again.train, split.train)
    assert split.protocol == "stratified-60-20-20"


def test_another_seed_is_another_split():
    label = torch.arange(300) % 3
    first, second = (stratified_split(label, ("a", "b", "c"), seed) for seed in (0, 1))
    assert not torch.equal(first.train, second.train)
    wide = stratified_split(label, ("a", "b", "c"), 0, val_share=0.1, test_share=0.4)
    assert (wide.protocol, len(wide.val), len(wide.test)) == ("stratified-50-10-40", 30, 120)


def test_too_few_labels():
    with pytest.raises(InputError, match="class 'b' has one labelled node"):
        stratified_split(torch.tensor([0, 0, 0, 1]), ("a", "b"), 0)
    with pytest.raises(InputError, match="4 labels are too few"):
        stratified_split(torch.tensor([0, 0, 1, 1]), ("a", "b"), 0)
    for shares in ((0.0, 0.2), (0.2, 1.0), (0.5, 0.5)):
        with pytest.raises(ValueError, match="share"):
            stratified_split(torch.arange(30) % 2, ("a", "b"), 0, *shares)


def test_graphs_without_anything_to_learn():
    edges = torch.tensor([[0, 1], [1, 0]])
    for y, reason in (
        (None, "no labels"),
        (torch.tensor([-1, -1]), "has a label"),
        (torch.tensor([1, 1]), "all labels of graph are '1'"),
    ):
        with pytest.raises(InputError, match=reason):
            check_labels(as_own_graph(Data(x=torch.eye(2), edge_index=edges, y=y)))


def test_a_pyg_graph_with_masks():
    masks = {
        f"{part}_mask": torch.tensor(mask)
        for part, mask in zip(("train", "val", "test"), ([1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]), strict=True)
    }
    masks = {name: mask.bool() for name, mask in masks.items()}
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, -1, 1, 1]), **masks)
    graph = as_own_graph(data, learns_labels=True)
    assert graph.split is not None
    assert graph.split.train.tolist() == [0]
    assert graph.summary.labels == {"0": 1, "1": 2}
    assert graph.summary.unlabelled == 1
    for wrong in (Data(x=torch.eye(2)), "nodes.csv", Data(x=torch.eye(2), edge_index=data.edge_index, y=torch.rand(2))):
        with pytest.raises(ValueError, match="'graph' must"):
            as_own_graph(wrong, learns_labels=True)
