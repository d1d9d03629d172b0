"""The folder with table, plot and page that a command leaves behind, and what these must not take the place of."""

from pathlib import Path
from typing import Any

import typer

from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.records import SUMMARY_COLUMNS
from bigcn.files import begins_with, refuse_special
from bigcn.report import save_curves, write_csv, write_page

PAGE, TABLE, PICTURES = "index.html", "table.csv", ("curves.png", "curves.svg")
#: What the files begin with, pages somewhere in their head.
_PAGE_MARK, _TABLE_MARK = b'<meta name="generator" content="bigcn ', f"{','.join(SUMMARY_COLUMNS)}\n"
_HEAD = 4096


def folder_named(text: str | Path) -> Path:
    """Reads the name of a folder; nothing at all is no name, and would be the folder where the command runs."""
    if not str(text).strip():
        raise typer.BadParameter("it names no folder")
    return Path(text)


#: What options have that name a folder to write.
FOLDER: dict[str, Any] = {"parser": folder_named, "metavar": "<path>"}


def check_outputs(folder: Path, *used: Path | None) -> None:
    """Refuses a folder where table, plot and page would take the place of anything but older ones.

    Args:
        folder (Path): The folder.
        used (Path, optional): What the command reads or writes beside them.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, and table, plot and page need a folder: '--output' names another")
    for name in (PAGE, TABLE, *PICTURES):
        place = folder / name
        if any(path is not None and is_same(place, path) for path in used):
            raise ValueError(
                f"{place} is read or kept by this command, and would be replaced: '--output' names another folder"
            )
        refuse_special(place)
        if place.exists() and not _is_ours(folder, name):
            why = f"has no {TABLE} of bigcn's beside it" if name in PICTURES else "is none of bigcn's own"
            raise ValueError(f"{place} {why} and was left as it is: '--output' names another folder")


def is_same(first: Path, second: Path) -> bool:
    """Tells whether two names lead to the same place, where there may be nothing yet.

    Args:
        first, second (Path): The names.
    """
    there = first.exists() and second.exists()
    return first.resolve() == second.resolve() or (there and first.samefile(second))


def _is_ours(folder: Path, name: str) -> bool:
    """Tells whether a file was written by :func:`write_outputs`, a picture by what stands beside it."""
    if name in PICTURES:
        return any((folder / other).is_file() and _is_ours(folder, other) for other in (PAGE, TABLE))
    if name == TABLE:
        return begins_with(folder / name, _TABLE_MARK)
    with (folder / name).open("rb") as file:
        return _PAGE_MARK in file.read(_HEAD)


def write_outputs(result: ComparisonResult, folder: Path, command: str) -> Path:
    """Writes table, plot and page of a comparison into a folder, see :func:`check_outputs`, and returns the page.

    Args:
        result (ComparisonResult): What the comparison found.
        folder (Path): The folder.
        command (str): The command that repeats it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / TABLE, result)
    save_curves(folder / "curves", result)
    return write_page(folder / PAGE, result, command)
