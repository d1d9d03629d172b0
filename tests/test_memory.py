"""Memory that a process frees and keeps."""

import platform
import subprocess
import sys

import pytest

CODE = """
import resource, torch
from bigcn.memory import keep_freed_memory
{keep}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
# A small block that lands behind a large one keeps the two from being one, for a round or two at the start.
for _ in range(20):
    torch.ones(2**24)
before = faults()
for _ in range(20):
    torch.ones(2**24)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the GNU C library")
def test_freed_memory_is_used_again():
    usual, kept = (
        int(subprocess.run([sys.executable, "-c", CODE.format(keep=keep)], capture_output=True, check=True).stdout)
        for keep in ("", "assert keep_freed_memory()")
    )
    assert kept < usual / 10, "pages that are handed out anew"


def test_another_c_library_is_left_alone(monkeypatch):
    from bigcn import memory

    monkeypatch.setattr(memory.platform, "libc_ver", lambda: ("", ""))
    assert not memory.keep_freed_memory()
