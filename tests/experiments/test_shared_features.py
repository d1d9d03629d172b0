"""Noisy features that processes share."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bigcn.experiments import shared_features
from bigcn.experiments.comparison import Comparison
from bigcn.experiments.graphs import GraphSource
from bigcn.experiments.shared_features import SharedFeatures, shared_folder


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """There is room, however full the disk and the memory of the tests are."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**9, free=10**9))
    monkeypatch.setattr(shared_features, "_memory", lambda: (10**9, 10**9))


def specs(case, value):
    return Comparison(dataset="digits", models=("sgc",), case=case, values=(value,), seeds=(5, 10)).specs()


@pytest.mark.parametrize("case", ["noise-level", "noise-rate", "column-noise"])
def test_what_was_drawn_is_read_and_is_the_same(case, tmp_path, monkeypatch):
    listed = specs(case, 0.5)
    drawn = [task.x for task in GraphSource(shared=tmp_path).tasks(listed)]
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr("bigcn.experiments.graphs._with_noise", lambda *args: pytest.fail("drawn again"))
    read = [task.x for task in GraphSource(shared=tmp_path).tasks(listed)]
    for one, other, spec in zip(drawn, read, listed, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(other, noisy_graph_of(spec))


def noisy_graph_of(spec):
    from bigcn.datasets import digits
    from bigcn.noise import make_noise

    return make_noise(spec.case, spec.value, spec.seed)(digits()).x


def test_who_writes_into_features_leaves_those_of_others(tmp_path):
    shared = SharedFeatures(tmp_path)
    shared.get("a", lambda: torch.ones(3, 2))
    one, other = (shared.get("a", lambda: pytest.fail("made again")) for _ in range(2))
    one.zero_()
    assert other.eq(1).all()
    assert shared.get("a", lambda: pytest.fail("made again")).eq(1).all()
    assert shared.get("b", lambda: torch.zeros(1)).eq(0).all()


@pytest.mark.parametrize(
    ("total", "free", "memory", "available"),
    [
        pytest.param(100, 60, 10**9, 10**9, id="the place is half full"),
        pytest.param(1000, 910, 400, 400, id="a quarter of the memory is taken"),
        pytest.param(1000, 1000, 200, 110, id="half of the memory is in use"),
    ],
)
def test_where_there_is_no_room_nothing_is_kept(tmp_path, monkeypatch, total, free, memory, available):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=total, free=free))
    monkeypatch.setattr(shared_features, "_memory", lambda: (memory, available))
    shared = SharedFeatures(tmp_path)
    assert shared.get("a", lambda: torch.ones(3, 2)).eq(1).all()
    assert list(tmp_path.iterdir()) == []
    assert shared.get("b", lambda: torch.ones(1, 2)).eq(1).all()
    assert len(list(tmp_path.iterdir())) == 1


def test_who_is_killed_with_all_its_processes_leaves_a_folder_until_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_features, "IN_MEMORY", tmp_path)
    left = tmp_path / "bigcn-features-left"
    left.mkdir()
    (left / "in-use").touch()
    (left / "some.safetensors").touch()
    unknown = tmp_path / "bigcn-features-not-ours"
    unknown.mkdir()
    with shared_folder() as first, shared_folder() as second:
        assert first.exists()
        assert second.exists()
        assert not left.exists()
        assert unknown.exists()
    assert list(tmp_path.iterdir()) == [unknown]


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fails(tensors, path):
        path.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(shared_features, "save_file", fails)
    assert SharedFeatures(tmp_path).get("a", lambda: torch.ones(3, 2)).eq(1).all()
    assert list(tmp_path.iterdir()) == []


def test_who_writes_at_the_same_time_does_not_find_the_same_room(tmp_path, monkeypatch):
    size, most = 2**16, 3
    monkeypatch.setattr(
        shared_features, "_has_room", lambda folder, size: len(list(folder.glob("*.safetensors"))) < most
    )
    together = threading.Barrier(8)

    def make():
        together.wait()
        return torch.ones(size)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda key: SharedFeatures(tmp_path).get(key, make), range(8)))
    assert all(x.eq(1).all() for x in found)
    assert len(list(tmp_path.glob("*.safetensors"))) == most


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB\n", "MemTotal:\n", "MemTotal: 5 kB\nMemAvailable: some\n"])
def test_a_machine_that_does_not_say_how_much_memory_it_has_shares_nothing(tmp_path, monkeypatch, text):
    monkeypatch.undo()
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    assert SharedFeatures(tmp_path).get("a", lambda: torch.ones(3, 2)).eq(1).all()
    assert not list(tmp_path.glob("*.safetensors"))


@pytest.mark.skipif(not shared_features.IN_MEMORY.is_dir(), reason="keeps no files in memory")
def test_memory_is_that_of_the_machine(monkeypatch):
    monkeypatch.undo()
    total, available = shared_features._memory()
    assert total == pytest.approx(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), rel=0.1)
    assert 0 < available < total


def test_a_full_memory_is_not_shared(tmp_path, monkeypatch):
    def fails(**kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(shared_features, "IN_MEMORY", tmp_path)
    monkeypatch.setattr(shared_features, "TemporaryDirectory", fails)
    with shared_folder() as folder:
        assert folder is None


def test_a_folder_that_is_gone_is_no_loss(tmp_path):
    shared = SharedFeatures(tmp_path / "gone")
    assert shared.get("a", lambda: torch.ones(3, 2)).eq(1).all()


def test_where_there_is_no_memory_to_share_everyone_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_features, "IN_MEMORY", tmp_path / "missing")
    with shared_folder() as folder:
        assert folder is None
    monkeypatch.setattr(shared_features, "IN_MEMORY", tmp_path)
    with shared_folder() as folder:
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import os, sys
from pathlib import Path
from bigcn.experiments import shared_features
from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import make_units
from bigcn.experiments.process_executor import ProcessExecutor

shared_features.IN_MEMORY, shared_features._has_room = Path(sys.argv[1]), lambda folder, size: True
if __name__ == "__main__":
    specs = Comparison(
        dataset="digits", models=("sgc",), case="noise-level", values=(0.1, 0.2), training={"max_epochs": 2}
    ).specs()
    with ProcessExecutor(1) as executor:
        for _ in executor.run(make_units(specs, together=False)):
            print("one ended", flush=True)
            sys.stdin.readline()
"""


def test_a_caller_that_is_killed_leaves_nothing_behind(tmp_path):
    (tmp_path / "memory").mkdir()
    script = tmp_path / "caller.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "memory")]
    caller = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert caller.stdout.readline() == "one ended\n"
    (folder,) = (tmp_path / "memory").iterdir()
    assert any(folder.iterdir())
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    wait_until_gone(folder)


def wait_until_gone(folder: Path):
    """Looks until the processes have noticed; the limit of the test run ends it if they do not."""
    end = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < end
