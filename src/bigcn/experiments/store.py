"""The run store: one SQLite file that many processes write to, that survives being killed, and that merges."""

import csv
import io
import json
import os
import shutil
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from bigcn.experiments import records
from bigcn.experiments.records import RunResult, RunSpec, summarise
from bigcn.files import begins_with, write_text

__all__ = ["RunResult", "RunSpec", "RunStore", "StoreError", "summarise"]

PathLike = str | os.PathLike[str]
STORE_FORMAT = 1
APPLICATION_ID = 0x42694743  # "BiGC": stands in the header of the file and tells it from other programs' databases.
# An append takes milliseconds: whoever waits this many seconds waits for something that is stuck.
PATIENCE = 60.0

_COLUMNS = ("run_id", "key", "recorded", *records.SPEC_FIELDS, *records.RESULT_FIELDS)
_TYPES = {"recorded": "INTEGER", "value": "REAL", "seed": "INTEGER", "seconds": "REAL", "epochs": "INTEGER"}
_NAMES = ", ".join(f'"{name}"' for name in _COLUMNS)
_INSERT = f"INSERT INTO runs ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT (run_id) DO NOTHING"
# By content alone, so that stores merged in different orders read the same.
_ORDER = 'task, dataset, protocol, "case", value, model, settings, seed, "key", recorded, run_id'
_TABLE = ", ".join(f'"{name}" {_TYPES.get(name, "TEXT")}' for name in _COLUMNS)
_SCHEMA = (
    f"CREATE TABLE runs ({_TABLE}, PRIMARY KEY (run_id))",
    'CREATE INDEX runs_by_key ON runs ("key", status, recorded, run_id)',
    """CREATE VIEW standing AS SELECT * FROM runs AS mine WHERE status = 'ok' AND NOT EXISTS (
        SELECT 1 FROM runs AS newer WHERE newer."key" = mine."key" AND newer.status = 'ok'
        AND (newer.recorded, newer.run_id) > (mine.recorded, mine.run_id))""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {STORE_FORMAT}",
)
_CSV = (
    *("model", "dataset", "task", "case", "value", "protocol", "metric", "score", "seed", "device", "settings"),
    *("dataset_fingerprint", "status", "error", "seconds", "epochs", "started", "versions", "host", "key", "run_id"),
)
# What exports begin with; of the columns of a table those that tell it from other tables.
_CSV_HEAD, _JSON_HEAD = ",".join(_CSV[:8]), f'{{\n "format": {STORE_FORMAT},\n "runs": ['


class StoreError(ValueError):
    """A run store that cannot be opened, read or written, in one sentence."""


_REASONS = {
    sqlite3.SQLITE_NOTADB: "is not a run store: it is not a SQLite file; it was left as it is.",
    sqlite3.SQLITE_CORRUPT: "is damaged and cannot be read.",
    sqlite3.SQLITE_READONLY: "cannot be written: the file or its folder is read-only.",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it does not exist, or its folder does not allow it.",
    sqlite3.SQLITE_BUSY: f"has been locked by another process for more than {PATIENCE:g} seconds.",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full.",
}


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # Without details; errors of Python's own layer have no code.


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path} {_REASONS.get(_code(error), f'cannot be used as a run store: {error}.')}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror or error}.") from None


def _ordinary(target: PathLike) -> Path:
    path = Path(os.path.realpath(target))
    # Looked up by the name that was given: what /dev/stdout leads to, for one, may have no name of its own.
    if os.path.exists(target) and not path.is_file():
        raise StoreError(f"{path} is a folder or a device, not an ordinary file.")
    return path


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # No isolation level: Python begins no transactions of its own.
    db = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None)
    db.row_factory = sqlite3.Row
    return db


@contextmanager
def _transaction(db: sqlite3.Connection, kind: str) -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite has already rolled back when, say, the disk is full.
            db.execute("ROLLBACK")
        raise


def _is_blank(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds nothing yet. Refuses what holds something else than a store this version can read."""
    queries = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (db.execute(query).fetchall()[0][0] for query in queries)
    if application == version == tables == 0 and path.stat().st_size != 1:  # One byte counts as empty for SQLite.
        return True
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is not a run store: it holds something else; it was left as it is.")
    if version > STORE_FORMAT:
        raise StoreError(f"{path} was written by a newer version of bigcn (format {version}, not {STORE_FORMAT}).")
    return False


def _use_wal(db: sqlite3.Connection) -> None:
    # While several processes create one store at once, SQLite answers this one statement with "busy" and does not
    # wait its timeout, so we do.
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _decode(row: sqlite3.Row, path: Path) -> tuple[str, RunSpec, RunResult]:
    try:
        return row["run_id"], *records.decode(dict(row))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged: run {row['run_id']} cannot be read ({error}).") from None


def _records(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of another store, which is only read, wherever it lies."""
    with _one_sentence(path), tempfile.TemporaryDirectory() as folder:
        # Reading a WAL file needs a file next to it, which a read-only folder does not allow: read a copy, together
        # with what was not yet moved from the log into the file.
        place = path if os.access(path.parent, os.W_OK) else Path(folder, "store")
        for suffix in ("", "-wal"):
            if place != path and os.path.exists(f"{path}{suffix}"):
                shutil.copyfile(f"{path}{suffix}", f"{place}{suffix}")
        with closing(_connect(place, "rw")) as db, _transaction(db, "DEFERRED"):
            if not _is_blank(db, path):
                for row in db.execute(f"SELECT {_NAMES} FROM runs"):
                    _decode(row, path)  # One run that cannot be read would spoil every reading of this store.
                    yield tuple(row)


def _write(target: PathLike, text: str, begins: str) -> None:
    """Writes a text file that appears whole or not at all, in place of nothing but an older export (begins alike)."""
    path = _ordinary(target)
    with _one_sentence(path):
        there = path.exists() and path.stat().st_size > 0
        if there and begins_with(path, "SQLite format 3\0"):
            raise StoreError(f"{path} is a database, which an export does not overwrite.")
        if there and not begins_with(path, begins):
            raise StoreError(f"{path} is no export of runs, and was left as it is.")
        write_text(path, text)


class RunStore:
    r"""A file of finished runs, for many processes at once.

    Every process opens the store for itself. An appended run is on the disk when :meth:`append` returns: killing a
    process at any moment loses at most the run it was working on. Nothing is ever overwritten: a run that is repeated
    takes the place of the earlier one in :meth:`get`, :meth:`rows` and :meth:`summary`, which stays as history.

    Args:
        path (str or path): The file. It is created, with its folder, if it does not exist; an empty file becomes a
            store, any other file that is not a store is refused and left as it is.

    """

    def __init__(self, path: PathLike) -> None:
        self.path = _ordinary(path)
        self._process = os.getpid()
        with _one_sentence(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = _connect(self.path, "rwc")
            try:
                self._prepare()
                if not os.access(self.path, os.W_OK):  # SQLite would say so only when the first run is done.
                    raise StoreError(f"{self.path} {_REASONS[sqlite3.SQLITE_READONLY]}")
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        # The journal of a foreign database must not change, so the file is looked at before anything is set.
        with _transaction(self._db, "DEFERRED"):
            blank = _is_blank(self._db, self.path)
        if blank:
            with _transaction(self._db, "IMMEDIATE"):
                if _is_blank(self._db, self.path):  # Another process may have been first.
                    for statement in _SCHEMA:
                        self._db.execute(statement)
        _use_wal(self._db)
        # A run takes seconds to hours and one flush takes milliseconds: it is worth surviving a power cut, too.
        self._db.execute("PRAGMA synchronous = FULL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:  # SQLite's locks do not survive a fork; sharing them would damage the file.
            raise StoreError(f"{self.path} was opened by another process; open it anew in each one.")
        with _one_sentence(self.path):
            yield self._db

    def append(self, spec: RunSpec, result: RunResult) -> str:
        """Adds a run, whole or not at all, and returns its :obj:`run_id`."""
        fields = {**records.encode(spec, result), "run_id": uuid.uuid4().hex, "key": spec.key}
        with self._using() as db, _transaction(db, "IMMEDIATE"):
            # The newest run wins, also when the clock was set back or two runs end within one tick of it.
            newest = db.execute('SELECT max(recorded) FROM runs WHERE "key" = ?', [fields["key"]]).fetchall()[0][0]
            fields["recorded"] = max(time.time_ns(), (newest or 0) + 1)
            db.execute(_INSERT, [fields[name] for name in _COLUMNS])
        return str(fields["run_id"])

    def get(self, run: RunSpec | str) -> RunResult | None:
        """Returns the newest result of a spec, or of its key, that is not a failure; :obj:`None` if there is none."""
        found = self._select({"key": run if isinstance(run, str) else run.key})
        return found[0][2] if found else None

    def has(self, run: RunSpec | str) -> bool:
        """Whether :meth:`get` has an answer."""
        return self.get(run) is not None

    def history(self, run: RunSpec | str) -> list[tuple[str, RunResult]]:
        """Returns all that was ever appended for a spec or key, failures too: run ids and results, newest first."""
        found = self._select({"key": run if isinstance(run, str) else run.key}, history=True)
        return [(run_id, result) for run_id, _, result in reversed(found)]

    def rows(self, *, history: bool = False, **filters: str | float | None) -> Iterator[tuple[RunSpec, RunResult]]:
        """Iterates over specs and what :meth:`get` gives for them, in an order that depends on content only; with
        :obj:`history`, over failed and superseded runs too. Filters say what a column equals: :obj:`dataset="cora"`.
        """
        return ((spec, result) for _, spec, result in self._select(filters, history))

    def _select(self, filters: dict[str, Any], history: bool = False) -> list[tuple[str, RunSpec, RunResult]]:
        allowed = [name for name in _COLUMNS if name not in records.JSON_FIELDS]
        if unknown := [name for name in filters if name not in allowed]:
            raise ValueError(f"Runs cannot be filtered by {', '.join(unknown)}, only by {', '.join(allowed)}.")
        where = " AND ".join(f'"{name}" IS ?' for name in filters) or "1"
        query = f"SELECT {_NAMES} FROM {'runs' if history else 'standing'} WHERE {where} ORDER BY {_ORDER}"
        values = [records.clean_text(value) if isinstance(value, str) else value for value in filters.values()]
        with self._using() as db:
            # All at once: a half-read answer would hold an old view of the file, on which an append must fail.
            found = db.execute(query, values).fetchall()
        return [_decode(row, self.path) for row in found]

    def merge(self, other: PathLike) -> int:
        """Adds the runs of another store that are absent here and returns their number. Merging again adds nothing,
        and the order of merges does not matter. The other store is only read; it may lie in a read-only place.
        """
        with self._using() as db, _transaction(db, "IMMEDIATE"):
            before = db.total_changes
            db.executemany(_INSERT, _records(_ordinary(other)))
            return db.total_changes - before

    def export_csv(self, path: PathLike, *, history: bool = False) -> None:
        """Writes the runs of :meth:`rows`, one line per run and metric; a failed run has one line without metric."""
        file = io.StringIO(newline="")
        table = csv.DictWriter(file, _CSV, extrasaction="ignore")
        table.writeheader()
        for run_id, spec, result in self._select({}, history):
            fields = {**records.encode(spec, result), "key": spec.key, "run_id": run_id}
            for metric, score in result.metrics.items() or [(None, None)]:
                table.writerow({**fields, "metric": metric, "score": score})
        _write(path, file.getvalue(), _CSV_HEAD)

    def export_json(self, path: PathLike, *, history: bool = False) -> None:
        """Writes the runs of :meth:`rows` with all that is known about them."""
        found = self._select({}, history)
        runs = [{"run_id": run_id, "key": s.key, **s.to_dict(), **vars(result)} for run_id, s, result in found]
        _write(path, json.dumps({"format": STORE_FORMAT, "runs": runs}, indent=1, allow_nan=False) + "\n", _JSON_HEAD)

    def summary(self, metric: str | None = None, **filters: str | float | None) -> list[dict[str, Any]]:
        """Returns :func:`summarise` of the runs of :meth:`rows`."""
        return summarise(((spec, result) for _, spec, result in self._select(filters)), metric)
