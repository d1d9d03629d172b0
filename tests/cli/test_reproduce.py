import csv
import json
import os
import sys
from pathlib import Path

import pytest

from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.records import RunResult
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.experiments.store import RunStore

QUICK = ("sensitivity-k", "--seeds", "1", "--max-epochs", "2", "--device", "cpu")


def fill(
    path: Path,
    device: str,
    seeds: int = 10,
    names: tuple[str, ...] = ("sensitivity-k",),
    max_epochs: int | None = None,
) -> None:
    """Writes a store with made-up runs."""
    with RunStore(path) as store:
        work = Reproduction([EXPERIMENTS[name] for name in names], store, Setting(device, SEEDS[:seeds], max_epochs))
        for spec in work.reporting():
            metrics = {"accuracy": 0.5 + 0.01 * spec.settings["model"]["iterations"] + 0.001 * spec.seed}
            host = {"gpu": "Some GPU"} if device == "cuda" else {"cpu": "Some CPU"}
            result = RunResult(metrics=metrics, seconds=1.0, started="2026-03-01T12:00:00+00:00", host=host)
            store.append(spec, result)


def test_list(bigcn):
    outcome = bigcn("reproduce", "list")
    assert outcome.code == 0
    assert all(name in outcome.out for name in EXPERIMENTS)
    document = json.loads(bigcn("reproduce", "list", "--json").out)
    assert {row["name"] for row in document["experiments"]} == set(EXPERIMENTS)
    assert {row["name"] for row in document["experiments"] if row["ours"]} == {
        "ablations", "column-noise", "depth", "depth-link", "protocols"
    }  # fmt: skip
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("node-tabel",), "unknown experiment 'node-tabel'; did you mean 'node-table'?"),
        (("list", "node-table"), "'list' stands alone: name nothing beside it"),
        (("node-table", "all"), "'all' stands alone: name nothing beside it"),
        (("node-table", "--graphs", "corra"), "'--graphs' names 'corra', which none of these experiments has"),
        (("sensitivity-k", "--graphs", "pubmed"), "'--graphs' names 'pubmed', which none of these experiments has"),
        (("all", "--report", "--store", "mine.sqlite"), "there is no store of runs at mine.sqlite"),
        (("node-table", "--device", "tpu"), "'--device' must be auto, cpu or cuda (got 'tpu')"),
        (("all", "--report"), "there is no store of runs at runs/reproduce.sqlite and no table in results"),
        (("node-table", "--seeds", "11"), "less than or equal to 10"),
        (("all", "--since", "2026-11-18"), "'--since' goes with '--lacking'"),
        (("all", "--lacking", "--since", "18.11."), "'--since' must be a day, as in 2026-11-18 (got '18.11.')"),
        (("all", "--lacking", "--report"), "'--lacking' runs what the tables of a full run lack, and does not go with"),
        (("all", "--lacking", "--seeds", "2"), "does not go with '--seeds'"),
        (("all", "--lacking", "--max-epochs", "2"), "does not go with '--max-epochs'"),
        (("link-table", "--graphs", "mars"), "which none of these experiments has: cora, citeseer, pubmed, dblp"),
    ],
)
def test_mistakes_are_one_sentence(bigcn, words, sentence):
    outcome = bigcn("reproduce", *words)
    assert outcome.code == 2
    assert sentence in " ".join(outcome.err.replace("│", " ").split())
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(bigcn, monkeypatch):
    monkeypatch.setattr("bigcn.cli.reproduce._carry_out", lambda *_: pytest.fail("it ran"))
    Path("taken").write_text("no folder")
    Path("folder").mkdir()
    for words in (("--results", "taken/results"), ("--page", "folder"), ("--page", "taken/page.md")):
        outcome = bigcn("reproduce", *QUICK, *words)
        assert outcome.code == 2
        assert words[1].partition("/")[0] in outcome.err
        assert "Traceback" not in outcome.err
        assert not Path("results").exists()


def test_plan_runs_nothing(bigcn):
    outcome = bigcn("reproduce", *QUICK, "--plan")
    assert outcome.code == 0
    assert outcome.out == "1 experiment, 20 runs, 0 of them in the store; 20 to do on cpu\n"
    assert outcome.err == ""
    assert not Path("results").exists()
    fill(Path("runs/half.sqlite"), "cpu", seeds=1)
    document = json.loads(
        bigcn("reproduce", "sensitivity-k", "--device", "cpu", "--store", "runs/half.sqlite", "--plan", "--json").out
    )
    assert document == {"experiments": 1, "runs": 200, "missing": 180, "exact": True, "seconds": 180.0}


def test_runs_and_writes(bigcn, benchmark_data, monkeypatch):
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    outcome = bigcn("reproduce", *QUICK, "--graphs", "cora", "--json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)["rows"]
    assert len(rows) == 20
    assert all(0 <= row["mean"] <= 1 and row["seeds"] == 1 and row["epochs"] <= 2 for row in rows)
    with Path("results/sensitivity-k.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in written] == pytest.approx([row["mean"] for row in rows], abs=1e-6)
    page = Path("docs/results.md").read_text()
    assert "**This is a short run: 1 of 10 seeds and at most 2 epochs.**" in page
    assert "../results/figures/sensitivity-k.svg" in page
    again = bigcn("reproduce", *QUICK, "--json")
    assert again.out == outcome.out
    assert "0 runs in" in again.err


def test_killed_in_the_middle_goes_on(bigcn, kill_at, tmp_path, benchmark_data, monkeypatch):
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "bigcn", "reproduce", *QUICK]
    kill_at("[3/20]", words, environment)
    assert not (tmp_path / "results").exists()
    with RunStore(tmp_path / "runs" / "reproduce.sqlite") as store:
        done = len(list(store.rows()))
    assert 3 <= done < 20
    resumed = bigcn("reproduce", *QUICK, "--json")
    assert f"{20 - done} runs in" in resumed.err
    assert len(json.loads(resumed.out)["rows"]) == 20


def test_a_report_says_what_is_reported(bigcn):
    fill(Path("runs/reproduce.sqlite"), "cpu", seeds=1, max_epochs=2)
    words = ("reproduce", "sensitivity-k", "--results", "short", "--report")

    def said(*more: str) -> str:
        outcome = bigcn(*words, *more)
        assert outcome.code == 0, outcome.err
        return " ".join(outcome.err.split())

    start = "1 experiment, 200 runs, 0 of them in the store; nothing to report"
    others = "what is there (20 runs) belongs to other '--seeds' or '--max-epochs', name these too"
    assert said() == f"{start}: {others}"
    assert said("--max-epochs", "2").endswith("200 runs, 20 of them in the store; nothing to report yet")
    named = said("--seeds", "1", "--max-epochs", "2")
    assert named == "1 experiment, 20 runs, 20 of them in the store; 20 rows reported"
    fill(Path("runs/reproduce.sqlite"), "cuda")
    words = ("reproduce", "sensitivity-k", "--results", "full", "--report")
    assert said() == "1 experiment, 200 runs, 200 of them in the store; 20 rows reported"
    assert said() == "1 experiment, 200 runs, 200 of them in the store; 20 rows reported from store and tables"
    words = ("reproduce", "depth", "--results", "full", "--report")
    assert said().endswith("0 of them in the store; nothing to report yet")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_reports_from_the_store_whatever_the_device(bigcn, device):
    fill(Path("runs/reproduce.sqlite"), device)
    outcome = bigcn("reproduce", "all", "--report")
    assert outcome.code == 0, outcome.err
    assert "wrote docs/results.md" in outcome.out
    page = Path("docs/results.md").read_text()
    assert "How many rounds of ADMM" in page
    assert f"`bigcn reproduce sensitivity-k --device {device}`" in page
    assert "| 200 |" in page
    before = page, Path("results/sensitivity-k.csv").read_bytes()
    # Another experiment, or another graph, rewrites nothing with less.
    assert bigcn("reproduce", "depth", "--graphs", "cora", "--report").code == 0
    assert (Path("docs/results.md").read_text(), Path("results/sensitivity-k.csv").read_bytes()) == before


def test_what_no_gpu_has_run_is_reported_from_a_cpu(bigcn):
    fill(Path("runs/reproduce.sqlite"), "cpu")
    fill(Path("runs/reproduce.sqlite"), "cuda", seeds=1)
    bigcn("reproduce", "all", "--report")
    page = Path("docs/results.md").read_text()
    assert "--device cuda`" in page
    assert "sensitivity-k` (How many rounds of ADMM): all of it." not in page
    bigcn("reproduce", "all", "--report", "--device", "cpu")
    assert "--device cpu`" in Path("docs/results.md").read_text()


def test_page_can_be_left(bigcn):
    fill(Path("runs/reproduce.sqlite"), "cpu")
    outcome = bigcn("reproduce", "all", "--report", "--page", "none", "--results", "elsewhere")
    assert outcome.code == 0
    assert Path("elsewhere/sensitivity-k.csv").exists()
    assert not Path("docs").exists()
    assert not Path("none").exists()


def test_links_lead_somewhere_and_no_folder_of_this_machine_is_named(bigcn, tmp_path):
    fill(Path("runs/reproduce.sqlite"), "cpu")
    pages = {
        (): "docs/results.md",
        ("--page", "other/page.md"): "other/page.md",
        ("--results", str(tmp_path / "results")): "docs/results.md",
        ("--results", "mine"): "mine/results.md",
    }
    for words, page in pages.items():
        outcome = bigcn("reproduce", "all", "--report", *words)
        assert outcome.code == 0, outcome.err
        assert outcome.out.splitlines()[-1] == f"wrote {page}"
        text = Path(page).read_text()
        assert str(tmp_path) not in text
        assert "](reproduce.md)" not in text
        assert "see `docs/reproduce.md`" in text
    Path("docs/reproduce.md").write_text("# Reproduce\n")
    bigcn("reproduce", "all", "--report")
    assert "see [reproduce.md](reproduce.md)" in Path("docs/results.md").read_text()


def test_tables_stand_for_a_store_that_is_gone(bigcn):
    fill(Path("runs/reproduce.sqlite"), "cuda")
    assert bigcn("reproduce", "all", "--report").code == 0
    before = {path: path.read_bytes() for path in (*Path("results").glob("*.*"), Path("docs/results.md"))}
    Path("runs/reproduce.sqlite").unlink()
    outcome = bigcn("reproduce", "all", "--report")
    assert outcome.code == 0, outcome.err
    assert not Path("runs/reproduce.sqlite").exists()
    assert {path: path.read_bytes() for path in before} == before
    plans = (
        bigcn("reproduce", "sensitivity-k", "--device", "cpu", "--plan", "--json", *more)
        for more in ([], ["--lacking"])
    )
    assert [json.loads(plan.out)["missing"] for plan in plans] == [200, 0]
    short = bigcn("reproduce", *QUICK)
    assert short.code == 2
    assert "results has tables of a full run, which a short one would replace" in " ".join(short.err.split())
    # Elsewhere it may write, with a page of its own; the same for all seeds of another store.
    fill(Path("runs/short.sqlite"), "cpu", seeds=1)
    elsewhere = ("--store", "runs/short.sqlite", "--results", "short", "--device", "cpu", "--report")
    assert bigcn("reproduce", "sensitivity-k", "--seeds", "1", *elsewhere).code == 0
    assert {path.name for path in Path("short").iterdir()} == {"sensitivity-k.csv", "figures", "results.md"}
    assert "](figures/sensitivity-k.svg)" in Path("short/results.md").read_text()
    assert {path: path.read_bytes() for path in before} == before


def test_rows_of_another_version_are_not_lost_without_a_word(bigcn):
    fill(Path("runs/reproduce.sqlite"), "cpu")
    bigcn("reproduce", "all", "--report")
    table = Path("results/sensitivity-k.csv")
    table.write_text(table.read_text().replace("k=5,fixed", "k=7,fixed"))
    Path("runs/reproduce.sqlite").unlink()
    outcome = bigcn("reproduce", "all", "--report")
    assert "4 rows of older tables had no place" in " ".join(outcome.err.split())
