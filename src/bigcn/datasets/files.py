"""Where raw files live, how they are fetched, and how they are written: whole or not at all."""

import hashlib
import os
import secrets
import sys
import time
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

Folder = str | os.PathLike[str]

TIMEOUT_SECONDS = 15
# Several times the largest file of the registry; an endless answer must not fill the memory.
LARGEST_DOWNLOAD = 256 * 2**20
_STALE_SECONDS = 3600


class DatasetUnavailable(ValueError):
    """A dataset is not on this machine and cannot be fetched; the message says which files to put where."""


class DatasetCorrupt(DatasetUnavailable):
    """A file is not the one that was published; the message names it. Nothing in it was unpickled."""


def cache_folder(cache: Folder | None = None) -> Path:
    """The folder that keeps raw files: ``cache``, else ``BIGCN_CACHE``, else the platform's cache folder."""
    chosen = cache or os.environ.get("BIGCN_CACHE")
    return Path(chosen).expanduser() if chosen else _platform_cache() / "bigcn"


def _platform_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG rules say that a relative path is to be ignored.
    return xdg if xdg.is_absolute() else Path.home() / ".cache"


def mirror_folder(mirror: Folder | None = None) -> Path | None:
    """The folder that is only read: ``mirror``, else ``BIGCN_DATA``, else none."""
    chosen = mirror or os.environ.get("BIGCN_DATA")
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        origin = "mirror" if mirror else "BIGCN_DATA"
        raise DatasetUnavailable(f"{origin} must name a folder, and {folder} is none")
    return folder


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(url: str) -> bytes:
    """Downloads one file into memory, with a time limit on every wait.

    PyG's own download waits without limit, leaves a partial file behind under its final name, and does not
    check certificates.
    """
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read(LARGEST_DOWNLOAD + 1)
    except (OSError, HTTPException) as error:
        raise DatasetUnavailable(f"{url}: {getattr(error, 'reason', None) or error}") from error
    if len(content) > LARGEST_DOWNLOAD:
        raise DatasetUnavailable(f"{url}: larger than {LARGEST_DOWNLOAD} bytes")
    return content


def store(path: Path, content: bytes) -> None:
    """Writes a file so that its name never shows anything but the whole content.

    Two processes that store the same file each write a part of their own and the last rename wins, with the
    same bytes; that needs no lock, so it holds on network file systems too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        try:
            os.replace(part, path)
        except PermissionError:
            # Windows will not replace a file that another process is reading; by then that process has stored it.
            if not path.is_file() or path.read_bytes() != content:
                raise
    finally:
        part.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Removes what a killed process could not; a part that is still being written is seconds old."""
    for part in folder.glob(".*.part"):
        try:
            if time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink()
        except FileNotFoundError:
            continue
