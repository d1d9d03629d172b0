"""What commands share: lists, devices, progress."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Protocol

import torch
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from bigcn.files import refuse_special

#: Everything for people goes to standard error when standard output is for machines.
errors = Console(stderr=True, highlight=False)
output = Console(highlight=False)
#: How many seconds pass between two lines that say how much time is left.
_SAY_EVERY = 30.0
#: More than any table is wide.
_WIDEST = 10_000


def names(text: str, option: str) -> tuple[str, ...]:
    """Splits a comma-separated list."""
    listed = tuple(part.strip() for part in text.split(",") if part.strip())
    if not listed:
        raise ValueError(f"'{option}' must name one thing at least, separated by commas")
    return listed


def numbers(text: str, option: str) -> tuple[float, ...]:
    """Splits a comma-separated list of numbers."""
    try:
        return tuple(float(part) for part in names(text, option))
    except ValueError:
        raise ValueError(f"'{option}' must be numbers separated by commas (got {text!r})") from None


def resolve_device(device: str) -> str:
    """Returns the device that an option names."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise ValueError(f"'--device' must be auto, cpu or cuda (got {device!r})")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("'--device cuda' needs a GPU that PyTorch can see, and there is none")
    return device


def print_json(document: Any) -> None:
    """Prints one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_table(table: Table) -> None:
    """Prints a table on standard output; where that is no window, nothing in it is cut or wrapped.

    Args:
        table (Table): The table.
    """
    if output.is_terminal:
        output.print(table)
        return
    width = Measurement.get(output, output.options.update(width=_WIDEST), table).maximum
    Console(highlight=False, width=max(width, output.width)).print(table)


def check_file(path: Path, option: str) -> None:
    """Refuses a file that could not be written, rather before anything is run than after it.

    Args:
        path (Path): The file.
        option (str): What names it.
    """
    try:
        refuse_special(path)
    except ValueError as error:
        raise ValueError(f"'{option}': {error}") from None
    # A link is followed: the file is made beside what it leads to.
    check_writable((Path(os.path.realpath(path)) if path.is_symlink() else path).parent, option)


def check_writable(folder: Path, option: str) -> None:
    """Refuses a folder that cannot be written to, or made; it is not made yet.

    Args:
        folder (Path): The folder.
        option (str): What names it.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"'{option}' names something in {there}, which is a file")
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ValueError(f"'{option}' names something in {there}: {error.strerror or error}") from None


def duration(seconds: float) -> str:
    """Writes a time for people.

    Example:
        >>> duration(90), duration(900)
        ('90 s', '15 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Reporter(Protocol):
    """Takes one line about each finished piece of work."""

    def __call__(self, line: str) -> None: ...


@contextmanager
def progress(total: int, what: str) -> Iterator[Reporter]:
    """Shows a bar with the time left on a terminal, and plain lines elsewhere, one of which says it now and then.

    Args:
        total (int): The pieces of work.
        what (str): What they are.
    """
    if not errors.is_terminal:
        done, start, said = 0, time.monotonic(), 0.0

        def tell(line: str) -> None:
            nonlocal done, said
            done += 1
            passed, left = time.monotonic() - start, ""
            if passed - said > _SAY_EVERY and done < total:
                said, left = passed, f"; about {duration(passed / done * (total - done))} left"
            print(f"[{done}/{total}] {line}{left}", file=sys.stderr, flush=True)

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=errors, transient=True) as bar:
        job = bar.add_task(what, total=total)

        def advance(line: str) -> None:
            # Brackets in names are not markup.
            bar.update(job, advance=1, description=line.replace("[", r"\["))

        yield advance
