"""Labels that are classes, and labels that are not."""

import pandas as pd
import pytest

from bigcn.datasets.own import InputError
from bigcn.datasets.own.labels import read_labels
from bigcn.datasets.own.tables import frame_table


def labels(cells, **options):
    y, classes = read_labels(frame_table(pd.DataFrame({"c": cells}), "table"), "c", **options)
    return y.tolist(), classes


@pytest.mark.parametrize(
    ("cells", "y", "classes"),
    [
        (["b", "a", None, "", " ", "a"], [1, 0, -1, -1, -1, 0], ("a", "b")),
        (["10", "9", "b"], [1, 0, 2], ("9", "10", "b")),
        ([10, 9, 9], [1, 0, 0], ("9", "10")),
        ([1.0, None, 2.0], [0, -1, 1], ("1", "2")),
        (["1.0", "2.0", "1"], [0, 1, 0], ("1", "2")),
        (["01", "1", "01"], [0, 1, 0], ("01", "1")),
        ([True, False, True], [1, 0, 1], ("false", "true")),
        ([0.5, 1.0, 0.5, 1.0], [0, 1, 0, 1], ("0.5", "1")),
        ([None, None], [-1, -1], ()),
        (["None", "NA"], [0, -1], ("None",)),
    ],
)
def test_classes(cells, y, classes):
    assert labels(cells) == (y, classes)


def test_the_order_of_a_file_is_kept():
    assert labels(["u", "v"], order=("w", "v", "u")) == ([2, 1], ("w", "v", "u"))
    assert labels(["u", "x"], order=("w", "v", "u")) == ([0, 1], ("u", "x"))


def test_the_classes_of_a_model_are_kept():
    assert labels(["u", None], classes=("v", "u")) == ([1, -1], ("v", "u"))
    with pytest.raises(InputError, match="row 2, column 'c': label 'x' was not there in training"):
        labels(["u", "x"], classes=("v", "u"))


@pytest.mark.parametrize(
    "cells", [[0.1, 0.2, 0.3], [i / 7 for i in range(1, 102)] * 3, [str(i) for i in range(21)], [1.0, float("inf")]]
)
def test_what_is_no_class(cells):
    with pytest.raises(InputError, match="column 'c'"):
        labels(cells)
