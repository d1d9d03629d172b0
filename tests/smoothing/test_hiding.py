import networkx as nx
import numpy as np
import pytest
import torch

from bigcn.smoothing.hiding import column_groups, connected_rows, hidden_mask


def test_columns_of_a_group_are_hidden_together():
    groups = column_groups([7, 7, 3, 9, 9, 9], 6)
    mask = hidden_mask(5000, groups, 0.2, np.random.default_rng(0)).numpy()
    assert (mask[:, 0] == mask[:, 1]).all()
    assert (mask[:, 3:5] == mask[:, 5:]).all()
    assert (mask[:, 0] != mask[:, 2]).any()
    np.testing.assert_allclose(mask.mean(axis=0), 0.2, atol=0.03)


def test_without_groups_every_column_is_on_its_own():
    mask = hidden_mask(1000, column_groups(None, 3), 0.5, np.random.default_rng(0)).numpy()
    assert np.abs(np.corrcoef(mask.T) - np.eye(3)).max() < 0.15


def test_groups_must_fit():
    with pytest.raises(ValueError, match=r"'groups' must have one number per column \(3, got 2\)"):
        column_groups([1, 2], 3)


def test_a_part_of_a_graph_keeps_its_links():
    graph = nx.random_regular_graph(4, 1000, seed=1)
    edges = torch.tensor(list(graph.edges)).t()
    rows = connected_rows(torch.cat([edges, edges.flip(0)], dim=1), 1000, 100, np.random.default_rng(0))
    assert len(rows) == len(set(rows.tolist())) == 100
    assert nx.number_connected_components(graph.subgraph(rows.tolist())) <= 10


def test_components_are_exhausted_one_after_the_other():
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    assert connected_rows(edges, 6, 5, np.random.default_rng(0)).numel() == 5
    assert connected_rows(None, 6, 4, np.random.default_rng(0)).numel() == 4
