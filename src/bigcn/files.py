"""Writing files that appear whole or not at all."""

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PathLike = str | os.PathLike[str]


def write_bytes(target: PathLike, content: bytes) -> Path:
    """Writes a file, with its folder, so that nobody ever sees a part of it; what stood there before stays until then.

    Args:
        target (str or path): The file; a link is followed.
        content (bytes): What to write.
    """
    with draft_of(target) as draft:
        draft.write_bytes(content)
    return Path(target)


@contextmanager
def draft_of(target: PathLike) -> Iterator[Path]:
    """Gives a file beside the target that takes its place once it is written; errors speak of the target.

    Args:
        target (str or path): The file; a link is followed.
    """
    refuse_special(target)
    path = Path(os.path.realpath(target))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        if error.filename is not None and Path(error.filename) == draft:
            error.filename, error.filename2 = str(target), None
        raise
    finally:
        with suppress(OSError):  # what went wrong before is what is told
            draft.unlink(missing_ok=True)


def begins_with(path: Path, text: str) -> bool:
    """Tells whether a text file begins so, in whichever way an editor has saved it since.

    Args:
        path (Path): The file.
        text (str): What it should begin with.
    """
    with path.open("rb") as file:
        head = file.read(2 * len(text.encode()) + 3)
    return head.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").startswith(text.encode())


def refuse_special(target: PathLike) -> None:
    """Refuses a folder, a pipe or a device where a file is to be written, which would take its place.

    Args:
        target (str or path): The file; a link is followed.
    """
    # Looked up by the name that was given: what /dev/stdout leads to, for one, may have no name of its own.
    if os.path.isdir(target):
        raise ValueError(f"{target} is a folder, and a file was expected")
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(f"{target} is a pipe or a device, and an ordinary file was expected")


def write_text(target: PathLike, text: str) -> Path:
    """Writes a text file as :func:`write_bytes` does; what UTF-8 cannot hold is escaped, see the store's records.

    Args:
        target (str or path): The file.
        text (str): What to write.
    """
    return write_bytes(target, text.encode("utf-8", "backslashreplace"))


def replace_folder(target: PathLike, files: Mapping[str, bytes]) -> Path:
    """Writes a folder of files and puts it in the place of what stood there, whole or not at all.

    A process that is killed between the two renames leaves the former folder beside, under a hidden name.

    Args:
        target (str or path): The folder, whose parent exists; all that it held goes.
        files (dict): What it is to hold, by name.
    """
    path = Path(os.path.realpath(target))
    draft, former = (path.with_name(f".{uuid.uuid4().hex}.{kind}") for kind in ("tmp", "old"))
    try:
        draft.mkdir()
        for name, content in files.items():
            write_bytes(draft / name, content)
        if path.exists():
            os.rename(path, former)
        try:
            os.rename(draft, path)
        except OSError:
            if former.exists():
                os.rename(former, path)
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(former, ignore_errors=True)
    return Path(target)
