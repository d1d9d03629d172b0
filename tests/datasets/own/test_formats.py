"""Files that hold a whole graph, against those who wrote them."""

import gzip
import json

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bigcn.datasets import load_dataset
from bigcn.datasets.own import look, read_graph


def party() -> nx.Graph:
    graph = nx.Graph()
    for i in range(12):
        graph.add_node(f"n{i}", size=i * 1.5, colour="red" if i % 3 else "blue", member=bool(i % 4), kind="uv"[i % 2])
    del graph.nodes["n3"]["size"]
    graph.add_edges_from((f"n{i}", f"n{(i * i + 1) % 12}") for i in range(12))
    graph.add_edge("n0", "n1", weight=2.5)
    return graph


def write_json(graph, path):
    path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))


def write_graphml_gz(graph, path):
    nx.write_graphml(graph, path)
    assert gzip.decompress(path.read_bytes())[:5] == b"<?xml"


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("graphml", nx.write_graphml),
        ("graphml.gz", write_graphml_gz),
        ("gml", nx.write_gml),
        ("gexf", nx.write_gexf),
        ("json", write_json),
    ],
)
def test_what_networkx_writes(ending, write, tmp_path):
    graph = party()
    write(graph, tmp_path / f"party.{ending}")
    found = read_graph(tmp_path / f"party.{ending}", label="kind", standardize=False)
    assert found.name == "party"
    assert found.ids.tolist() == list(graph.nodes)
    columns = ("size", "colour=blue", "colour=red", "member")
    assert found.feature_names == columns
    assert found.missing.nonzero().tolist() == [[3, 0]]
    assert found.data.x[5].tolist() == [7.5, 0, 1, 1]
    assert found.data.y.tolist() == [i % 2 for i in range(12)]
    pairs = {frozenset((found.ids[u], found.ids[v])) for u, v in found.data.edge_index.t()}
    assert pairs == {frozenset(edge) for edge in graph.edges if edge[0] != edge[1]}
    weight = dict(zip(map(tuple, found.data.edge_index.t().tolist()), found.data.edge_weight.tolist(), strict=True))
    assert weight[0, 1] == weight[1, 0] == 2.5
    assert weight[1, 2] == 1


def test_directions_and_parallel_edges(tmp_path):
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(["a", "b", "c"])
    nx.set_node_attributes(graph, {"a": 1.0, "b": 2.0, "c": 4.0}, "x")
    graph.add_edges_from([("a", "b"), ("b", "a"), ("a", "b"), ("c", "c"), ("b", "c")])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    found = read_graph(tmp_path / "g.graphml")
    assert found.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (found.summary.duplicates, found.summary.self_loops) == (2, 1)


def test_pajek(tmp_path):
    graph = nx.Graph([("a", "b"), ("b", "c")])
    nx.set_node_attributes(graph, {"a": "1.5", "b": "2.5", "c": "0.5"}, "size")
    nx.write_pajek(graph, tmp_path / "g.net")
    found = read_graph(tmp_path / "g.net", features=["size"], standardize=False)
    assert found.data.x.view(-1).tolist() == [1.5, 2.5, 0.5]
    assert found.ids.tolist() == ["a", "b", "c"]


def test_gml_without_labels(tmp_path):
    (tmp_path / "g.gml").write_text("graph [ node [ id 4 x 1.5 ] node [ id 9 x 2.5 ] edge [ source 4 target 9 ] ]")
    found = read_graph(tmp_path / "g.gml")
    assert found.ids.tolist() == [4, 9]
    assert found.data.edge_index.tolist() == [[0, 1], [1, 0]]


def csr(prefix: str, matrix) -> dict[str, np.ndarray]:
    matrix = sp.csr_matrix(matrix)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    return {f"{prefix}_{key}": value for key, value in parts.items()}


def test_npz(tmp_path):
    adjacency = np.array([[0, 2, 0], [2, 1, 0], [0, 3, 0]])
    features = np.array([[0, 1.5], [2, 0], [3, 4]])
    np.savez(tmp_path / "g.npz", **csr("adj", adjacency), **csr("attr", features), labels=np.array([1, -1, 0]),
             class_names=np.array(["zebra", "ant"]), other=np.array([{}]))  # fmt: skip
    found = read_graph(tmp_path / "g.npz", standardize=False)
    assert found.data.x.tolist() == features.tolist()
    assert found.classes == ("zebra", "ant")
    assert found.data.y.tolist() == [1, -1, 0]
    # Not symmetric, so that all entries count: 2 + 2, and 3.
    assert found.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert found.data.edge_weight.tolist() == [4, 4, 3, 3]
    assert found.summary.self_loops == 1
    np.savez(tmp_path / "h.npz", **csr("adj", np.array([[0, 2, 0], [2, 1, 0], [0, 0, 0]])), attr_matrix=features)
    dense = read_graph(tmp_path / "h.npz", standardize=False)
    assert dense.data.x.tolist() == features.tolist()
    assert dense.data.edge_weight.tolist() == [2, 2]  # symmetric: each edge stands there twice, and is one
    assert dense.summary.duplicates == 0
    assert dense.data.y is None


@pytest.mark.parametrize(("name", "file"), [("photo", "Photo/raw/amazon_electronics_photo.npz")])
def test_the_file_of_a_benchmark_graph(name, file, benchmark_data, tmp_path, monkeypatch):
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    monkeypatch.setenv("BIGCN_CACHE", str(tmp_path / "cache"))
    expected = load_dataset(name)
    found = read_graph(benchmark_data / file)
    assert torch.equal(found.data.x, expected.x)
    assert torch.equal(found.data.y, expected.y)
    assert torch.equal(found.data.edge_index, expected.edge_index)
    assert "Digital Cameras" in found.classes
    assert any("119,081" in line for line in look(found.summary))


def test_data_of_pyg(tmp_path):
    x = torch.tensor([[0.5, 1], [2, 0], [float("nan"), 1], [1, 1]])
    edge_index = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]])
    masks = {f"{part}_mask": torch.arange(4) == i for i, part in enumerate(("train", "val", "test"))}
    data = Data(x=x, edge_index=edge_index, edge_attr=torch.tensor([[2.0], [2], [3], [3], [1]]),
                y=torch.tensor([[7], [7], [5], [-1]]), **masks)  # fmt: skip
    torch.save(data, tmp_path / "g.pt")
    found = read_graph(tmp_path / "g.pt", standardize=False)
    assert found.feature_names == ("x0", "x1")
    assert found.data.x[:2].tolist() == [[0.5, 1], [2, 0]]
    assert found.missing.nonzero().tolist() == [[2, 0]]
    assert found.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert found.data.edge_weight.tolist() == [2, 2, 3, 3]
    assert found.summary.self_loops == 1
    assert found.classes == ("5", "7")
    assert found.data.y.tolist() == [1, 1, 0, -1]
    assert [found.split.train.tolist(), found.split.val.tolist(), found.split.test.tolist()] == [[0], [1], [2]]
    assert read_graph(tmp_path / "g.pt", like=found.encoding).encoding == found.encoding


def test_reading_leaves_the_list_of_safe_types_as_it_was(tmp_path):
    before = set(torch.serialization.get_safe_globals())
    torch.save(Data(x=torch.rand(2, 1), edge_index=torch.tensor([[0], [1]])), tmp_path / "g.pt")
    read_graph(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before


def test_what_data_of_pyg_holds_beyond_that_is_left_out_with_a_word(tmp_path):
    data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.rand(1, 4),
                **{f"{part}_mask": torch.ones(3, 2).bool() for part in ("train", "val", "test")})  # fmt: skip
    torch.save(data, tmp_path / "g.pt")
    found = read_graph(tmp_path / "g.pt")
    assert found.split is None
    assert found.data.edge_weight is None
    assert any("attributes for each edge" in said for said in found.summary.warnings)
    assert any("masks" in said for said in found.summary.warnings)


def test_links_to_nodes_that_a_file_does_not_list_can_be_dropped(tmp_path):
    """NetworkX would make a node of them."""
    nodes = [{"id": name, "size": size} for name, size in (("a", 1.0), ("b", 2.0), ("c", 4.0))]
    links = [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}, {"source": "x", "target": "a"}]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    graph = read_graph(tmp_path / "g.json", unknown_ids="drop", standardize=False)
    assert list(graph.ids) == ["a", "b", "c"]
    assert graph.data.x.flatten().tolist() == [1.0, 2.0, 4.0]
    assert graph.data.num_edges == 4


@pytest.mark.parametrize("about", [[], None, "a graph", [["name", "x"]], {"name": "x"}])
def test_what_is_said_of_a_graph_as_a_whole_does_not_matter(tmp_path, about):
    nodes, links = [{"id": "a", "size": 1}, {"id": "b", "size": 2}], [{"source": "a", "target": "b"}]
    (tmp_path / "g.json").write_text(json.dumps({"graph": about, "nodes": nodes, "links": links}))
    assert read_graph(tmp_path / "g.json").data.num_edges == 2
