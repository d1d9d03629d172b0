import pytest
import torch

from bigcn.datasets.own import InputError, read_graph
from bigcn.estimators.matching import encoding_differences, matched_features


@pytest.fixture
def trained(make_tables):
    return read_graph(*make_tables(), label="kind").encoding


def test_other_units_order_and_categories(make_tables, trained):
    nodes, edges = make_tables(seed=5)
    nodes = nodes[nodes.columns[::-1]]
    mine = read_graph(nodes, edges, label="kind")
    assert mine.encoding.columns != trained.columns
    expected = read_graph(nodes, edges, like=trained)
    assert torch.allclose(matched_features(mine, trained), expected.data.x, atol=1e-5)


def test_fewer_categories_are_fine(make_tables, trained):
    nodes, edges = make_tables(seed=5)
    nodes["soil"] = nodes["soil"].replace("sand", "clay")
    mine, expected = read_graph(nodes, edges, label="kind"), read_graph(nodes, edges, like=trained)
    assert torch.allclose(matched_features(mine, trained), expected.data.x, atol=1e-5)


def test_the_same_is_left_alone(make_tables, trained):
    mine = read_graph(*make_tables(), label="kind")
    assert matched_features(mine, trained) is mine.data.x


def test_lists_what_differs(make_tables, trained):
    nodes, edges = make_tables()
    nodes = nodes.drop(columns="age").rename(columns={"noise": "sound"})
    nodes["soil"] = nodes["soil"].replace("sand", "gravel")
    nodes["height"] = "tall"
    other = read_graph(nodes, edges, label="kind", name="other")
    assert encoding_differences(other.encoding, trained) == [
        "column 'age' is missing",
        "column 'noise' is missing",
        "column 'sound' is new",
        "column 'height' holds a category and not a number",
        "column 'soil' has the new category 'gravel'",
    ]
    with pytest.raises(
        InputError, match=r"other differs from what the model was trained on: column 'age' is missing; "
    ):
        matched_features(other, trained)
