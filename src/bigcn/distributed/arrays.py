"""Arrays on disk: written piece by piece, read by memory-mapping."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from bigcn.files import PathLike

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = 128


class ArrayWriter:
    """Writes a :obj:`.npy` file whose length is known only at the end.

    Args:
        path (str or path): The file.
        dtype (numpy.dtype): The type of its entries.
        width (int, optional): The number of columns, for an array of two dimensions. (default: :obj:`None`)
    """

    def __init__(self, path: PathLike, dtype: Any, width: int | None = None) -> None:
        self.path, self.dtype, self.width = Path(path), np.dtype(dtype), width
        self.rows = 0
        self._file = self.path.open("wb")
        self._file.write(b"\0" * _HEADER)

    def append(self, values: np.ndarray) -> None:
        """Writes more rows at the end."""
        assert values.ndim == (1 if self.width is None else 2)
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)
        self.rows += len(values)

    def close(self) -> None:
        """Writes the header, now that the length is known."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        text = repr({"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape})
        length = _HEADER - len(_MAGIC) - 2
        header = _MAGIC + length.to_bytes(2, "little") + text.encode("latin1").ljust(length - 1) + b"\n"
        assert len(header) == _HEADER
        self._file.seek(0)
        self._file.write(header)
        self._file.close()


def write_array(path: PathLike, values: np.ndarray) -> None:
    """Writes a whole array."""
    writer = ArrayWriter(path, values.dtype, None if values.ndim == 1 else values.shape[1])
    writer.append(values)
    writer.close()


def map_array(path: PathLike) -> np.ndarray:
    """Memory-maps an array; an empty one, which cannot be mapped, is read."""
    array: np.ndarray = np.load(
        path, mmap_mode=None if Path(path).stat().st_size == _HEADER else "r", allow_pickle=False
    )
    return array


def read_rows(path: PathLike, dtype: Any, start: int, stop: int) -> np.ndarray:
    """Reads some entries of an array of one dimension; unlike those of a mapped one, they do not stay in memory."""
    dtype = np.dtype(dtype)
    return np.fromfile(path, dtype, stop - start, offset=_HEADER + start * dtype.itemsize)


def sha256(path: PathLike) -> str:
    """Returns the SHA-256 of a file, read a little at a time."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
