"""What the cells of a column mean."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcn.datasets.own import Column, InputError
from bigcn.datasets.own.columns import Unusable, natural, parse_number, read_values
from bigcn.datasets.own.tables import frame_table


def values(cells, like=None, decimal=".", **options):
    table = frame_table(pd.DataFrame({"c": pd.Series(cells, **options)}), "table")
    table.decimal = decimal
    return read_values(table, "c", like)


@pytest.mark.parametrize(
    ("cells", "kind", "numbers"),
    [
        (["1", "2.5", " 3 ", "1e3", "+4", "-.5"], "number", [1, 2.5, 3, 1000, 4, -0.5]),
        (["1", "", "NA", "nan", None, "2"], "number", [1, np.nan, np.nan, np.nan, np.nan, 2]),
        ([1, 2, 3], "number", [1, 2, 3]),
        ([1.5, None, 2], "number", [1.5, np.nan, 2]),
        (["0", "1", "1.0", ""], "boolean", [0, 1, 1, np.nan]),
        ([0, 1, 1], "boolean", [0, 1, 1]),
        ([1, 1, 1], "boolean", [1, 1, 1]),
        ([True, False, None], "boolean", [1, 0, np.nan]),
        (["true", "False", "TRUE"], "boolean", [1, 0, 1]),
        (["yes", "no", ""], "boolean", [1, 0, np.nan]),
        (["0", "true"], "category", [0, 1]),
        (["b", "a", "", "b"], "category", [1, 0, np.nan, 1]),
        (["10", "9", "x"], "category", [1, 0, 2]),
        (["1_000", "0x10", "1e"], "category", [1, 0, 2]),
        (["None", "none", "-"], "category", [1, 2, 0]),
    ],
)
def test_kinds(cells, kind, numbers):
    found = values(cells)
    assert found.kind == kind
    assert np.where(found.missing, np.nan, found.numbers) == pytest.approx(numbers, nan_ok=True)
    assert found.missing.tolist() == np.isnan(np.array(numbers, dtype=float)).tolist()


def test_types_of_frames():
    assert values(["u", "v", "u"], dtype="category").categories == ("u", "v")
    assert values([1, None], dtype="Int64").missing.tolist() == [False, True]
    assert values(["x", "y"], dtype="string").kind == "category"
    assert values([1.5, 2.5], dtype="float16").numbers.tolist() == [1.5, 2.5]
    assert values([1, "a", 2.5]).categories == ("1", "2.5", "a")
    with pytest.raises(InputError, match="column 'c': holds dates or times"):
        values(pd.date_range("2020", periods=2))
    with pytest.raises(InputError, match="column 'c': holds values of type list"):
        values([[1], [2]])


@pytest.mark.parametrize(
    "text",
    ["2021-01-14", "2021/1/4", "29.01.2021", "1/29/21", "2021-01-14 10:30", "2021-01-14T10:30:00.5+01:00", "9:05 pm"],
)
def test_dates_as_text_are_dates(text):
    with pytest.raises(Unusable, match="column 'c': holds dates or times"):
        values([text, "", text])
    assert values([text, "then", text]).kind == "category"


@pytest.mark.parametrize("text", ["3.10.12", "10.0.0.1", "2021-Q1", "2021-01", "1-2", "12:34:56:78", "A-10-10-2020"])
def test_other_texts_with_digits_are_not(text):
    assert values([text, "x" + text]).kind == values([text, text]).kind == "category"


def test_categories_that_look_like_numbers_are_noticed():
    assert values(["24%", "7 %", "31%"]).spoils == "24%"
    assert values(["1", "2", "?", "?"]).spoils is None
    assert values(["1", "2", "3", "?", "?"]).spoils == "?"
    assert values(["€1'000", "$7", "none"]).spoils == "€1'000"
    assert values(["a1", "b2"]).spoils is None


def test_codes_with_a_zero_before_them_are_noticed():
    assert values(["01067", "80331", ""]).padded == "01067"
    assert values(["0", "0.5", "-0.5", "10"]).padded is None


def test_words_are_kept_as_they_were_written():
    assert values(["Yes", "No"]).categories == ("No", "Yes")
    assert values(["TRUE", "TRUE"]).categories == ("FALSE", "TRUE")
    assert values([True, False]).categories == ("False", "True")
    assert values([0, 1]).categories == ()


def test_decimal_commas():
    assert values(["1,5", "2", "-,5"], decimal=",").numbers.tolist() == [1.5, 2, -0.5]
    assert values(["1,5", "2"]).kind == "category"
    assert values(["1.234,5", "x"], decimal=",").kind == "category"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_to_the_last_digit(value):
    assert parse_number(repr(value)) == value
    if abs(value) < 1e150:
        assert values([repr(value), "7"]).numbers[0] == value


def test_a_slip_among_numbers_is_not_a_category():
    cells = [str(i) for i in range(20)]
    with pytest.raises(InputError, match=r"row 21, column 'c': '12\.5\.3' is not a number, and 95\.2% of the column"):
        values([*cells, "12.5.3"])
    assert values([*cells[:8], "a", "b"]).kind == "category"


def test_like():
    number = Column("c", "number", 1.0, 2.0)
    assert values([0, 1], number).kind == "number"
    assert values(["3", ""], number).kind == "number"
    category = Column("c", "category", categories=("1", "2"))
    assert values([2, 1, 2], category).numbers.tolist() == [1, 0, 1]
    assert values(["2", None], category).missing.tolist() == [False, True]
    flag = Column("c", "boolean", categories=("no", "yes"))
    assert values([1, 0], flag).numbers.tolist() == [1, 0]
    assert values([True, False], flag).categories == ("no", "yes")
    assert values([None, None], category).categories == ("1", "2")


@given(st.permutations(["-3", "0.5", "2", "10", "1e3", "a", "b10", "b9"]))
def test_natural_order(texts):
    assert natural(texts) == ("-3", "0.5", "2", "10", "1e3", "a", "b10", "b9")
