from functools import cache
from tempfile import TemporaryDirectory

import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import DATASETS, Split, default_protocol, digits, get_spec, load_dataset, make_split

ALL = [(name, protocol) for name, spec in DATASETS.items() for protocol in spec.protocols]


@cache
def labels(name, mirror):
    """All that a split looks at, read once."""
    with TemporaryDirectory() as folder:
        data = load_dataset(name, cache=folder, mirror=mirror)
    kept = {key: value for key, value in data.to_dict().items() if key not in ("x", "edge_index")}
    return Data(num_nodes=data.num_nodes, **kept)


def index(*nodes):
    return torch.tensor(nodes)


@pytest.mark.parametrize(("name", "protocol"), ALL)
def test_every_split(name, protocol, request):
    data = digits() if name == "digits" else labels(name, request.getfixturevalue("benchmark_data"))
    split = make_split(data, name, protocol, seed=5)
    assert split.protocol == protocol
    split.check(data.num_nodes)
    train, val, test = split.masks(data.num_nodes)
    assert not (train & val).any()
    assert not ((train | val) & test).any()
    if protocol == "random":
        classes = get_spec(name).classes
        assert data.y[split.train].bincount().tolist() == [20] * classes
        assert data.y[split.val].bincount().tolist() == [30] * classes
        assert len(split.test) == data.num_nodes - 50 * classes
    else:
        assert (len(split.val), len(split.test)) == (500, 1000)
    if protocol == "public":
        assert torch.equal(test, data.test_mask)


@pytest.mark.parametrize(("name", "train"), [("cora", 140), ("computers", 206), ("photo", 160)])
def test_authors_split_in_file_order(name, train):
    nodes = get_spec(name).nodes
    split = make_split(Data(num_nodes=nodes), name, "authors")
    assert split.train.tolist() == list(range(train))
    assert split.val.tolist() == list(range(train, train + 500))
    assert split.test.tolist() == list(range(train + 500, train + 1500))


@pytest.mark.parametrize("name", ["citeseer", "pubmed"])
def test_authors_split_is_the_public_one(name, benchmark_data):
    data = labels(name, benchmark_data)
    authors, public = make_split(data, name, "authors"), make_split(data, name, "public")
    assert authors.protocol == "authors"
    for part in ("train", "val", "test"):
        assert torch.equal(getattr(authors, part), getattr(public, part))


def test_defaults():
    chosen = {name: default_protocol(name) for name in DATASETS}
    assert {name for name, protocol in chosen.items() if protocol == "random"} == {"digits", "dblp"}
    assert set(chosen.values()) == {"random", "authors"}
    assert make_split(digits(), "digits").protocol == "random"


def test_random_split_is_seeded():
    data = digits()
    one, same, other = (make_split(data, "digits", "random", seed) for seed in (1, 1, 2))
    assert torch.equal(one.train, same.train)
    assert torch.equal(one.val, same.val)
    assert not torch.equal(one.train, other.train)
    # The same on every machine.
    assert one.train[:8].tolist() == [9, 16, 36, 39, 55, 61, 75, 85]


@pytest.mark.parametrize("protocol", ["authors", "public", "nonsense"])
def test_protocol_that_a_graph_does_not_have(protocol):
    with pytest.raises(ValueError, match=f"protocol '{protocol}' does not exist for Digits; it has: random"):
        make_split(digits(), "digits", protocol)
    with pytest.raises(ValueError, match="a graph without a name in the registry; it has: random"):
        make_split(digits(), protocol=protocol)


def test_small_class_is_named():
    y = torch.cat([torch.zeros(60), torch.ones(50)]).long()
    with pytest.raises(ValueError, match="class 1 has 50"):
        make_split(Data(y=y, num_nodes=110))


def test_nodes_without_a_label_are_in_no_part():
    y = torch.cat([torch.full((10,), -1), torch.zeros(60), torch.ones(51)]).long()
    split = make_split(Data(y=y, num_nodes=121))
    assert [len(split.train), len(split.val), len(split.test)] == [40, 60, 11]
    assert min(int(part.min()) for part in (split.train, split.val, split.test)) >= 10


def test_bad_data():
    with pytest.raises(ValueError, match=r"needs labels in data\.y"):
        make_split(Data(num_nodes=3))
    with pytest.raises(ValueError, match="one for each node"):
        make_split(Data(y=torch.eye(3), num_nodes=3))
    with pytest.raises(ValueError, match="at least one label"):
        make_split(Data(y=index(-1, -1), num_nodes=2))
    with pytest.raises(ValueError, match="seed must not be negative"):
        make_split(digits(), seed=-1)
    with pytest.raises(ValueError, match="needs all 2708 nodes of Cora, data has 5"):
        make_split(Data(num_nodes=5), "cora")
    with pytest.raises(ValueError, match="needs train_mask"):
        make_split(Data(num_nodes=2708), "cora", "public")


@pytest.mark.parametrize(
    ("train", "val", "message"),
    [
        (index(0, 1), index(1, 2), "disjoint"),
        (index(0, 0), index(1, 2), "duplicates"),
        (index(-1), index(1), "train must not hold negative"),
        (index(0), index(0)[:0], "val must not be empty"),
        (index(0), torch.tensor([True]), "val must be int64"),
        (index(0)[None], index(1), "train must be int64 indices in one dimension"),
    ],
)
def test_invalid_split(train, val, message):
    with pytest.raises(ValueError, match=message):
        Split("own", train, val, index(7))


def test_split_out_of_range():
    split = Split("own", index(0), index(1), index(7))
    split.check(8)
    with pytest.raises(ValueError, match="test names node 7, and the graph has 7 nodes"):
        split.masks(7)


def test_masks_round_trip():
    split = Split("own", index(0, 3), index(1), index(2))
    again = Split.from_masks("own", *split.masks(5))
    assert again.train.tolist() == [0, 3]
    assert again.test.tolist() == [2]
