import io
import os
import time
from http.client import IncompleteRead
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from bigcn.datasets import DatasetUnavailable, cache_folder
from bigcn.datasets import files as module


def test_cache_folder_by_argument_and_variable(monkeypatch, tmp_path):
    assert cache_folder(tmp_path / "mine") == tmp_path / "mine"
    monkeypatch.setenv("BIGCN_CACHE", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    monkeypatch.setenv("BIGCN_CACHE", "~/here")
    assert cache_folder() == Path.home() / "here"


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/xdg", Path("/xdg/bigcn")),
        ("linux", "XDG_CACHE_HOME", "relative", Path.home() / ".cache/bigcn"),
        ("linux", "XDG_CACHE_HOME", "", Path.home() / ".cache/bigcn"),
        ("darwin", "XDG_CACHE_HOME", "/xdg", Path.home() / "Library/Caches/bigcn"),
        ("win32", "LOCALAPPDATA", "/local", Path("/local/bigcn")),
        ("win32", "LOCALAPPDATA", "", Path.home() / "AppData/Local/bigcn"),
    ],
)
def test_cache_folder_by_platform(monkeypatch, platform, variable, value, expected):
    monkeypatch.setenv("BIGCN_CACHE", "")
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv(variable, value)
    assert cache_folder() == expected


def test_fetch_never_waits_without_limit(monkeypatch):
    seen = []

    def answer(url, timeout):
        seen.append(timeout)
        return io.BytesIO(b"content")

    monkeypatch.setattr(module, "urlopen", answer)
    assert module.fetch("https://example.org/a") == b"content"
    assert seen == [module.TIMEOUT_SECONDS]


@pytest.mark.parametrize(
    "error",
    [
        URLError("no route"),
        HTTPError("https://example.org/a", 404, "Not Found", None, None),
        TimeoutError("timed out"),
        ConnectionResetError("reset"),
        IncompleteRead(b"half"),
    ],
)
def test_fetch_turns_every_failure_into_one(monkeypatch, error):
    def fail(url, timeout):
        raise error

    monkeypatch.setattr(module, "urlopen", fail)
    with pytest.raises(DatasetUnavailable, match=r"https://example\.org/a: "):
        module.fetch("https://example.org/a")


def test_fetch_refuses_an_endless_answer(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_DOWNLOAD", 10)
    monkeypatch.setattr(module, "urlopen", lambda url, timeout: io.BytesIO(b"x" * 11))
    with pytest.raises(DatasetUnavailable, match="larger than 10 bytes"):
        module.fetch("https://example.org/a")


def test_store_replaces(tmp_path):
    path = tmp_path / "new" / "file"
    module.store(path, b"one")
    module.store(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_interrupted_store_leaves_nothing(tmp_path, monkeypatch, error):
    def fail(handle):
        raise error

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(type(error)):
        module.store(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_store_keeps_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    monkeypatch.setattr("os.fsync", lambda handle: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module.store(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_file_held_open_by_a_reader(tmp_path, monkeypatch):
    """Windows refuses to replace such a file; that is fine if it has the content already, and an error if not."""

    def refuse(part, path):
        raise PermissionError("in use")

    path = tmp_path / "file"
    path.write_bytes(b"content")
    monkeypatch.setattr("os.replace", refuse)
    module.store(path, b"content")
    with pytest.raises(PermissionError):
        module.store(path, b"other")
    assert list(tmp_path.iterdir()) == [path]


def test_parts_of_the_dead_are_swept(tmp_path):
    old, new = tmp_path / ".file.0.part", tmp_path / ".file.1.part"
    old.write_bytes(b"hal")
    new.write_bytes(b"hal")
    os.utime(old, (time.time() - 7200,) * 2)
    module.store(tmp_path / "file", b"half")
    assert not old.exists()
    assert new.exists()
