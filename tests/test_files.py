import os
from pathlib import Path

import pytest

from bigcn.files import refuse_special, replace_folder, write_bytes, write_text


def test_file_and_folder_are_created(tmp_path: Path) -> None:
    assert write_text(tmp_path / "a" / "b.txt", "naïve") == tmp_path / "a" / "b.txt"
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "naïve"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_what_utf8_cannot_hold_is_escaped(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "\udcff")
    assert (tmp_path / "a.txt").read_bytes() == b"\\udcff"


def test_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bytes(tmp_path / "a", b"old")

    def full(source: object, target: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_errors_speak_of_the_file_and_not_of_its_draft() -> None:
    with pytest.raises(OSError, match="nowhere") as caught:
        write_bytes("/proc/nowhere.txt", b"")
    assert caught.value.filename == "/proc/nowhere.txt"


def test_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("linked", [False, True])
def test_pipes_and_folders_stay_what_they_are(tmp_path: Path, linked: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, what in (("pipe", "a pipe or a device"), ("folder", "a folder")):
        target, before = tmp_path / name, (tmp_path / name).stat().st_mode
        if linked:
            target = tmp_path / f"link to {name}"
            target.symlink_to(tmp_path / name)
        with pytest.raises(ValueError, match=f"{target} is {what}"):
            write_bytes(target, b"new")
        assert (tmp_path / name).stat().st_mode == before
        assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]


def test_what_is_not_there_yet_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("nothing", "link"):
        refuse_special(tmp_path / name)
        write_bytes(tmp_path / name, b"new")
    assert (tmp_path / "new").read_bytes() == b"new"


def test_a_folder_is_replaced_whole(tmp_path):
    target = tmp_path / "folder"
    replace_folder(target, {"a": b"1", "b": b"2"})
    replace_folder(target, {"b": b"3"})
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"b": b"3"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path, monkeypatch, fails_at):
    target = replace_folder(tmp_path / "folder", {"a": b"1"})
    real, calls = os.rename, []

    def rename(*names):
        calls.append(names)
        if len(calls) == fails_at:
            raise OSError("no")
        real(*names)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(OSError, match="no"):
        replace_folder(target, {"a": b"2"})
    assert (target / "a").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
