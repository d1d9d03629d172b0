"""The label column and the split column."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from bigcn.datasets.own.columns import as_floats, distinct_texts, known_text, natural, parse_number, plain
from bigcn.datasets.own.graph import InputError, NoClasses
from bigcn.datasets.own.tables import Table, listed
from bigcn.datasets.splits import Split

#: The words for the parts of a split.
PARTS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
#: The column that holds them, where none is named.
USUAL_SPLIT = "split"
#: All words.
WORDS = tuple(word for part in PARTS.values() for word in part)
#: What says of a node that it is in no part, as an empty cell does.
NO_PART = ("none", "unused", "unlabeled", "unlabelled", "-")
#: If at least this share of a column's texts are such words, the others are taken for slips, not for categories.
MOSTLY_WORDS = 0.75
#: More different labels than this, and more than half as many as there are labelled nodes, are no classes.
MAX_LOOSE_CLASSES = 20


def read_labels(
    table: Table, name: str, classes: Sequence[str] | None = None, order: Sequence[str] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Returns the number of each node's class, -1 for none, and the names of the classes.

    Args:
        table (Table): The node table.
        name (str): The label column.
        classes (Sequence[str], optional): The classes of a trained model; another is refused. (default: :obj:`None`)
        order (Sequence[str], optional): The order of the classes, where the file gives one. (default: :obj:`None`)
    """
    column = plain(table, name, table.take(name))
    if pa.types.is_floating(column.type):
        column = _whole(table, name, as_floats(column))
    text = known_text(column if pa.types.is_string(column.type) else pc.cast(column, pa.string()))
    codes, labels = distinct_texts(text)
    texts = [_without_point(label) for label in labels]
    _check_classes(table, name, codes, texts)
    found = natural(list(dict.fromkeys(texts)))
    names = tuple(classes) if classes is not None else tuple(order) if order and set(found) <= set(order) else found
    position = {label: i for i, label in enumerate(names)}
    renumber = np.array([position.get(label, -1) for label in texts] + [-1], dtype=np.int64)
    y = renumber[codes]
    strange = (y < 0) & (codes >= 0)
    if strange.any():
        first = int(strange.argmax())
        raise InputError(
            f"{table.place(first, name)}: label {texts[codes[first]]!r} was not there in training "
            f"(there were {listed(names)})"
        )
    return y, names


def _whole(table: Table, name: str, numbers: np.ndarray) -> pa.ChunkedArray:
    """Turns whole numbers that were kept as floats into integers."""
    if np.isinf(numbers).any():
        raise InputError(f"{table.place(int(np.isinf(numbers).argmax()), name)}: the label is infinite")
    texts = [None if np.isnan(v) else str(int(v)) if v == np.floor(v) else repr(float(v)) for v in numbers]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _without_point(label: str) -> str:
    """Returns 3 for 3.0: a column with gaps becomes one of floats in many programs."""
    head, point, tail = label.partition(".")
    digits = head.removeprefix("-")
    return head if point and digits.isascii() and digits.isdigit() and set(tail) <= {"0"} else label


def _check_classes(table: Table, name: str, codes: np.ndarray, texts: list[str]) -> None:
    """Refuses labels that are no classes: measurements, or a name for each node."""
    labelled = int((codes >= 0).sum())
    distinct = len(set(texts))
    numbers = [parse_number(text) for text in texts]
    measured = distinct > 0 and all(n == n for n in numbers) and any(n != np.floor(n) for n in numbers)
    if measured and (distinct > 100 or 2 * distinct > labelled):
        raise NoClasses(
            f"{table.title}, column {name!r}: {distinct:,} different numbers among {labelled:,} labels are "
            f"measurements, not classes, and only classes can be learned"
        )
    if distinct > MAX_LOOSE_CLASSES and 2 * distinct > labelled:
        raise NoClasses(
            f"{table.title}, column {name!r}: {distinct:,} different labels among {labelled:,} labelled nodes are no "
            f"classes; is it a column of names or ids?"
        )


def is_split(table: Table, name: str, whole: bool) -> bool:
    """Tells whether a column holds the words of a split.

    Args:
        table (Table): The node table.
        name (str): The column.
        whole (bool): Whether it must hold nothing else. If not, most of its cells are enough, and the others are slips,
            which :func:`read_split` names.
    """
    column = plain(table, name, table.column(name))
    if not pa.types.is_string(column.type):
        return False
    text = pc.drop_null(known_text(column))
    text = text.filter(pc.invert(pc.is_in(pc.utf8_lower(text), value_set=pa.array(NO_PART))))
    found = int(pc.sum(pc.is_in(pc.utf8_lower(text), value_set=pa.array(WORDS))).as_py() or 0)
    return bool(found) and found >= (1 if whole else MOSTLY_WORDS) * len(text)


def read_split(
    table: Table, name: str, y: np.ndarray | None, whole: bool, asked: bool = True
) -> tuple[Split | None, list[str]]:
    """Returns the split that a column gives, and what is to be said about it.

    Args:
        table (Table): The node table.
        name (str): The column; empty cells, and what says so, are in no part.
        y (numpy.ndarray, optional): The labels; a node without one is in no part.
        whole (bool): Whether a part without nodes is refused.
        asked (bool, optional): Whether the column was named, and not only taken for one. (default: :obj:`True`)
    """
    column = plain(table, name, table.take(name))
    text = known_text(column if pa.types.is_string(column.type) else pc.cast(column, pa.string()))
    cells = text.to_pylist()
    words = np.array([word.lower() if word else "" for word in cells])
    part = np.full(len(words), -1)
    for i, names in enumerate(PARTS.values()):
        part[np.isin(words, names)] = i
    strange = (part < 0) & ~np.isin(words, ("", *NO_PART))
    if strange.any():
        first, others = int(strange.argmax()), int(strange.sum()) - 1
        more = f" ({others:,} more are none, either)" if others else ""
        if not asked:
            more += ": mend it, or call the column something else if it is no split"
        raise InputError(f"{table.place(first, name)}: {cells[first]!r} is none of train, val and test{more}")
    said = []
    if y is not None and bool(lost := int(((part >= 0) & (y < 0)).sum())):
        said.append(f"{lost:,} nodes of the split in column {name!r} have no label and were taken out of it.")
        part[y < 0] = -1
    parts = [torch.from_numpy(np.flatnonzero(part == i)) for i in range(3)]
    for key, members in zip(PARTS, parts, strict=True):
        if len(members) == 0:
            if whole:
                raise InputError(
                    f"{table.title}, column {name!r}: no node {'with a label ' if y is not None else ''}is in the "
                    f"part {key!r}, and each of train, val and test needs one"
                )
            return None, said
    return Split(f"column {name}", *parts), said
