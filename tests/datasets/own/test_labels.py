"""Labels that are classes, and labels that are not."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcn.datasets.own import InputError, NoClasses, read_graph
from bigcn.datasets.own.labels import MOSTLY_WORDS, PARTS, is_split, read_labels, read_split
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


@pytest.mark.parametrize("missing", ["fill", "error"])
def test_no_classes_come_with_a_look_at_the_rest(missing):
    frame = pd.DataFrame({"id": range(30), "x": [i % 4 for i in range(30)], "y": [i / 7 for i in range(30)]})
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    with pytest.raises(NoClasses, match="measurements") as caught:
        read_graph(frame, edges, label="y", missing=missing)
    graph = caught.value.graph
    assert (graph.summary.nodes, graph.summary.edges, graph.feature_names) == (30, 2, ("x",))
    assert graph.data.y is None
    assert graph.summary.labels == {}
    with pytest.raises(InputError, match="column 'x'"):  # what is wrong elsewhere is said as well
        read_graph(frame.assign(x=float("inf")), edges, label="y")


def test_what_is_in_no_part_and_a_column_that_divides_nothing(read):
    """Words for no part are empty cells; without labels a slip does no harm, and the column is a feature."""
    head, cells = "id,size,kind,split\n", ["train", "val", "test", "Train", "unlabelled", "none", "-"]
    rows = "".join(f"{'abcdefg'[i]},{i},{'xy'[i % 2]},{cell}\n" for i, cell in enumerate(cells))
    graph = read(head + rows, label="kind")
    assert [part.numel() for part in (graph.split.train, graph.split.val, graph.split.test)] == [2, 1, 1]
    slip = head + rows.replace("Train", "tset")
    with pytest.raises(InputError, match=r"'tset' is none of train, val and test: mend it, or call the column"):
        read(slip + "h,8,x,train\n", label="kind")
    with pytest.raises(InputError, match=r"'tset' is none of train, val and test$"):
        read(slip, label="kind", split="split")
    unlabelled = read(slip + "h,8,x,train\n")
    assert unlabelled.split is None
    assert any(name.startswith("split") for name in unlabelled.feature_names)


WORD = st.sampled_from([word for words in PARTS.values() for word in words]).flatmap(
    lambda word: st.sampled_from([word, word.upper(), f" {word.title()} "])
)
OTHER = st.sampled_from(["tset", "tram", "Val.", "trian", "1"])


@given(words=st.lists(WORD, max_size=30), others=st.lists(OTHER, max_size=10), gaps=st.integers(0, 5), data=st.data())
def test_a_slip_does_not_turn_the_split_into_a_feature(words, others, gaps, data):
    cells = data.draw(st.permutations([*words, *others, *[None] * gaps]))
    table = frame_table(pd.DataFrame({"split": pd.Series(cells, dtype=object)}), "table")
    known = len(words) + len(others)
    assert is_split(table, "split", whole=True) == (bool(words) and not others)
    found = is_split(table, "split", whole=False)
    assert found == (bool(words) and len(words) >= MOSTLY_WORDS * known)
    if found and others:
        row, first = next((i + 1, cell) for i, cell in enumerate(cells) if cell in others)
        with pytest.raises(InputError, match=f"^table, row {row}, column 'split': {first!r} is none of"):
            read_split(table, "split", None, whole=True)
