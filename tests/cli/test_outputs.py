"""What the folder with table, plot and page may take the place of."""

import os
from pathlib import Path

import pandas as pd
import pytest

from bigcn.cli.outputs import PAGE, PICTURES, TABLE, check_outputs
from bigcn.experiments.records import SUMMARY_COLUMNS

QUICK = ("--label", "kind", "--device", "cpu", "--quick", "--max-epochs", "3", "--models", "none")
COMPARE = ("compare", "digits", "--models", "mlp", "--seeds", "1", "--max-epochs", "3", "--device", "cpu")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_refused(outcome, *parts: str) -> None:
    assert outcome.code == 2, outcome.err
    last = outcome.err.strip().splitlines()[-1]
    assert last.startswith("bigcn: ")
    for part in parts:
        assert part in last, last
    assert "Traceback" not in outcome.err


def test_what_a_command_wrote_it_writes_again(bigcn, forest):
    words = ("train", *forest(), *QUICK, "-o", "mine")
    for seed in ("0", "1"):
        assert bigcn(*words, "--seed", seed).code == 0
    for _ in range(2):  # another command's page is of the same kind
        assert bigcn(*COMPARE, "-o", "mine").code == 0
    os.remove("mine/index.html")
    assert bigcn(*COMPARE, "-o", "mine").code == 0
    assert set(os.listdir("mine")) == {PAGE, TABLE, *PICTURES}


@pytest.mark.parametrize("name", [PAGE, TABLE, *PICTURES])
@pytest.mark.parametrize("content", [b"", b"model,dataset,size\n1,2,3\n", b"<html><title>bigcn</title></html>"])
def test_what_others_wrote_is_left_as_it_is(bigcn, forest, name, content):
    nodes, edges = forest()
    Path("theirs").mkdir()
    Path("theirs", name).write_bytes(content)
    before = everything(Path())
    for words in (("train", nodes, edges, *QUICK), COMPARE):
        assert_refused(bigcn(*words, "-o", "theirs"), str(Path("theirs", name)), "'--output'")
    assert everything(Path()) == before


def test_a_table_that_an_editor_saved_again_is_still_ours(bigcn, forest):
    """With another end of lines, and a mark of the encoding; a picture is ours by what stands beside it."""
    words = ("train", *forest(), *QUICK)
    assert bigcn(*words, "-o", "page").code == 0
    table, page = Path("page/table.csv"), Path("page/index.html")
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n"))
    page.unlink()
    assert bigcn(*words, "-o", "page").code == 0
    table.unlink()
    page.unlink()
    assert "curves.png has no table.csv of bigcn's beside it" in bigcn(*words, "-o", "page").err


def test_pages_of_a_report_are_refused_before_the_first_is_written(bigcn):
    assert bigcn(*COMPARE).code == 0
    assert bigcn(*COMPARE, "--case", "noise-rate", "--values", "0.5").code == 0
    Path("pages/digits-node-noise-rate").mkdir(parents=True)
    Path("pages/digits-node-noise-rate/table.csv").write_text("mine")
    assert_refused(bigcn("report", "-o", "pages"), "table.csv", "'--output'")
    assert list(everything(Path("pages"))) == ["digits-node-noise-rate/table.csv"]
    assert bigcn("report", "-o", "others").code == 0


def test_inputs_are_never_replaced(bigcn, forest):
    nodes, edges = forest()
    os.rename(nodes, "table.csv")
    os.symlink("table.csv", "link.csv")
    before = everything(Path())
    for name in ("table.csv", "link.csv"):
        assert_refused(bigcn("train", name, edges, *QUICK, "-o", "."), "table.csv", "'--output'")
    # Not even a table that was written by the same command.
    Path("one").mkdir()
    pd.DataFrame(columns=list(SUMMARY_COLUMNS)).to_csv("one/table.csv", index=False)
    check_outputs(Path("one"))
    with pytest.raises(ValueError, match=r"one/table\.csv is read or kept by this command"):
        check_outputs(Path("one"), Path("nodes.csv"), None, Path("one", "..", "one", "table.csv"))
    with pytest.raises(ValueError, match=r"new/index\.html is read or kept"):
        check_outputs(Path("new"), Path("new/index.html"))
    os.remove("one/table.csv")
    assert everything(Path()) == before


def test_places_that_are_no_folder(bigcn, forest):
    nodes, edges = forest()
    os.mkdir("odd")
    os.mkfifo("odd/curves.svg")
    for place, part in (("edges.csv", "edges.csv is a file"), ("odd", "curves.svg is a pipe or a device")):
        for words in (("train", nodes, edges, *QUICK), COMPARE):
            assert_refused(bigcn(*words, "-o", place), part)
    for words in (("train", nodes, edges, *QUICK), COMPARE, ("report",)):
        for nothing in ("", " "):
            assert_refused(bigcn(*words, "-o", nothing), "'--output'", "names no folder")
    assert_refused(bigcn("train", nodes, edges, *QUICK, "--save", ""), "'--save'", "names no folder")
    assert sorted(os.listdir(".")) == ["edges.csv", "nodes.csv", "odd"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--save", "m", "-o", "m"), ("'--save' and '--output' both name m",)),
        (("--save", "m", "-o", "./a/../m"), ("'--save' and '--output' both name m",)),
        (("--save", "m", "-o", "m/page"), ("'--output' names m/page", "in the folder of the model (m)")),
        (("--save", "m", "--store", "m/s.sqlite"), ("'--store' names m/s.sqlite", "in the folder of the model")),
        (("--save", "runs"), ("'--store' names runs/store.sqlite", "in the folder of the model (runs)")),
        (("--save", "runs/nodes-node", "--store", "s.sqlite"), ("both name runs/nodes-node",)),
        (("--save", "page/table.csv", "-o", "page"), ("page/table.csv is read or kept",)),
    ],
)
def test_the_folder_of_a_model_holds_nothing_else(bigcn, forest, words, parts):
    nodes, edges = forest()
    for name in ("runs", "page"):
        os.mkdir(name)
    before = everything(Path())
    assert_refused(bigcn("train", nodes, edges, *QUICK, *words), *parts)
    assert everything(Path()) == before
    assert sorted(os.listdir(".")) == ["edges.csv", "nodes.csv", "page", "runs"]


def test_a_model_may_lie_beside_the_page(bigcn, forest):
    words = ("train", *forest(), *QUICK, "-o", "both", "--save", "both/model")
    os.mkdir("both")
    assert bigcn(*words).code == 0
    assert bigcn(*words, "--force").code == 0
