"""How a process gives memory back to the operating system."""

import ctypes
import platform

#: The options of ``mallopt`` in the GNU C library.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Lets this process keep the memory that it frees, and use it again, instead of giving it back; returns whether
    that is possible here (on Linux with the GNU C library).

    PyTorch on a CPU asks for the memory of each result anew. From 32 MB on the operating system hands it out page by
    page, all zeros, which takes several times longer than filling it, in every step of training. The price is that
    memory, once used, stays with the process. The commands that train do this; a library should leave it to the
    program that it is part of.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all((mallopt(_MMAP_MAX, 0), mallopt(_TRIM_THRESHOLD, -1), mallopt(_TOP_PAD, 64 * 2**20)))
