import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bigcn import read_graph
from bigcn.distributed import edge_stream, node_columns, partition_tables
from bigcn.distributed.assign import DiskGraph
from bigcn.distributed.shards import SPLIT


def tables(folder, generator, nodes=40, edges=150, text_ids=False, weighted=True, ending="parquet"):
    ids = generator.permutation(10 * nodes)[:nodes]
    name = (lambda i: f"n{i:04d}") if text_ids else int
    frame = pd.DataFrame({"id": [name(i) for i in ids]})
    frame["size"] = generator.normal(5, 3, nodes)
    frame["kind"] = generator.choice(["a", "b", "c"], nodes)
    frame["flag"] = generator.choice([True, False], nodes)
    frame["flat"] = 2.5
    frame["label"] = pd.Series(generator.choice(["x", "y"], nodes)).where(generator.random(nodes) < 0.9, None)
    frame["split"] = np.where(frame.label.isna(), None, np.resize(["train", "val", "test"], nodes))
    ends = generator.integers(nodes, size=(2, edges))
    links = pd.DataFrame({"target": [name(ids[i]) for i in ends[0]], "source": [name(ids[i]) for i in ends[1]]})
    if weighted:
        links["weight"] = generator.random(edges) + 0.1
    for table, title in ((frame, "nodes"), (links, "edges")):
        path = folder / f"{title}.{ending}"
        table.to_parquet(path) if ending == "parquet" else table.to_csv(path, index=False)
    return folder / f"nodes.{ending}", folder / f"edges.{ending}"


def check(found, graph):
    """The shards, put together again, against what the reader makes of the same files."""
    edge_index, weight = graph.data.edge_index.numpy(), graph.data.edge_weight
    adjacency = np.zeros_like(found.adjacency)
    adjacency[edge_index[0], edge_index[1]] = 1 if weight is None else weight.numpy()
    assert np.array_equal(found.adjacency, adjacency)
    assert np.array_equal(found.x, graph.data.x.double().numpy())
    assert list(found.ids) == list(graph.ids)
    assert found.manifest.encoding == graph.encoding.to_dict()
    assert found.manifest.edges == graph.summary.edges
    assert found.manifest.warnings == graph.summary.warnings
    for name in ("duplicates", "self_loops", "unknown"):
        assert found.manifest.removed[name] == getattr(graph.summary, name)
    if graph.data.y is not None:
        assert np.array_equal(found.y, graph.data.y.numpy())
        assert found.manifest.classes == graph.classes
    if graph.split is not None:
        for number, part in enumerate(SPLIT):
            assert np.array_equal(np.flatnonzero(found.split == number), getattr(graph.split, part).numpy())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    parts=st.integers(1, 5),
    method=st.sampled_from(["neighbours", "contiguous", "random"]),
    text_ids=st.booleans(),
    weighted=st.booleans(),
    ending=st.sampled_from(["parquet", "csv"]),
)
def test_shards_hold_what_the_reader_reads(seed, parts, method, text_ids, weighted, ending, graphs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    nodes, edges = tables(folder, np.random.default_rng(seed), text_ids=text_ids, weighted=weighted, ending=ending)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_stream, "BATCH", 17)
        patch.setattr(node_columns, "CELLS", 64)
        patch.setattr(DiskGraph, "chunks", lambda graph, limit=19, chunks=DiskGraph.chunks: chunks(graph, limit))
        partition_tables(nodes, edges, folder / "shards", parts, label="label", method=method, seed=seed)
    found = graphs.reassembled(folder / "shards")
    check(found, read_graph(nodes, edges, label="label"))
    assert sorted(set(found.owner)) == list(range(parts))


def test_wide_tables_of_categories_are_written_sparse(graphs, tmp_path):
    generator = np.random.default_rng(0)
    nodes, edges = tables(tmp_path, generator, nodes=300)
    frame = pd.read_parquet(nodes)
    for i in range(5):
        frame[f"wide{i}"] = [f"w{k}" for k in generator.integers(40, size=300)]
    frame.to_parquet(nodes)
    manifest = partition_tables(nodes, edges, tmp_path / "shards", 3, label="label")
    assert manifest.sparse
    check(graphs.reassembled(tmp_path / "shards"), read_graph(nodes, edges, label="label"))


def test_what_is_left_out_or_looks_wrong_is_said(graphs, tmp_path):
    nodes, edges = tables(tmp_path, np.random.default_rng(0), nodes=60, edges=40, ending="csv")
    frame = pd.read_csv(nodes)
    frame["seen"] = [f"2026-01-{1 + i % 28:02d}" for i in range(60)]
    frame["remark"] = [f"remark {i}" for i in range(60)]
    frame["code"] = [f"0{i % 7}" for i in range(60)]
    frame["price"] = ["?", "3", "4"] * 20
    frame["place"] = range(60)
    frame["given"] = frame.label
    frame["round"] = 1
    frame["empty"] = ""
    frame["split"] = np.resize(["train", "val", "test"], 60)
    frame[""] = 1
    frame.to_csv(nodes, index=False)
    partition_tables(nodes, edges, tmp_path / "shards", 2, label="label", missing="mean")
    found = graphs.reassembled(tmp_path / "shards").manifest.warnings
    assert found == read_graph(nodes, edges, label="label").summary.warnings
    for part in (
        "without a name", "have no label and were taken out", "'seen': holds dates", "'remark': holds another text",
        "'empty': holds no value", "have no edge", "share a class", "2 columns are constant", "looks like an id",
        "gives the label away", "'?' is none", "looks like a code",
    ):  # fmt: skip
        assert any(part in sentence for sentence in found), part


def test_unknown_ids_and_missing_values_are_refused_or_dealt_with(graphs, tmp_path):
    generator = np.random.default_rng(3)
    nodes, edges = tables(tmp_path, generator)
    links, frame = pd.read_parquet(edges), pd.read_parquet(nodes)
    links.loc[7, "source"] = 99_999
    links.to_parquet(edges)
    with pytest.raises(ValueError, match="row 8, column 'source': id 99999 is not in"):
        partition_tables(nodes, edges, tmp_path / "shards", 2, label="label")
    partition_tables(nodes, edges, tmp_path / "shards", 2, unknown_ids="drop", label="label")
    check(graphs.reassembled(tmp_path / "shards"), read_graph(nodes, edges, unknown_ids="drop", label="label"))

    frame.loc[4, "size"], frame.loc[5, "kind"] = np.nan, None
    frame.to_parquet(nodes)
    with pytest.raises(ValueError, match=r"row 5, column 'size': the value is missing \(1 such in this column"):
        partition_tables(nodes, edges, tmp_path / "other", 2, unknown_ids="drop")
    partition_tables(nodes, edges, tmp_path / "other", 2, unknown_ids="drop", missing="mean", label="label")
    found = graphs.reassembled(tmp_path / "other")
    names = [f"{c['name']}" for c in found.manifest.encoding["columns"] for _ in c.get("categories") or [0]]
    assert abs(found.x[4, names.index("size")]) < 1e-6  # standardised, the mean is zero
    shares = frame.kind.value_counts(normalize=True).sort_index().to_numpy()
    start = names.index("kind")
    assert np.allclose(found.x[5, start : start + 3], shares)


def test_nothing_is_left_behind_when_something_is_wrong(tmp_path):
    nodes, edges = tables(tmp_path, np.random.default_rng(0))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="has no column 'no'"):
        partition_tables(nodes, edges, tmp_path / "shards", 2, label="no")
    with pytest.raises(ValueError, match="at most the number of nodes, 40"):
        partition_tables(nodes, edges, tmp_path / "shards", 41)
    assert sorted(tmp_path.iterdir()) == before
    partition_tables(nodes, edges, tmp_path / "shards", 2, label="label")
    with pytest.raises(ValueError, match="already holds shards"):
        partition_tables(nodes, edges, tmp_path / "shards", 2, label="label")
    assert partition_tables(nodes, edges, tmp_path / "shards", 3, overwrite=True, label="label").parts == 3
    (tmp_path / "shards" / "manifest.json").unlink()
    with pytest.raises(ValueError, match="something that is not shards"):
        partition_tables(nodes, edges, tmp_path / "shards", 2, overwrite=True)
