"""Several processes at one cache, and processes that die."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bigcn.datasets import fingerprint, load_dataset, status

CONFTEST = Path(__file__).with_name("conftest.py")


def python(script, *args):
    """Starts a process that knows the dataset ``tiny``."""
    known = (
        "import os, runpy, signal, sys; from pathlib import Path\n"
        f"tiny_spec = runpy.run_path({str(CONFTEST)!r})['tiny_spec']\n"
        "from bigcn.datasets import DATASETS, load_dataset, fingerprint\n"
        "mirror, cache = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "DATASETS['tiny'] = tiny_spec(mirror)\n"
    )
    # A file that could not be kept is only a warning.
    command = [sys.executable, "-W", "error::UserWarning:__main__", "-c", known + script, *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once(tiny, tmp_path, content):
    script = (
        "for turn in range(20):\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    print(fingerprint(load_dataset('tiny', cache / str(turn), mirror)), flush=True)\n"
    )
    with python(script, tiny, tmp_path / "shared") as one, python(script, tiny, tmp_path / "shared") as two:
        for turn in range(20):
            assert [process.stdout.readline() for process in (one, two)] == ["ready\n"] * 2
            for process in (one, two):
                process.stdin.write("go\n")
                process.stdin.flush()
            assert [process.stdout.readline().strip() for process in (one, two)] == [fingerprint("tiny")] * 2
            assert content(tmp_path / "shared" / str(turn)) == content(tiny)
    assert (one.returncode, two.returncode) == (0, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_process_killed_half_way(tiny, tmp_path, content):
    cache = tmp_path / "cache"
    script = "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\nload_dataset('tiny', cache, mirror)\n"
    process = python(script, tiny, cache)
    process.communicate()
    assert process.returncode == -9
    left = list(content(cache))
    assert len(left) == 1
    assert left[0].suffix == ".part", "no file bears its final name before it is whole"
    assert status("tiny").where == "absent"
    os.utime(cache / left[0], (0, 0))
    load_dataset("tiny", mirror=tiny)
    assert content(cache) == content(tiny)
