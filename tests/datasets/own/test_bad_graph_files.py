"""Files with a whole graph that cannot be understood: one sentence each, which says what is wrong and where."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def saved(value) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


ADJACENCY = {
    "adj_data": np.ones(2), "adj_indices": np.array([1, 0]), "adj_indptr": np.array([0, 1, 2]),
    "adj_shape": np.array([2, 2]),
}  # fmt: skip
ATTRIBUTES = {
    "attr_data": np.ones(2), "attr_indices": np.array([0, 1]), "attr_indptr": np.array([0, 1, 2]),
    "attr_shape": np.array([2, 2]),
}  # fmt: skip

# What it is: the file, and what the sentence must say.
WHOLE_GRAPHS = {
    "no XML": ("g.graphml", b"not xml", ["g.graphml", ".graphml"]),
    "another XML": ("g.graphml", b"<html></html>", ["g.graphml", ".graphml"]),
    "no nodes": (
        "g.graphml",
        b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected"/></graphml>',
        ["g.graphml", "no nodes"],
    ),
    "broken GML": ("g.gml", b"graph [ node [", ["g.gml"]),
    "broken GEXF": ("g.gexf", b"<gexf>", ["g.gexf"]),
    "broken JSON": ("g.json", b"{", ["g.json"]),
    "JSON of something else": ("g.json", b"[1, 2]", ["g.json", "an object with 'nodes' and 'links'"]),
    "JSON without nodes": ("g.json", b"{}", ["g.json", "'nodes' is missing"]),
    "JSON with a number of nodes": ("g.json", b'{"nodes": 5, "links": "x"}', ["g.json", "'nodes' is no list"]),
    "JSON with a text of links": ("g.json", b'{"nodes": [], "links": "x"}', ["g.json", "'links' is no list"]),
    "JSON with nodes that are numbers": ("g.json", b'{"nodes": [1], "edges": []}', ["g.json", "entry 1 of 'nodes'"]),
    "JSON with a list as id": (
        "g.json", b'{"nodes": [{"id": 1}, {"id": [2]}], "edges": []}', ["g.json", "entry 2 of 'nodes': 'id' must be"],
    ),
    "JSON with half an edge": (
        "g.json", b'{"nodes": [{"id": 1}], "links": [{"source": 1}]}', ["entry 1 of 'links': 'target' is missing"],
    ),
    "a node whose id is null": (
        "g.json", b'{"nodes": [{"id": null}], "links": []}', ["entry 1 of 'nodes': 'id' must be a number or a text"],
    ),
    "a link to a node that is not listed": (
        "g.json", b'{"nodes": [{"id": 1, "v": 2}], "links": [{"source": 1, "target": 7}]}',
        ["edge 1–7, column 'target': id 7 is not in"],
    ),
    "a node that is listed twice": (
        "g.json", b'{"nodes": [{"id": 1, "v": 2}, {"id": 1, "v": 3}], "links": []}', ["g.json", "node 1", "id"],
    ),
    "no UTF-8 in JSON": ("g.json", b"\xff\xfe", ["g.json", "not UTF-8"]),
    "Pajek that was cut off": ("g.net", b'*vertices 2\n1 "a"', ["g.net", "cut off"]),
    "Pajek without a number of nodes": ("g.net", b"*vertices", ["g.net", "cut off, or holds something"]),
    "Pajek without nodes": ("g.net", b"*edges\n1 2 x", ["g.net", "does not belong"]),
    "GML of something else": ("g.gml", b"graph 5", ["g.gml", "does not belong"]),
    "no gzip file": ("g.json.gz", b"junk", ["g.json.gz", "gzip"]),
    "unknown ending": ("g.xlsx", b"x", ["g.xlsx", ".graphml", ".npz", ".pt"]),
    "node table alone": ("nodes.csv", b"id,age\na,1.5\nb,2.5\n", ["nodes.csv", "table of edges"]),
    "no archive": ("g.npz", b"junk", ["g.npz", "it is no zip archive"]),
    "an array alone": ("g.npz", b"\x93NUMPY\x01\x00", ["g.npz", "it is no zip archive"]),
    "an archive that was cut off": ("g.npz", npz(**ADJACENCY)[:-30], ["g.npz", "it is no zip archive"]),
    "an array that was altered": (
        "g.npz", npz(**ADJACENCY).replace(b"NUMPY", b"NUMPX", 1), ["g.npz", "the array 'adj_data' is damaged"],
    ),
    "objects in the archive": (
        "g.npz", npz(**ADJACENCY, **{**ATTRIBUTES, "attr_data": np.array([{}, {}])}),
        ["g.npz", "unpickling", "the array 'attr_data' holds Python objects"],
    ),
    "pickle in disguise": ("g.npz", pickle.dumps([1]), ["g.npz", "unpickling"]),
    "no features in the archive": ("g.npz", npz(**ADJACENCY), ["g.npz", "'attr_data'", "adj_data"]),
    "adjacency out of range": (
        "g.npz", npz(**{**ADJACENCY, "adj_indices": np.array([1, 7])}, **ATTRIBUTES), ["g.npz", "adj_"],
    ),
    "adjacency not square": (
        "g.npz", npz(**{**ADJACENCY, "adj_shape": np.array([2, 3])}, **ATTRIBUTES), ["g.npz", "square", "(2, 3)"],
    ),
    "features of other nodes": (
        "g.npz", npz(**ADJACENCY, **{**ATTRIBUTES, "attr_shape": np.array([3, 2]),
                                     "attr_indptr": np.array([0, 1, 2, 2])}), ["g.npz", "2 nodes", "(3, 2)"],
    ),
    "labels of other nodes": (
        "g.npz", npz(**ADJACENCY, **ATTRIBUTES, labels=np.zeros(3)), ["g.npz", "labels", "2 nodes"],
    ),
    "no tensors": ("g.pt", b"junk", ["g.pt"]),
    "pickled code": ("g.pt", saved(Path("x")), ["g.pt", "nothing else is unpickled"]),
    "a plain pickle": ("g.pt", pickle.dumps({"x": [1]}), ["g.pt"]),
    "a state dict": ("g.pt", saved({"weight": torch.ones(2)}), ["g.pt", "dict"]),
    "a heterogeneous graph": ("g.pt", saved(HeteroData()), ["g.pt"]),
    "Data without features": ("g.pt", saved(Data(edge_index=torch.zeros(2, 1).long())), ["g.pt", "'x'"]),
    "Data without edges": ("g.pt", saved(Data(x=torch.ones(2, 1))), ["g.pt", "'edge_index'"]),
    "Data with an edge to nowhere": (
        "g.pt", saved(Data(x=torch.rand(2, 1), edge_index=torch.tensor([[0, 1], [1, 5]]))),
        ["g.pt", "edge 1", "'target'", "5"],
    ),
    "Data with a negative weight": (
        "g.pt", saved(Data(x=torch.rand(2, 1), edge_index=torch.tensor([[0], [1]]), edge_weight=torch.tensor([-1.0]))),
        ["g.pt", "edge 0", "'weight'", "-1"],
    ),
    "Data with infinite features": (
        "g.pt", saved(Data(x=torch.tensor([[1.0], [np.inf]]), edge_index=torch.tensor([[0], [1]]))),
        ["g.pt", "node 1", "'x0'", "infinite"],
    ),
    "Data with overlapping masks": (
        "g.pt", saved(Data(x=torch.rand(2, 1), edge_index=torch.tensor([[0], [1]]),
                           **{f"{part}_mask": torch.ones(2).bool() for part in ("train", "val", "test")})),
        ["g.pt", "overlap"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE_GRAPHS)
def test_whole_graphs(case, tmp_path, refused):
    name, content, fragments = WHOLE_GRAPHS[case]
    (tmp_path / name).write_bytes(content)
    message = refused(tmp_path / name)
    for fragment in fragments:
        assert fragment in message
    for word in ("allow_pickle", "Iteration", "object has no", "iterable", "unhashable", "unpack", "int()", "codec"):
        assert word not in message
