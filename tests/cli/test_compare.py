import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bigcn.experiments.store import RunStore

QUICK = ("--models", "mlp,gcn", "--seeds", "2", "--max-epochs", "15", "--device", "cpu")
NOISE = ("--case", "noise-level", "--values", "0.2,0.8")


def test_leaves_table_plot_page_and_record(bigcn):
    outcome = bigcn("compare", "digits", *NOISE, *QUICK)
    assert outcome.code == 0, outcome.err
    assert "MLP" in outcome.out
    assert "±" in outcome.out
    folder = Path("runs/digits-node-noise-level")
    assert str(folder / "index.html") in outcome.out.replace("\n", "")
    assert {"table.csv", "curves.png", "curves.svg", "index.html"} <= {path.name for path in folder.iterdir()}
    # Plain lines, one a run, when nobody watches.
    assert [line.split("]")[0] for line in outcome.err.splitlines()] == [f"[{i}/8" for i in range(1, 9)]
    with RunStore("runs/store.sqlite") as store:
        assert len(list(store.rows())) == 8
    with (folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert rows[0].keys() == {
        "model", "dataset", "task", "case", "value", "protocol", "metric", "mean", "std", "seeds"
    }  # fmt: skip


def test_json_is_one_document_and_the_same_twice(bigcn):
    first = bigcn("compare", "digits", *NOISE, *QUICK, "--json")
    document = json.loads(first.out)
    assert {row["model"] for row in document["rows"]} == {"mlp", "gcn"}
    assert all(0 <= row["mean"] <= 1 and row["seeds"] == 2 for row in document["rows"])
    again = bigcn("compare", "digits", *NOISE, *QUICK, "--json")
    assert again.out == first.out
    assert again.err.count("(stored)") == 8
    forced = bigcn("compare", "digits", *NOISE, *QUICK, "--json", "--force")
    assert forced.out == first.out
    assert "(stored)" not in forced.err
    elsewhere = bigcn("compare", "digits", *NOISE, *QUICK, "--json", "--store", "other.sqlite")
    assert elsewhere.out == first.out


def test_killed_in_the_middle_goes_on(kill_at, tmp_path):
    words = [sys.executable, "-m", "bigcn", "compare", "digits", *NOISE, *QUICK, "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    kill_at("[3/8]", [*words, "--store", "killed.sqlite"], environment)

    def finish(store: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, "--store", store], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )

    resumed, undisturbed = finish("killed.sqlite"), finish("undisturbed.sqlite")
    assert resumed.stdout == undisturbed.stdout
    assert resumed.stderr.count("(stored)") >= 3
    assert undisturbed.stderr.count("(stored)") == 0


def test_links(bigcn):
    words = ("compare", "digits", "--task", "link", "--models", "gcn", "--seeds", "1", "--max-epochs", "10", "--json")
    fresh, fixed = bigcn(*words), bigcn(*words, "--negatives", "fixed")
    (row,) = json.loads(fresh.out)["rows"]
    assert (row["metric"], row["protocol"]) == ("roc_auc", "links-80-10-10")
    assert json.loads(fixed.out)["rows"][0]["mean"] != row["mean"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("compare", "corra"), "cora"),
        (("compare", "nodes.csv"), "'bigcn train' takes files"),
        (("compare", "Nodes.TSV"), "'bigcn train' takes files"),
        (("compare", __file__), "'bigcn train' takes files"),
        (("compare", "digits", "--models", "gnc"), "gcn"),
        (("compare", "digits", "--models", "bigcn:spectrall"), "spectral"),
        (("compare", "digits", "--models", ","), "--models"),
        (("compare", "digits", "--models", "gcn,gcn"), "repetition"),
        (("compare", "digits", "--task", "edge"), "'task'"),
        (("compare", "digits", "--case", "noise"), "'case'"),
        (("compare", "digits", "--values", "0.5"), "values"),
        (("compare", "digits", "--case", "noise-level"), "'--values 0.2,0.5'"),
        (("compare", "digits", "--case", "structure-mistakes"), "'--values 0.001,0.01'"),
        (("compare", "digits", "--case", "noise-level", "--values", "a,b"), "--values"),
        (("compare", "digits", "--case", "noise-level", "--values", "-1"), "level"),
        (("compare", "digits", "--case", "noise-rate", "--values", "2"), "rate"),
        (("compare", "digits", "--case", "structure-mistakes", "--values", "1.5"), "'--values'"),
        (("compare", "digits", "--task", "link", "--case", "structure-mistakes", "--values", "0.01"), "'case'"),
        (("compare", "digits", "--protocol", "public", "--models", "mlp"), "random"),
        (("compare", "digits", "--device", "tpu"), "--device"),
        (("compare", "digits", "--negatives", "some", "--task", "link", "--models", "mlp"), "negatives"),
        (("compare", "digits", "--seeds", "0"), "--seeds"),
        (("compare", "digits", "--store", "."), "."),
        (("compare", "digits", "--output", "/dev/null", "--models", "mlp"), "/dev/null"),
        (("compare", "digits", "--seeds", "100000000"), "--seeds"),
        (("compare", "digits", "--models", "bigcn:k=50"), "'iterations'"),
        (("report",), "store"),
        (("datasets", "verify", "nothing"), "nothing"),
        (("nothing",), "nothing"),
    ],
)
def test_bad_input_gets_a_sentence_and_two(bigcn, words, part):
    outcome = bigcn(*words)
    assert outcome.code == 2
    assert part in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_file_with_the_name_of_a_graph_hides_none(bigcn):
    Path("digits").write_text("")
    outcome = bigcn("compare", "digits", "--models", "mlp", "--seeds", "1", "--max-epochs", "2", "--device", "cpu")
    assert outcome.code == 0, outcome.err


def test_cuda_is_refused_where_there_is_none(bigcn, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    outcome = bigcn("compare", "digits", "--device", "cuda")
    assert outcome.code == 2
    assert "GPU" in outcome.err


@pytest.mark.parametrize("words", [(), ("compare",), ("report",), ("datasets",), ("datasets", "download")])
def test_help_has_an_example_or_says_what_it_does(bigcn, words):
    outcome = bigcn(*words, "--help")
    assert outcome.code == 0
    assert "Usage" in outcome.out
    if words in (("compare",), ("report",), ("datasets",)):
        assert "Example" in outcome.out


def test_version(bigcn):
    import bigcn as package

    assert bigcn("--version").out.strip() == f"bigcn {package.__version__}"
