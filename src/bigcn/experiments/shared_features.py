"""Noisy features that several processes share, so that each of them is drawn once and not once for every process."""

import hashlib
import os
import shutil
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

#: Where the operating system keeps files in memory.
IN_MEMORY = Path("/dev/shm")
#: The share of that room, and of the machine's memory, which is left to others and to the processes themselves, and the
#: most of the memory that such files may take: processes grow after the first of them are there.
LEFT_FREE, SHARE = 0.5, 0.25
_PREFIX, _LOCK = "bigcn-features-", "in-use"


@contextmanager
def shared_folder() -> Iterator[Path | None]:
    """Makes a folder in memory for a while; nothing where there is no such place. Folders of processes that were killed
    are removed before.
    """
    if not (IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK)):
        yield None
        return
    import fcntl  # where there are such places

    for left in IN_MEMORY.glob(f"{_PREFIX}*"):
        with suppress(OSError), (left / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    try:
        made = TemporaryDirectory(prefix=_PREFIX, dir=IN_MEMORY, ignore_cleanup_errors=True)
    except OSError:  # it is full
        yield None
        return
    # Locked before it has its name, so that nobody takes the folder for one that was left behind.
    with made as name, (Path(name) / f"{_LOCK}.new").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(lock.name).rename(Path(name) / _LOCK)
        yield Path(name)


class SharedFeatures:
    """Features as files in a folder, made by whoever asks first.

    Args:
        folder (Path, optional): See :func:`shared_folder`. (default: nothing is shared)
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def get(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Returns features of which all that is different has another key; made unless somebody did before.

        Args:
            key (Hashable): Their name.
            make (Callable): Makes them, on the CPU.
        """
        if self.folder is None:
            return make()
        path = self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()}.safetensors"
        try:
            # What is read is a view of the file; who writes into it has a copy of his own.
            return load_file(path)["x"]
        except (OSError, SafetensorError):
            features = make()
        self._write(path, features)
        return features

    def _write(self, path: Path, features: Tensor) -> None:
        unfinished = path.with_suffix(".new")
        try:
            with _alone(path.parent):  # so that not all find room at once
                if not _has_room(path.parent, features.numel() * features.element_size()):
                    return
                save_file({"x": features.contiguous()}, unfinished)
                unfinished.replace(path)  # so that nobody reads half of it
        except (OSError, SafetensorError):  # the folder is gone or full, and the features are there without it
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no thread of any process is writing to a folder."""
    import fcntl

    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _has_room(folder: Path, size: int) -> bool:
    """Tells whether so many bytes more may be kept in memory; not where nobody says how much there is."""
    try:
        room, (total, available) = shutil.disk_usage(folder), _memory()
    except (KeyError, IndexError, ValueError):
        return False
    return (
        room.free - size >= LEFT_FREE * room.total
        and room.total - room.free + size <= SHARE * total
        and available - size >= LEFT_FREE * total
    )


def _memory() -> tuple[float, float]:
    """Returns how many bytes of memory the machine has, and how many of them are available."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    numbers = {name: 1024.0 * float(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return numbers["MemTotal"], numbers["MemAvailable"]
