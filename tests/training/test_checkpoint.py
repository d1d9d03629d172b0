import errno
import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from bigcn import BiGCN
from bigcn.datasets.own import Column, Encoding
from bigcn.training import checkpoint as module
from bigcn.training.checkpoint import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint

ENCODING = Encoding(
    (Column("height", "number", 1.5, 2.0), Column("soil", "category", categories=("clay", "sand"))), ("a", "b"), "kind"
)


@pytest.fixture(scope="module")
def model() -> BiGCN:
    torch.manual_seed(0)
    return BiGCN(3, 4, 2, 2).eval()


@pytest.fixture
def folder(model, tmp_path) -> Path:
    arrays = {"split": {"train": torch.arange(3), "val": torch.arange(2)}, "nothing": {}}
    saved = Checkpoint(model, "node", ENCODING, {"seed": 4, "score": 0.5}, arrays, "# A card\n")
    return save_checkpoint(tmp_path / "model", saved)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rewrite(folder: Path, **changes: object) -> None:
    """Changes the configuration as someone would who also knows how to write the checksum."""
    config = json.loads((folder / "config.json").read_text())
    config.pop("checksum")
    config |= changes
    (folder / "config.json").write_text(json.dumps(config | {"checksum": module._checksum(config)}))


def test_round_trip(folder, model):
    assert sorted(content(folder)) == ["README.md", "config.json", "model.safetensors", "split.safetensors"]
    loaded = load_checkpoint(folder)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.model.state_dict()[name])
    assert not loaded.model.training
    assert (loaded.task, loaded.encoding, loaded.details, loaded.card) == (
        "node",
        ENCODING,
        {"seed": 4, "score": 0.5},
        "# A card\n",
    )
    assert loaded.classes == ("a", "b")
    assert loaded.arrays["split"]["train"].tolist() == [0, 1, 2]


def test_model_alone(model, tmp_path):
    model.save_pretrained(tmp_path / "alone")
    x, edges = torch.randn(5, 3), torch.tensor([[0, 1], [1, 0]])
    assert torch.equal(BiGCN.from_pretrained(tmp_path / "alone")(x, edges), model(x, edges))
    with pytest.raises(CheckpointError, match="already holds a checkpoint"):
        model.save_pretrained(tmp_path / "alone")
    model.save_pretrained(tmp_path / "alone", overwrite=True)


def test_nothing_is_unpickled(folder, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    load_checkpoint(folder)


def _append(folder: Path, name: str) -> None:
    with (folder / name).open("ab") as file:
        file.write(b"\0")


def _other_weights(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    packed = save(tensors)
    (folder / "model.safetensors").write_bytes(packed)
    rewrite(folder, files={"model.safetensors": hashlib.sha256(packed).hexdigest()})


def _junk(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"junk")
    rewrite(folder, files={"model.safetensors": hashlib.sha256(b"junk").hexdigest()})


def _text(folder: Path) -> str:
    return (folder / "config.json").read_text()


BAD = {
    "no folder": (shutil.rmtree, "does not exist"),
    "a file": (lambda f: (shutil.rmtree(f), f.write_text("x")), "is a file"),
    "no configuration": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "not JSON": (lambda f: (f / "config.json").write_text("{"), "not JSON"),
    "not UTF-8": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe"), "not JSON"),
    "another JSON": (lambda f: (f / "config.json").write_text("[1]"), "not the configuration"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
    "altered weights": (lambda f: _append(f, "model.safetensors"), "was changed after it was written"),
    "altered split": (lambda f: _append(f, "split.safetensors"), "split.safetensors was changed"),
    "altered configuration": (
        lambda f: (f / "config.json").write_text(_text(f).replace('"a"', '"c"')),
        "config.json was changed",
    ),
    "newer": (lambda f: rewrite(f, format_version=2, bigcn="9.9"), "bigcn 9.9 in format 2"),
    "older": (lambda f: rewrite(f, format_version=0), "unknown format version 0"),
    "no version": (lambda f: rewrite(f, format_version=None), "unknown format version"),
    "unknown class": (lambda f: rewrite(f, model={"class": "os.system", "arguments": {}}), "'os.system'"),
    "incomplete": (lambda f: rewrite(f, model={}), "not complete"),
    "bad arguments": (
        lambda f: rewrite(f, model={"class": "BiGCN", "arguments": {"in_channels": "x"}}),
        "not complete",
    ),
    "weights of another": (lambda f: _other_weights(f, {"convs.0.bias": torch.zeros(4)}), "the weights lack"),
    "weights of other shape": (
        lambda f: rewrite(
            f,
            model={
                "class": "BiGCN",
                "arguments": {"in_channels": 3, "hidden_channels": 5, "num_layers": 2, "out_channels": 2},
            },
        ),
        "and the model needs",
    ),
    "weights not named": (lambda f: rewrite(f, files={}), "does not name model.safetensors"),
    "weights elsewhere": (lambda f: rewrite(f, files={"../x.safetensors": "0"}), "not a file in the folder"),
    "not safetensors": (_junk, "not a safetensors file"),
}


@pytest.mark.parametrize(("harm", "reason"), BAD.values(), ids=BAD)
def test_refuses(folder, harm, reason):
    harm(folder)
    with pytest.raises(CheckpointError, match=reason) as refused:
        load_checkpoint(folder)
    assert "\n" not in str(refused.value)
    assert str(folder) in str(refused.value)


def test_never_overwrites_what_is_not_its_own(folder, model, tmp_path):
    new = Checkpoint(model)
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    for place, reason in (("file", "is a file"), ("full", "not a checkpoint"), ("no/parent", "no folder")):
        with pytest.raises(CheckpointError, match=reason):
            save_checkpoint(tmp_path / place, new, overwrite=True)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "years of work"
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"more than a checkpoint \(notes.txt\)"):
        save_checkpoint(folder, new, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    load_checkpoint(save_checkpoint(tmp_path / "empty", new))


def test_replaces_a_damaged_one_when_told(folder, model):
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="already holds"):
        save_checkpoint(folder, Checkpoint(model))
    save_checkpoint(folder, Checkpoint(model), overwrite=True)
    assert load_checkpoint(folder).task is None
    assert "split.safetensors" not in content(folder)


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_full_disk_leaves_the_old_one(folder, model, tmp_path, monkeypatch, call):
    before = content(folder)
    real, calls = getattr(os, call), []

    def full(*args: object) -> object:
        calls.append(args)
        if len(calls) == 2:  # the second file; of the renames, the one that puts the new folder in its place
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args)

    monkeypatch.setattr(os, call, full)
    with pytest.raises(CheckpointError, match="No space left on device"):
        save_checkpoint(folder, Checkpoint(model), overwrite=True)
    monkeypatch.undo()
    assert content(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_json_cannot_hold_is_refused(model, tmp_path):
    with pytest.raises(CheckpointError, match="does not fit into JSON"):
        save_checkpoint(tmp_path / "model", Checkpoint(model, details={"score": float("nan")}))
    assert not (tmp_path / "model").exists()


def test_a_link_is_followed(folder, model, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    save_checkpoint(tmp_path / "link", Checkpoint(model, "link"), overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert load_checkpoint(folder).task == "link"
