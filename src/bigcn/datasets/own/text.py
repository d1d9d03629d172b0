"""Text tables: the header, the delimiter, the columns, and the row of a file that a mistake stands in."""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from bigcn.datasets.own.graph import InputError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
#: A row must fit into a block.
BLOCK_BYTES = 1 << 25
_MAGIC = {
    b"PK\x03\x04": "a zip archive (an Excel workbook or .npz?)",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "compressed (end its name in .gz)",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}

csv.field_size_limit(BLOCK_BYTES)


def read_header(path: Path, usual: str, expected: Sequence[str]) -> tuple[list[str], str]:
    """Returns the names of the columns and what separates them.

    Args:
        path (Path): The file.
        usual (str): The delimiter that the ending of the file speaks of.
        expected (Sequence[str]): Columns that the file should have; the delimiter that finds them is the one.
    """
    with reading(path) as file:
        head = file.read(1 << 16)
        kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
        if kind or b"\0" in head:
            raise InputError(f"{path} is not a table of text: it is {kind or 'binary'}")
        file.seek(0)
        lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            first = next((line for line in _lines(lines) if line.strip()), None)
        except UnicodeDecodeError:
            raise _not_utf8(path) from None
        finally:
            lines.detach()
    if first is None:
        raise InputError(f"{path} is empty")
    found: dict[str, list[str]] = {}
    for delimiter in (usual, *(d for d in DELIMITERS if d != usual)):
        try:
            names = next(csv.reader([first], delimiter=delimiter))
        except csv.Error as error:
            raise InputError(f"{path}, row 1: is no header ({error})") from error
        if all(name in (part.strip() for part in names) for name in expected):
            return names, delimiter
        found[delimiter] = names
    # None has what is expected: the one that finds most columns makes the best message.
    best = max(found, key=lambda d: len(found[d]))
    return found[best], best


def _lines(text: IO[str]) -> Iterator[str]:
    """Yields rows; a quoted name may run over several lines."""
    pending = ""
    for line in text:
        pending += line
        if pending.count('"') % 2 == 0 or len(pending) > BLOCK_BYTES:
            yield pending
            pending = ""
    if pending:
        yield pending


def read_text_columns(path: Path, delimiter: str, width: int, names: list[str]) -> list[pa.ChunkedArray]:
    """Reads columns of a text table, as text without the blanks around it.

    Args:
        path (Path): The file.
        delimiter (str): What separates the columns.
        width (int): How many columns there are.
        names (list[str]): The columns to read, as the header spells them.
    """
    try:
        with streaming(path) as file:
            table = pa.csv.read_csv(
                file,
                read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types={name: pa.string() for name in names}, include_columns=names, strings_can_be_null=False
                ),
            )
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if "Empty CSV" in str(error):  # a header that no line break ends
            return [pa.chunked_array([], pa.string()) for _ in names]
        raise _explained(path, delimiter, width, error) from error
    columns = [table.column(name) for name in names]
    if table.num_rows == 0:
        return columns
    # A quotation mark that is never closed swallows the rest of the file into its cell.
    if any("\n" in (column[-1].as_py() or "") for column in columns):
        problem = _ragged(path, delimiter, width)
        if problem:
            raise InputError(problem)
    return [pa.compute.utf8_trim_whitespace(column) for column in columns]


def row_in_file(path: Path, delimiter: str, i: int) -> int:
    """Returns the row of the file, as a person counts, that data row :obj:`i` stands in; the header is row 1."""
    count = -1
    try:
        for number, cells in _rows(path, delimiter, strict=False):
            count += bool(cells)
            if count == i + 1:
                return number
    except csv.Error:
        pass
    return i + 2


def _rows(path: Path, delimiter: str, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yields rows with their numbers; a row without cells is a blank line, which is a row to people."""
    with reading(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
        yield from enumerate(csv.reader(text, delimiter=delimiter, strict=strict), start=1)


def _explained(path: Path, delimiter: str, width: int, error: Exception) -> InputError:
    if "UTF8" in str(error) or isinstance(error, UnicodeDecodeError):
        return _not_utf8(path)
    reason = _ragged(path, delimiter, width) or f"{path} cannot be read as a table: {str(error).splitlines()[0]}"
    return InputError(reason)


def _ragged(path: Path, delimiter: str, width: int) -> str | None:
    """Says which row has too few or too many cells, or a quotation mark that is never closed."""
    number = 0
    try:
        for number, cells in _rows(path, delimiter, strict=True):
            if cells and len(cells) != width:
                return f"{path}, row {number:,}: has {len(cells):,} cells, and the header has {width:,}"
    except csv.Error as error:
        what = "is opened and never closed" if "end of data" in str(error) else "stands inside a cell"
        return f"{path}, row {number + 1:,}: a quotation mark {what}"
    return None


def _not_utf8(path: Path) -> InputError:
    """Names the first byte that is not UTF-8, and its row."""
    offset, row = 0, 1
    with reading(path) as file:
        for line in file:
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return InputError(
                    f"{path}, row {row:,}: byte {offset + error.start:,} (0x{byte:02x}) is not UTF-8 text; "
                    f"save the file as UTF-8"
                )
            offset += len(line)
            row += 1
    return InputError(f"{path} is not UTF-8 text")


@contextmanager
def streaming(path: Path) -> Iterator[pa.NativeFile]:
    """Opens a file as :func:`reading` does, for Arrow.

    Its threads let go of a file after they have told its content. Were it one of Python's, they would need the
    interpreter for that, and a thread that asks for it while the program ends aborts the program.

    Args:
        path (Path): The file.
    """
    try:
        with pa.OSFile(os.fsencode(path)) as file:
            if path.suffix.lower() != ".gz":
                yield file
                return
            with pa.CompressedInputStream(file, "gzip") as unpacked:
                yield unpacked
    except OSError as error:
        with reading(path) as again:  # which knows better what is wrong
            while again.read(1 << 20):
                pass
        packed = path.suffix.lower() == ".gz"  # Python's reader was content, with zeros after the end for one
        reason = "unpack it first" if packed else error.strerror or error
        raise InputError(f"{path} cannot be read{' as it is' if packed else ''}: {reason}") from error


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """Opens a file for reading, decompressed if its name ends in .gz."""
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not a gzip file that can be read: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
