"""Archives that are read without unpickling may be judged by the graph in them."""

import io

import numpy as np
import pytest
from torch_geometric.datasets import CitationFull

from bigcn.datasets import (
    DATASETS,
    DatasetCorrupt,
    DatasetSpec,
    RawFile,
    download,
    fingerprint,
    load_dataset,
    status,
    verify,
)
from bigcn.datasets.files import sha256
from bigcn.datasets.graphs import build_graph, from_pyg


def archive(compressed=True, **changes):
    """A graph of four nodes in the format of DBLP."""
    arrays = {
        "adj_data": np.ones(3),
        "adj_indices": np.array([1, 2, 0]),
        "adj_indptr": np.array([0, 1, 2, 3, 3]),
        "adj_shape": np.array([4, 4]),
        "attr_data": np.ones(4),
        "attr_indices": np.array([0, 1, 0, 1]),
        "attr_indptr": np.arange(5),
        "attr_shape": np.array([4, 2]),
        "labels": np.array([0, 1, 0, 1]),
    }
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **(arrays | changes))
    return out.getvalue()


@pytest.fixture
def small_dblp(tmp_path, monkeypatch):
    """Registers a small DBLP and returns the path of its file in a mirror."""
    build = from_pyg(CitationFull, "DBLP")
    spec = DatasetSpec(
        name="dblp",
        title="DBLP",
        nodes=4,
        edges=3,
        features=2,
        classes=2,
        source="made up",
        licence="none",
        fingerprint=fingerprint(build_graph(build, "dblp", {"dblp.npz": archive()})),
        build=build,
        folder="dblp",
        files=(RawFile("dblp.npz", "https://example.org/dblp.npz", (sha256(archive()),)),),
        by_content=True,
    )
    monkeypatch.setitem(DATASETS, "dblp", spec)
    path = tmp_path / "mirror" / "dblp" / "raw" / "dblp.npz"
    path.parent.mkdir(parents=True)
    return path


def test_other_compression_of_the_same_graph(small_dblp, alone, serve):
    small_dblp.write_bytes(archive(compressed=False))
    assert sha256(small_dblp.read_bytes()) not in DATASETS["dblp"].files[0].sums
    serve(small_dblp.parent)
    assert load_dataset("dblp").num_edges == 6
    assert status("dblp").verified
    assert verify("dblp").verified
    assert download("dblp").where == "cache"


@pytest.mark.parametrize(
    "text",
    [archive(labels=np.array([0, 1, 0, 0])), archive(compressed=False)[:-40], archive(labels=np.array([0])), b""],
    ids=["altered", "truncated", "malformed", "empty"],
)
def test_other_graph_is_refused_by_name(small_dblp, alone, text, content):
    small_dblp.write_bytes(text)
    mirror = small_dblp.parents[2]
    for use in (load_dataset, verify, download):
        with pytest.raises(DatasetCorrupt, match=rf"dblp\.npz \(SHA-256 {sha256(text)}\)"):
            use("dblp", mirror=mirror)
    assert status("dblp", mirror=mirror).verified is False
    assert not content(alone)


@pytest.mark.parametrize("array", ["adj_data", "attr_data", "labels", "extra"])
def test_archive_is_read_without_unpickling(small_dblp, tmp_path, array, payload):
    target = tmp_path / "executed"
    hostile = np.empty(1, dtype=object)
    hostile[0] = payload(target)
    small_dblp.write_bytes(archive(**{array: hostile}))
    if array == "extra":
        load_dataset("dblp", mirror=small_dblp.parents[2])
    else:
        with pytest.raises(DatasetCorrupt):
            load_dataset("dblp", mirror=small_dblp.parents[2])
    assert not target.exists()
