"""Noisy features that several processes share, so that each of them is drawn once and not once for every process."""

import hashlib
import os
import shutil
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

#: Where the operating system keeps files in memory.
IN_MEMORY = Path("/dev/shm")
#: The share of that room which is left to others.
LEFT_FREE = 0.5


@contextmanager
def shared_folder() -> Iterator[Path | None]:
    """Makes a folder in memory for a while; nothing where there is no such place."""
    if not (IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK)):
        yield None
        return
    with TemporaryDirectory(prefix="bigcn-features-", dir=IN_MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


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
        path = self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()}.npy"
        try:
            # What is read is a view of the file; who writes into it has a copy of his own.
            return torch.from_numpy(np.load(path, mmap_mode="c"))
        except OSError:
            features = make()
        self._write(path, features)
        return features

    def _write(self, path: Path, features: Tensor) -> None:
        try:
            room = shutil.disk_usage(path.parent)
            if room.free - features.numel() * features.element_size() < LEFT_FREE * room.total:
                return
            unfinished = path.with_suffix(f".{os.getpid()}")
            with unfinished.open("wb") as file:
                np.save(file, features.numpy())
            unfinished.replace(path)  # so that nobody reads half of it
        except OSError:  # the folder is gone or full, and the features are there without it
            return
