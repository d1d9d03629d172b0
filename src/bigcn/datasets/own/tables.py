"""Tables of nodes and edges: opened by what they are, with every cell traceable to its place in the file.

Arrow holds the columns: text of a CSV file stays text until its meaning is decided, so that the id "01" is not "1".
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bigcn.datasets.own.graph import InputError
from bigcn.datasets.own.text import read_header, read_text_columns, row_in_file

if TYPE_CHECKING:
    import pandas as pd

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
#: Wider tables are refused before they are read; a table of ten rows that is a million columns wide is a mistake.
MAX_COLUMNS = 100_000


class Table:
    """A table whose columns are read when they are asked for.

    Args:
        title (str): What to call it in messages.
        names (Sequence[str]): The columns, without those that have no name.
        load (Callable): Returns the columns of these names, as Arrow arrays.
        row (Callable, optional): Says where row :obj:`i` stands in the file. (default: counted from 1)
        decimal (str, optional): The decimal point of numbers that are text. (default: :obj:`"."`)
        unnamed (int, optional): How many columns have no name. (default: :obj:`0`)
    """

    def __init__(
        self,
        title: str,
        names: Sequence[str],
        load: Callable[[list[str]], dict[str, pa.ChunkedArray]],
        row: Callable[[int], str] | None = None,
        decimal: str = ".",
        unnamed: int = 0,
    ) -> None:
        self.title = title
        self.names = list(names)
        self.decimal = decimal
        self.unnamed = unnamed
        self._load = load
        self._row = row or (lambda i: f"row {i + 1:,}")
        self._columns: dict[str, pa.ChunkedArray] = {}

    def load(self, names: Sequence[str]) -> None:
        """Reads columns; those that were read before are not read again."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._columns]
        if wanted:
            self._columns.update(self._load(wanted))

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns a column."""
        self.load([name])
        return self._columns[name]

    def take(self, name: str) -> pa.ChunkedArray:
        """Returns a column and forgets it, so that its memory can go."""
        column = self.column(name)
        del self._columns[name]
        return column

    def place(self, i: int, column: str | None = None) -> str:
        """Says where a cell stands: file, row and column."""
        where = f"{self.title}, {self._row(int(i))}"
        return where if column is None else f"{where}, column {column!r}"

    def require(self, name: str, option: str) -> str:
        """Returns the name if there is such a column, and refuses the table with the columns that there are if not."""
        if name not in self.names:
            hint = " (is the first row a header?)" if any(_is_number(column) for column in self.names) else ""
            if len(self.names) == 1 and " " in self.names[0]:
                hint = " (separated by blanks? use commas)"
            raise InputError(
                f"{self.title} has no column {name!r} ({option} names another): its columns are "
                f"{listed(self.names)}{hint}"
            )
        return name


def listed(names: Sequence[str], most: int = 12) -> str:
    """Returns names as a list that a message can hold."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")


def open_table(source: Any, title: str, expected: Sequence[str]) -> Table:
    """Opens a table by what it is: a data frame, or a file known by its ending.

    Args:
        source (str, path or pandas.DataFrame): The table.
        title (str): What to call a data frame, which has no file name.
        expected (Sequence[str]): Columns that the table should have, to tell its delimiter by.
    """
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        return frame_table(source, title, expected)
    path = checked_path(source)
    ending = file_ending(path)
    if ending in TEXT_ENDINGS:
        return text_table(path, ending, expected)
    if ending in PARQUET_ENDINGS:
        return parquet_table(path)
    raise InputError(f"{path} is not a table that can be read: tables are .csv, .tsv, .txt (also .gz) or .parquet")


def checked_path(source: Any) -> Path:
    """Returns a path to a file that can be opened, or says why there is none."""
    try:
        path = Path(source)
    except TypeError:
        raise InputError(f"a table must be a file or a pandas DataFrame (got {type(source).__name__})") from None
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, and a file was expected")
        with path.open("rb") as file:
            empty = not file.read(1)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if empty:
        raise InputError(f"{path} is empty")
    return path


def file_ending(path: Path) -> str:
    """Returns the ending that tells the format, without that of the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def text_table(path: Path, ending: str, expected: Sequence[str]) -> Table:
    """Opens a CSV or TSV file."""
    header, delimiter = read_header(path, "\t" if ending in (".tsv", ".tab") else ",", expected)
    stripped = [name.strip() for name in header]
    _check_names(str(path), [name for name in stripped if name])
    raw = {name.strip(): name for name in header if name.strip()}

    def load(names: list[str]) -> dict[str, pa.ChunkedArray]:
        columns = read_text_columns(path, delimiter, len(header), [raw[name] for name in names])
        return dict(zip(names, columns, strict=True))

    return Table(
        str(path),
        list(raw),
        load,
        lambda i: f"row {row_in_file(path, delimiter, i):,}",
        # Where the semicolon separates, it is because the comma is the decimal point.
        decimal="," if delimiter == ";" else ".",
        unnamed=len(stripped) - len(raw),
    )


def parquet_table(path: Path) -> Table:
    """Opens a Parquet file."""
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, memory_map=True)
        names = list(file.schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is not a Parquet file that can be read: {first_line(error)}") from error
    _check_names(str(path), names)
    # pandas keeps the index as a column of this name; it is no feature.
    unnamed = [name for name in names if not name.strip() or name.startswith("__index_level_")]

    def load(wanted: list[str]) -> dict[str, pa.ChunkedArray]:
        try:
            table = file.read(columns=wanted)
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path} is damaged: {first_line(error)}") from error
        return {name: table.column(name) for name in wanted}

    return Table(str(path), [name for name in names if name not in unnamed], load, unnamed=len(unnamed))


def frame_table(frame: "pd.DataFrame", title: str, expected: Sequence[str] = ()) -> Table:
    """Opens a data frame; a named index counts as a column where one of that name is expected."""
    if frame.index.name in expected and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    _check_names(title, names)
    position = {name: i for i, name in enumerate(names)}

    def load(wanted: list[str]) -> dict[str, pa.ChunkedArray]:
        return {name: as_arrow(frame.iloc[:, position[name]]) for name in wanted}

    return Table(title, names, load)


def as_arrow(values: Any) -> pa.ChunkedArray:
    """Returns values as an Arrow array; values of mixed types become text."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        import pandas as pd

        array = pa.array([None if _is_missing(pd, value) else str(value) for value in values], pa.string())
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _is_missing(pd: Any, value: Any) -> bool:
    missing = pd.isna(value)
    return missing if isinstance(missing, bool) else False


def _check_names(title: str, names: Sequence[str]) -> None:
    if len(names) > MAX_COLUMNS:
        raise InputError(f"{title} has {len(names):,} columns, and at most {MAX_COLUMNS:,} can be read")
    if not names:
        raise InputError(f"{title} has no columns")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            hint = " (is the first row a header?)" if _is_number(name) else ""
            raise InputError(f"{title} has two columns called {name!r}: rename one of them{hint}")
        seen.add(name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def first_line(error: BaseException) -> str:
    """Returns what an error of a library says, in a line that can be printed."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return "".join(letter for letter in line if letter.isprintable())[:160]
