"""What the cells of a column mean: numbers, yes or no, or categories."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bigcn.datasets.own.graph import Column, InputError, Kind
from bigcn.datasets.own.tables import Table

#: Text that stands for a missing value in features and labels; in ids only the empty text does.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "null", "NULL", "Null")
#: Pairs of words that stand for no and yes.
WORDS = (("false", "true"), ("no", "yes"))
#: If more than this share of a column's texts are numbers, the others are taken for mistakes, not for categories.
MOSTLY_NUMBERS = 0.9
#: The largest number of a feature; the square of a larger one is infinite.
LARGEST = 1e150
#: What surrounds or divides the digits of amounts: signs of currencies and shares, and what groups thousands.
_AROUND = re.compile(r"[€$£¥%°'’_,\s]")
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?( ?(Z|[+-]\d{2}:?\d{2}))?"
#: Three small numbers with dots between them are a version rather than a date.
_DAY = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/]\d{1,2}[-/](\d{4}|\d{2})|\d{1,2}\.\d{1,2}\.\d{4}"
_DATE = re.compile(rf"({_DAY})([T ]+{_TIME})?|{_TIME}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)


class Unusable(InputError):
    """A column that cannot become features; it is left out unless it was asked for."""


@dataclass(eq=False)
class Values:
    """The cells of a column, understood.

    Args:
        kind (str): What they are.
        numbers (numpy.ndarray): The numbers (NaN where missing), 0 and 1 for booleans, the position among the
            categories for categories.
        missing (numpy.ndarray): Where cells are missing.
        categories (tuple[str, ...]): The categories, or the words for no and yes.
        spoils (str, optional): Of categories most of which look like numbers, the first that is none.
            (default: :obj:`None`)
        padded (str, optional): Of numbers, the first that was written with a zero before it, as codes are.
            (default: :obj:`None`)
    """

    kind: Kind
    numbers: np.ndarray
    missing: np.ndarray
    categories: tuple[str, ...] = ()
    spoils: str | None = None
    padded: str | None = None

    @property
    def known(self) -> np.ndarray:
        """The numbers of the cells that are not missing."""
        return self.numbers[~self.missing] if self.missing.any() else self.numbers


def read_values(table: Table, name: str, like: Column | None = None) -> Values:
    """Reads a column of the node table.

    Args:
        table (Table): The table.
        name (str): The column.
        like (Column, optional): How it was understood when a model was trained; cells that mean something else are
            refused. (default: :obj:`None`)
    """
    column = plain(table, name, table.take(name))
    if pa.types.is_string(column.type):
        values = _from_text(table, name, column, like)
    elif like is not None and (like.kind == "category" or like.categories) and not pa.types.is_boolean(column.type):
        values = _from_text(table, name, pc.cast(column, pa.string()), like)
    else:
        values = _from_numbers(column)
    _check_finite(table, name, values)
    return values if like is None else _conform(table, values, like)


def plain(table: Table, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column as text, booleans or numbers, and refuses what is none of them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
        kind = column.type
    if pa.types.is_null(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.cast(column, pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return pc.cast(column, pa.float64())
    if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return column
    what = "dates or times" if pa.types.is_temporal(kind) else f"values of type {kind}"
    raise Unusable(f"{table.title}, column {name!r}: holds {what}, and only numbers, booleans and text can be used")


def known_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column of text with null where the text stands for a missing value."""
    column = pc.utf8_trim_whitespace(column)
    # Null counts as missing as well, and is not to become the text of a category.
    missing = pc.is_in(column, value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), column)


def _from_numbers(column: pa.ChunkedArray) -> Values:
    words = ("False", "True") if pa.types.is_boolean(column.type) else ()
    numbers = as_floats(column)
    missing = np.isnan(numbers)
    return Values("boolean" if words or _zero_one(numbers) else "number", numbers, missing, words)


def as_floats(column: pa.ChunkedArray) -> np.ndarray:
    """Returns a column as float64, with NaN for null."""
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.uint8())
    column = pc.cast(column, pa.float64(), safe=False)
    return np.array(column.to_numpy(), dtype=np.float64)


def _zero_one(numbers: np.ndarray) -> bool:
    known = numbers[~np.isnan(numbers)]
    return bool(known.size) and bool(((known == 0) | (known == 1)).all())


def _from_text(table: Table, name: str, column: pa.ChunkedArray, like: Column | None) -> Values:
    text = known_text(column)
    missing = np.asarray(pc.is_null(text))
    as_category = like is not None and like.kind == "category"
    if not as_category:
        try:
            return replace(_from_numbers(pc.cast(text, pa.float64())), padded=_padded(text))
        except pa.ArrowInvalid:
            pass
    codes, texts = distinct_texts(text)
    if not as_category:
        words = _words(texts)
        if words:
            values = np.array([float(text.lower() == words[1].lower()) for text in texts] + [np.nan])
            return Values("boolean", values[codes], missing, words)
        parsed = np.array([parse_number(text, table.decimal) for text in texts] + [np.nan])
        wrong = np.isnan(parsed[:-1])
        if not wrong.any():
            numbers = parsed[codes]
            return Values("boolean" if _zero_one(numbers) else "number", numbers, missing)
        bad = wrong[codes] & ~missing
        share = 1 - bad.sum() / max(1, (~missing).sum())
        if like is not None or share > MOSTLY_NUMBERS:
            first = int(bad.argmax())
            others = "it" if bad.sum() == 1 else f"all {bad.sum():,}"
            number = f"a number, and {share:.1%} of the column are numbers: mend {others}, or leave such cells empty"
            raise InputError(
                f"{table.place(first, name)}: {texts[codes[first]]!r} is not {f'a {like.kind}' if like else number}"
            )
        if _mostly(_DATE.fullmatch, texts, codes):
            raise Unusable(
                f"{table.title}, column {name!r}: holds dates or times (as {texts[codes[int(bad.argmax())]]!r}), and "
                "only numbers, booleans and text can be used"
            )
    categories = natural(texts)
    position = {category: i for i, category in enumerate(categories)}
    renumber = np.array([position[text] for text in texts] + [-1], dtype=np.int64)
    spoils = None
    if not as_category and _mostly(lambda text: np.isfinite(parse_number(_AROUND.sub("", text))), texts, codes, 0.5):
        spoils = texts[int(np.isnan(parsed[:-1]).argmax())]
    return Values("category", renumber[codes], missing, categories, spoils)


def _padded(text: pa.ChunkedArray) -> str | None:
    found = text.filter(pc.match_substring_regex(text, r"^0[0-9]+$"))
    return found[0].as_py() if len(found) else None


def _mostly(is_one: Callable[[str], Any], texts: list[str], codes: np.ndarray, share: float = MOSTLY_NUMBERS) -> bool:
    """Tells whether more than a share of the known cells are something."""
    known = codes[codes >= 0]
    found = np.array([bool(is_one(text)) for text in texts])
    return bool(len(known)) and bool(found[known].mean() > share)


def distinct_texts(text: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Returns the number of each cell's text, -1 for null, and the texts."""
    encoded = text.dictionary_encode().unify_dictionaries()
    codes = [np.asarray(chunk.indices.fill_null(-1), dtype=np.int64) for chunk in encoded.chunks]
    return np.concatenate(codes or [np.empty(0, np.int64)]), encoded.chunk(0).dictionary.to_pylist() if codes else []


def _words(texts: list[str]) -> tuple[str, str] | None:
    """Returns the words for no and yes as the column spells them, if they are all it holds."""
    lower = {text.lower(): text for text in texts}
    for no, yes in WORDS:
        if lower and lower.keys() <= {no, yes}:
            style: Any = str.upper if texts[0].isupper() else str.title if texts[0].istitle() else str.lower
            return lower.get(no, style(no)), lower.get(yes, style(yes))
    return None


def parse_number(text: str, decimal: str = ".") -> float:
    """Returns a number, or NaN for text that is none."""
    text = text.replace(decimal, ".") if decimal != "." and "." not in text else text
    return float(text) if _NUMBER.fullmatch(text) else float("nan")


def natural(texts: list[str]) -> tuple[str, ...]:
    """Sorts texts as people do: numbers by size, and before words."""

    def key(text: str) -> tuple[bool, float, str]:
        number = parse_number(text)
        return (True, 0.0, text) if np.isnan(number) else (False, number, text)

    return tuple(sorted(texts, key=key))


def _check_finite(table: Table, name: str, values: Values) -> None:
    if values.kind == "number" and (large := np.abs(values.numbers) > LARGEST).any():
        raise InputError(f"{table.place(int(large.argmax()), name)}: the value is infinite or too large")


def _conform(table: Table, values: Values, like: Column) -> Values:
    """Refuses cells that a column did not hold when a model was trained."""
    if values.missing.all():
        return Values(like.kind, np.full(len(values.numbers), np.nan), values.missing, like.categories)
    if like.kind == "category":
        known = {category: i for i, category in enumerate(like.categories)}
        position = np.array([known.get(category, -1) for category in values.categories] + [-1])
        numbers = position[values.numbers.astype(np.int64)]
        unknown = (numbers < 0) & ~values.missing
        if unknown.any():
            first = int(unknown.argmax())
            category = values.categories[int(values.numbers[first])]
            raise InputError(
                f"{table.place(first, like.name)}: category {category!r} was not there in training "
                f"(there were {', '.join(map(repr, like.categories[:12]))}{', …' if len(like.categories) > 12 else ''})"
            )
        return Values("category", numbers, values.missing, like.categories)
    if like.kind == "boolean" and values.kind != "boolean":
        first = int((~values.missing & (values.numbers != 0) & (values.numbers != 1)).argmax())
        raise InputError(
            f"{table.place(first, like.name)}: the column held 0 and 1, or yes and no, in training, and here "
            f"{values.numbers[first]:g}"
        )
    return Values(like.kind, values.numbers, values.missing, like.categories)
