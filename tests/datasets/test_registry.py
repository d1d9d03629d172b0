import pytest
import torch
from torch_geometric.datasets import Amazon, CitationFull, Planetoid
from torch_geometric.utils import coalesce

from bigcn.datasets import DATASETS, fingerprint, get_spec, load_dataset, verify

PYG = {
    "cora": (Planetoid, "Cora"),
    "citeseer": (Planetoid, "CiteSeer"),
    "pubmed": (Planetoid, "PubMed"),
    "dblp": (CitationFull, "DBLP"),
    "computers": (Amazon, "Computers"),
    "photo": (Amazon, "Photo"),
}


def test_names():
    assert list(DATASETS) == ["digits", *PYG]
    assert all(spec.name == name for name, spec in DATASETS.items())
    assert get_spec("CiteSeer") is DATASETS["citeseer"]


def test_unknown_name():
    with pytest.raises(ValueError, match=r"dataset 'coar' is not known; did you mean 'cora'\? Known are: digits, cora"):
        load_dataset("coar")
    with pytest.raises(ValueError, match="dataset 'xyz' is not known; known are: digits"):
        get_spec("xyz")


def test_every_file_has_well_formed_sums():
    for spec in DATASETS.values():
        for file in spec.files:
            assert file.url.startswith("https://")
            assert file.url.endswith(file.name)
            assert file.sums
            assert all(len(bytes.fromhex(text)) == 32 for text in file.sums)


@pytest.mark.parametrize("name", PYG)
def test_pickles_are_never_judged_by_content(name):
    assert not get_spec(name).by_content or all(file.name.endswith(".npz") for file in get_spec(name).files)


@pytest.mark.parametrize("name", DATASETS)
def test_facts(name, request, monkeypatch):
    if name != "digits":
        monkeypatch.setenv("BIGCN_DATA", str(request.getfixturevalue("benchmark_data")))
    spec, data = get_spec(name), load_dataset(name)
    assert (data.num_nodes, data.num_edges, data.num_features) == (spec.nodes, 2 * spec.edges, spec.features)
    assert data.y.unique().tolist() == list(range(spec.classes))
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    assert (data.x.dtype, data.x.layout, data.y.dtype) == (torch.float32, torch.strided, torch.int64)
    assert fingerprint(data) == fingerprint(name)
    assert ("train_mask" in data) == ("public" in spec.protocols)
    assert verify(name).verified


@pytest.mark.parametrize("name", PYG)
def test_same_as_pyg(name, benchmark_data, tmp_path):
    """Features are raw, and edges differ from PyG's in their order at most."""
    data = load_dataset(name, mirror=benchmark_data)
    dataset, title = PYG[name]
    theirs = dataset(str(tmp_path / "cache"), title)[0]
    assert torch.equal(data.x, theirs.x)
    assert torch.equal(data.y, theirs.y)
    assert torch.equal(data.edge_index, coalesce(theirs.edge_index))
    for key in ("train_mask", "val_mask", "test_mask"):
        assert (key in data) == (key in theirs)
        assert key not in data or torch.equal(data[key], theirs[key])


def test_sums_are_those_of_the_benchmark_data(benchmark_data):
    lines = (benchmark_data / "SHA256SUMS").read_text().split("\n")
    listed = {path.removeprefix("./"): text for text, path in (line.split() for line in lines if line)}
    known = {f"{spec.folder}/raw/{file.name}": file.sums for spec in DATASETS.values() for file in spec.files}
    assert listed.keys() == known.keys()
    assert all(listed[path] in known[path] for path in listed)


def test_amazon_accepts_the_file_that_pyg_downloads():
    upstream = {
        "computers": "736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c",
        "photo": "bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a",
    }
    for name, text in upstream.items():
        assert text in get_spec(name).files[0].sums
