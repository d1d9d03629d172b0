"""Writing files that appear whole or not at all."""

import os
import uuid
from pathlib import Path

PathLike = str | os.PathLike[str]


def write_bytes(target: PathLike, content: bytes) -> Path:
    """Writes a file, with its folder, so that nobody ever sees a part of it; what stood there before stays until then.

    Args:
        target (str or path): The file; a link is followed.
        content (bytes): What to write.
    """
    path = Path(os.path.realpath(target))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return Path(target)


def write_text(target: PathLike, text: str) -> Path:
    """Writes a text file as :func:`write_bytes` does; what UTF-8 cannot hold is escaped, see the store's records.

    Args:
        target (str or path): The file.
        text (str): What to write.
    """
    return write_bytes(target, text.encode("utf-8", "backslashreplace"))
