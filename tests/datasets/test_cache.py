import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import (
    DATASETS,
    DatasetCorrupt,
    DatasetUnavailable,
    download,
    fingerprint,
    load_dataset,
    status,
    verify,
)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-10])


def alter(path):
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def test_mirror_is_copied_and_left_alone(tiny, alone, content):
    before = content(tiny)
    data = load_dataset("tiny", mirror=tiny)
    assert (data.num_nodes, data.num_edges) == (600, 1200)
    assert content(tiny) == before
    assert content(alone) == before
    # From now on the cache is enough.
    assert torch.equal(load_dataset("tiny").x, data.x)


def test_loading_is_silent(tiny, monkeypatch, capfd):
    # PyG hushes itself in tests, which would hide what users see.
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    load_dataset("tiny", mirror=tiny)
    assert capfd.readouterr() == ("", "")


def test_mirror_by_variable(tiny, alone, monkeypatch, content):
    monkeypatch.setenv("BIGCN_DATA", str(tiny))
    load_dataset("tiny")
    assert content(alone) == content(tiny)


def test_read_only_mirror(tiny, alone, content):
    for path in sorted(tiny.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    load_dataset("tiny", mirror=tiny)
    assert content(alone) == content(tiny)
    # The copies are the user's own, to be replaced and deleted.
    assert all(path.stat().st_mode & 0o200 for path in alone.rglob("*"))
    for path in (tiny / "Tiny", tiny / "Tiny" / "raw"):
        path.chmod(0o755)


def test_partial_cache_is_completed(tiny, alone, content):
    load_dataset("tiny", mirror=tiny)
    (alone / "Tiny/raw/ind.tiny.graph").unlink()
    load_dataset("tiny", mirror=tiny)
    assert content(alone) == content(tiny)


@pytest.mark.parametrize("harm", [truncate, alter])
def test_damaged_mirror_is_refused_by_name(tiny, alone, harm, content):
    harm(tiny / "Tiny/raw/ind.tiny.allx")
    with pytest.raises(DatasetCorrupt, match=r"Tiny.raw.ind\.tiny\.allx is not the published file of Tiny"):
        load_dataset("tiny", mirror=tiny)
    assert not content(alone)


@pytest.mark.parametrize("harm", [truncate, alter])
def test_damaged_cache_is_refused_and_replaced_on_request(tiny, alone, harm, content):
    load_dataset("tiny", mirror=tiny)
    harm(alone / "Tiny/raw/ind.tiny.graph")
    with pytest.raises(DatasetCorrupt, match=r"ind\.tiny\.graph is not the published file"):
        load_dataset("tiny", mirror=tiny)
    with pytest.raises(DatasetCorrupt, match=r"ind\.tiny\.graph is not the published file"):
        verify("tiny")
    assert download("tiny", mirror=tiny).verified
    assert content(alone) == content(tiny)


@pytest.mark.parametrize("part", ["x", "tx", "allx", "y", "ty", "ally", "graph"])
@pytest.mark.parametrize("place", ["cache", "mirror", "network"])
def test_no_foreign_pickle_is_ever_opened(tiny, alone, tmp_path, part, place, content, serve, payload):
    target = tmp_path / "executed"
    hostile = pickle.dumps(payload(target))
    pickle.loads(hostile)
    assert target.exists(), "the payload must work, or the test says nothing"
    target.rmdir()

    if place == "cache":
        load_dataset("tiny", mirror=tiny)
    bad = (alone if place == "cache" else tiny) / "Tiny/raw" / f"ind.tiny.{part}"
    bad.write_bytes(hostile)
    if place == "network":
        serve(bad.parent)
    mirror = tiny if place == "mirror" else None
    for use in (load_dataset, verify, download) if place == "mirror" else (load_dataset, download):
        with pytest.raises(DatasetUnavailable, match=bad.name.replace(".", r"\.")):
            use("tiny", mirror=mirror)
    assert status("tiny", mirror=mirror).verified is not True
    assert not target.exists()
    assert place == "cache" or not content(alone)


def test_processed_files_are_not_trusted(tiny, alone, tmp_path, payload):
    load_dataset("tiny", mirror=tiny)
    processed = alone / "Tiny/processed/data.pt"
    processed.parent.mkdir()
    processed.write_bytes(pickle.dumps(payload(tmp_path / "executed")))
    load_dataset("tiny")
    assert not (tmp_path / "executed").exists()


def test_download(tiny, alone, monkeypatch, content, serve):
    serve(tiny / "Tiny/raw")
    done = download("tiny")
    assert (done.where, done.verified, done.problem) == ("cache", True, None)
    assert content(alone) == content(tiny)
    monkeypatch.setattr("bigcn.datasets.files.urlopen", lambda url, timeout: pytest.fail("nothing left to download"))
    assert download("tiny") == done


def test_download_that_breaks_off_leaves_nothing(tiny, alone, content, serve):
    (tiny / "Tiny/raw/ind.tiny.tx").unlink()
    serve(tiny / "Tiny/raw")
    with pytest.raises(DatasetUnavailable, match="could not be downloaded"):
        load_dataset("tiny")
    assert not content(alone)


def test_without_network_the_message_says_what_to_do(alone, content):
    with pytest.raises(DatasetUnavailable) as caught:
        load_dataset("cora")
    message = str(caught.value)
    assert "no network" in message
    assert str(alone / "Cora" / "raw") in message
    assert "BIGCN_DATA" in message
    assert "https://github.com/kimiyoung/planetoid/raw/master/data/" in message
    assert all(file.name in message for file in DATASETS["cora"].files)
    assert "\n" not in message
    assert not content(alone)


def test_mirror_that_is_no_folder(alone, monkeypatch, tmp_path):
    monkeypatch.setenv("BIGCN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"BIGCN_DATA must name a folder, and .*nowhere is none"):
        load_dataset("cora")
    with pytest.raises(ValueError, match="mirror must name a folder"):
        load_dataset("cora", mirror=tmp_path / "nowhere")
    assert "BIGCN_DATA must name a folder" in status("cora").problem
    # The embedded graph needs none.
    assert load_dataset("digits").num_nodes == 1797


def test_cache_that_cannot_be_written(tiny, tmp_path):
    obstacle = tmp_path / "obstacle"
    obstacle.write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match="Tiny was loaded, but not kept"):
        assert load_dataset("tiny", cache=obstacle, mirror=tiny).num_nodes == 600
    with pytest.raises(DatasetUnavailable, match="Tiny cannot be kept"):
        download("tiny", cache=obstacle, mirror=tiny)


def test_temporary_folder_that_is_full(tiny, monkeypatch):
    def full(*args):
        raise OSError("No space left on device")

    load_dataset("tiny", mirror=tiny)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DatasetUnavailable, match="cannot be unpacked in a temporary folder: No space left"):
        load_dataset("tiny")


def test_status(tiny, alone, content):
    raw = alone / "Tiny" / "raw"
    size = sum(len(text) for text in content(tiny).values())
    absent = status("tiny")
    assert (absent.where, absent.path, absent.bytes, absent.verified, absent.problem) == ("absent", raw, 0, None, None)
    there = status("tiny", mirror=tiny)
    assert (there.where, there.path, there.bytes, there.verified) == ("mirror", tiny / "Tiny/raw", size, True)
    assert not content(alone), "asking must not copy"
    load_dataset("tiny", mirror=tiny)
    here = status("tiny")
    assert (here.where, here.path, here.bytes, here.verified, here.problem) == ("cache", raw, size, True, None)
    truncate(raw / "ind.tiny.y")
    bad = status("tiny")
    assert (bad.where, bad.bytes, bad.verified) == ("cache", size - 10, False)
    assert "ind.tiny.y" in bad.problem
    (raw / "ind.tiny.y").unlink()
    partial = status("tiny")
    assert (partial.where, partial.problem) == ("absent", "1 of 8 files are missing: ind.tiny.y")
    with pytest.raises(DatasetUnavailable, match=r"ind\.tiny\.y"):
        verify("tiny")


def test_status_of_the_embedded_graph():
    assert status("digits").where == "embedded"
    assert status("digits").verified is None
    assert verify("digits").verified
    assert download("digits") == status("digits")


def test_fingerprint(tiny):
    data = load_dataset("tiny", mirror=tiny)
    assert fingerprint("tiny") == fingerprint(data) == fingerprint(data.clone())
    changed = data.clone()
    changed.x[0, 0] += 1
    assert fingerprint(changed) != fingerprint(data)
    assert fingerprint(Data(x=torch.eye(2))) != fingerprint(Data(x=torch.eye(2).double()))
    assert fingerprint(Data(x=torch.eye(2).to_sparse())) == fingerprint(Data(x=torch.eye(2)))


def test_a_graph_other_than_the_registered_one(tiny, alone, monkeypatch, content):
    """The files are right, but PyG makes something else of them."""
    monkeypatch.setitem(DATASETS, "tiny", replace(DATASETS["tiny"], fingerprint="0" * 64))
    with pytest.raises(DatasetCorrupt, match=r"ind\.tiny\.graph .* is not the published Tiny"):
        load_dataset("tiny", mirror=tiny)
    assert not content(alone)
