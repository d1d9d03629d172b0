import csv
import json
import re
from pathlib import Path

import pytest

RUN = ("--models", "mlp", "--max-epochs", "5", "--device", "cpu")


@pytest.fixture
def stored(bigcn):
    for extra in (("--seeds", "2"), ("--case", "noise-rate", "--values", "0.5", "--seeds", "1")):
        assert bigcn("compare", "digits", *RUN, *extra).code == 0
    return bigcn


def test_makes_a_page_of_each_comparison(stored):
    outcome = stored("report", "-o", "pages")
    assert outcome.code == 0, outcome.err
    assert Path("pages/digits-node-clean/index.html").exists()
    page = re.sub(r"<[^>]*>", "", Path("pages/digits-node-noise-rate/index.html").read_text())
    assert "bigcn compare digits --task node --case noise-rate --values 0.5 --models mlp" in page


def test_chooses(stored):
    rows = json.loads(stored("report", "digits", "--case", "clean", "--json").out)["rows"]
    assert [(row["case"], row["seeds"]) for row in rows] == [("clean", 2)]
    for words, part in ((("nosuch",), "nosuch"), (("--task", "foo"), "--task"), (("--case", "foo"), "--case")):
        refused = stored("report", *words)
        assert refused.code == 2
        assert part in refused.err
    missing = stored("report", "cora")
    assert missing.code == 2
    assert "no stored run" in missing.err


def test_merges_and_exports(stored):
    assert stored("compare", "digits", *RUN, "--seeds", "1", "--seed", "100", "--store", "other.sqlite").code == 0
    assert stored("report", "--merge", "other.sqlite", "--export", "runs.csv", "--export", "runs.json").code == 0
    with open("runs.csv") as file:
        seeds = {row["seed"] for row in csv.DictReader(file) if row["metric"] == "accuracy"}
    assert seeds == {"5", "10", "100"}
    assert json.loads(Path("runs.json").read_text())
    assert stored("report", "--export", "runs.txt").code == 2
    assert stored("report", "--merge", "nowhere.sqlite").code == 2


def test_runs_with_other_settings_get_a_page_of_their_own(bigcn):
    for epochs in ("4", "6"):
        words = ("compare", "digits", "--models", "mlp", "--seeds", "1", "--device", "cpu", "--weight-decay", "0.1")
        assert bigcn(*words, "--max-epochs", epochs).code == 0
    outcome = bigcn("report", "-o", "pages")
    assert outcome.code == 0, outcome.err
    rows = json.loads(bigcn("report", "--json").out)["rows"]
    titles = [f"Digits, node classification, clean, at most {epochs} epochs" for epochs in (4, 6)]
    assert [row["comparison"] for row in rows] == titles
    for name, epochs in (("digits-node-clean", 4), ("digits-node-clean-2", 6)):
        assert f"Digits, node classification, clean, at most {epochs} epochs" in " ".join(outcome.out.split())
        page = re.sub(r"<[^>]*>", "", Path(f"pages/{name}/index.html").read_text())
        assert f"--max-epochs {epochs} --weight-decay 0.1 --device cpu" in page


def test_trainings_of_one_graph_each_have_all_their_runs(bigcn, forest):
    for epochs in ("3", "4"):
        words = ("train", *forest(), "--label", "kind", "--quick", "--models", "mlp", "--device", "cpu")
        assert bigcn(*words, "--max-epochs", epochs).code == 0
    outcome = bigcn("report", "-o", "pages")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("Largest class") == 2
    for name, epochs in (("nodes-node", 3), ("nodes-node-2", 4)):
        page = Path(f"pages/{name}/index.html").read_text()
        assert f"<title>nodes, node classification, at most {epochs} epochs</title>" in page
        assert "Largest class" in page
