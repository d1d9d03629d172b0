"""What neither a store nor tables have, and what is run of it."""

from dataclasses import replace

import pytest

from bigcn.experiments.findings import Findings, Rival, series_of
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.recorded import read_record
from bigcn.experiments.records import RunResult
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.specs import METRICS
from bigcn.report.reproduction import write_reproduction


def test_nothing_of_a_full_record_is_lacking(folder, empty, change):
    work = empty(read_record(folder))
    assert work.lacking().missing() == (0, 0)
    # Who does not ask for what is lacking runs all of it.
    assert work.missing()[0] == work.missing()[1] > 5_000
    change(folder / "noise-rate.csv", lambda row: row | {"seeds": "9" if row["model"] == "gat" else row["seeds"]})
    lacking = empty(read_record(folder)).lacking()
    assert {(e.name, e.series[0].graph, e.contenders[0].name) for e in lacking.experiments} == {
        ("noise-rate", graph, "gat") for graph in ("cora", "citeseer", "pubmed", "computers", "photo")
    }
    # The table of candidates still says what validation chose; without it, all have to run again.
    assert lacking.missing() == (5 * 5 * len(SEEDS), 5 * 5 * len(SEEDS))
    assert lacking.choosing() == []
    (folder / "candidates.csv").unlink()
    assert len(empty(read_record(folder)).lacking().choosing()) == 5 * 16 * 3


def test_what_ran_before_a_day_can_be_lacking(folder, empty, made_up, change):
    assert {cell.measured.ran for cell in empty(read_record(folder)).cells()} == {"2026-03-01"}
    assert empty(read_record(folder)).lacking("2026-03-01").missing() == (0, 0)
    whole = empty().missing()
    assert empty(read_record(folder)).lacking("2026-03-02").missing() == whole

    # Numbers without a day are older than any. A choice is made anew before anyone runs with what was chosen.
    change(folder / "noise-rate.csv", lambda row: row | {"ran": "" if row["model"] == "gat" else row["ran"]})
    change(folder / "candidates.csv", lambda row: row | {"ran": "" if row["model"] == "gat" else row["ran"]})
    lacking = empty(read_record(folder)).lacking("2026-01-01")
    assert {(e.name, e.contenders[0].name) for e in lacking.experiments} == {
        ("noise-rate", "gat"),
        ("link-table", "gat"),
    }
    specs = lacking.choosing()
    assert len(specs) == 5 * 16 * 3 + 4 * 12 * 3
    assert lacking.reporting() == []
    for spec in specs:
        lacking.known.runs[spec.key] = made_up(spec)
    # The mean over all seeds has the first ones of then.
    finals = [spec for spec in lacking.choosing() if spec.key not in lacking.known.runs]
    assert finals
    assert {spec.seed for spec in finals} == set(SEEDS[3:])
    for spec in finals:
        lacking.known.runs[spec.key] = made_up(spec)
    # Links were dated all along; the choice of nodes ran at another amount.
    assert {(spec.task, spec.model) for spec in lacking.reporting()} == {("node", "gat")}
    assert len(lacking.reporting()) == 5 * 5 * len(SEEDS)
    assert empty(read_record(folder)).lacking().missing() == (0, 0)


def test_what_was_lacking_counts_once_it_has_run(folder, empty, made_up, change, forget_seeds):
    (folder / "candidates.csv").unlink()
    change(folder / "sensitivity-k.csv", lambda row: row | {"seeds": "9"})
    change(folder / "noise-rate.csv", lambda row: forget_seeds(row) if row["model"] == "mlp" else row)
    lacking = empty(read_record(folder)).lacking()
    ran = {spec.key: made_up(spec) for spec in lacking.reporting()}
    assert len(ran) == 200 + 5 * 5 * len(SEEDS)
    lacking.known.runs.update(ran)
    assert lacking.missing() == (0, 0)
    work = lacking.about(empty().experiments)
    assert work.used().keys() == ran.keys()
    assert all(cell.scores() for cell in work.cells())


@pytest.mark.parametrize("wins", [False, True])
def test_candidates_that_came_later_are_lacking_and_chosen_if_they_win(
    folder, tmp_path, wins, empty, planned, made_up, change
):
    experiment = EXPERIMENTS["noise-rate"]
    (gcn,) = (contender for contender in experiment.contenders if contender.name == "gcn")
    before = planned.choice(experiment.series[0], gcn)
    later = gcn.candidates[-1]  # all have the same scores, so that it is no finalist
    gone, complete = {"dataset": "cora", "task": "node", "candidate": later.describe()}, read_record(folder)
    change(folder / "candidates.csv", lambda row: None if gone.items() <= row.items() else row)
    work = empty(read_record(folder))
    assert len(complete.validated) - len(work.record.validated) == 1
    assert work.choice(experiment.series[0], gcn) is None
    # What stands was chosen without it, and the page says so.
    assert work.rows() == empty(read_record(folder)).rows()
    assert len(work.rows()) == len(planned.rows())
    write_reproduction(work, folder, tmp_path / "page.md")
    missing = (tmp_path / "page.md").read_text().partition("## What is missing")[2].partition("\n## ")[0]
    assert "- GCN: some of the runs that validation chooses by today; what stands" in missing
    assert "was chosen without them. Cora: noise rate.\n" in missing

    lacking = work.lacking()
    specs = lacking.choosing()
    assert [(spec.dataset, spec.case, spec.seed) for spec in specs] == [
        ("cora", "noise-level", seed) for seed in SEEDS[:3]
    ]
    assert lacking.missing()[0] == 3
    assert not lacking.is_decided()
    best = work.record.validation(*experiment.series[0].decided_at, before)
    assert best is not None
    # It runs with the other seeds if it comes near the best.
    worth = best.mean + 0.001 if wins else 0.0
    for spec in specs:
        lacking.known.runs[spec.key] = replace(made_up(spec), metrics={"accuracy": 0.5, "val_accuracy": worth})
    assert lacking.choice(experiment.series[0], gcn) is (None if wins else before)
    finals = [spec for spec in lacking.choosing() if spec.key not in lacking.known.runs]
    assert [spec.seed for spec in finals] == list(SEEDS[3:] if wins else ())
    for spec in finals:
        lacking.known.runs[spec.key] = replace(made_up(spec), metrics={"accuracy": 0.5, "val_accuracy": 1.0})
    assert lacking.choice(experiment.series[0], gcn) is (later if wins else before)
    assert len(lacking.reporting()) == (len(experiment.series[0].values) * len(SEEDS) if wins else 0)
    # What has won but not run yet does not stand either.
    anew = lacking.about(work.experiments)
    assert [(series.graph, contender.name) for series, contender in anew.chosen_before()] == [("cora", "gcn")] * wins
    write_reproduction(anew, tmp_path / "anew", tmp_path / "page.md")
    said = "- GCN: some of the runs of what validation chooses today; what had been chosen before stands"
    assert (said in (tmp_path / "page.md").read_text()) is wins
    for spec in lacking.reporting():
        lacking.known.runs[spec.key] = made_up(spec)
    assert anew.chosen_before() == []


def test_a_table_that_knows_the_first_seeds_alone_lacks_the_others(folder, tmp_path, empty, made_up, change):
    """As all tables were before finalists ran with all seeds."""

    def forget_finals(row: dict[str, str]) -> dict[str, str]:
        return {name: text for name, text in row.items() if not name.startswith("final")}

    before = read_record(folder)
    change(folder / "candidates.csv", forget_finals)
    work = empty(read_record(folder))
    assert work.rows() == empty(before).rows()  # what stands is reported, and what it lacks is said
    write_reproduction(work, folder, tmp_path / "page.md")
    missing = (tmp_path / "page.md").read_text().partition("## What is missing")[2].partition("\n## ")[0]
    assert "some of the runs that validation chooses by today" in missing
    lacking = work.lacking()
    finals = lacking.choosing()
    assert {spec.seed for spec in finals} == set(SEEDS[3:])
    assert lacking.missing()[0] == len(finals)
    for spec in finals:
        lacking.known.runs[spec.key] = made_up(spec)
    assert lacking.about(work.experiments).chosen_before() == []
    assert lacking.missing() == (0, 0)
    assert lacking.is_decided()


def test_runs_that_may_change_the_choice_make_counts_inexact(folder, empty, made_up, change, forget_seeds):
    """The scores of what was chosen are not kept where it was chosen: its runs there take part in the choice again."""
    work = empty(read_record(folder))
    series = series_of("link-table", "cora")
    cell = Findings(work).cell("link-table", series, Rival("gat", "tuned"))
    assert cell is not None
    gat = {"model": "gat", "dataset": "cora", "tuning": "tuned"}
    change(folder / "link-table.csv", lambda row: forget_seeds(row) if gat.items() <= row.items() else row)
    lacking = empty(read_record(folder)).lacking()
    assert lacking.missing() == (len(SEEDS), len(SEEDS))
    assert not lacking.is_decided()
    for spec in lacking.reporting():
        lacking.known.runs[spec.key] = replace(made_up(spec), metrics={"roc_auc": 0.5, "val_roc_auc": 0.99})
    assert lacking.choice(series, cell.contender) is cell.candidate
    assert lacking.is_decided()


def test_what_was_chosen_from_nothing_that_is_known_is_said(folder, tmp_path, empty, change):
    assert empty(read_record(folder)).chosen_from_unknown() == []
    (folder / "candidates.csv").unlink()
    for table in ("link-table", "noise-rate"):
        change(folder / f"{table}.csv", lambda row: row | {"validation": ""})
    work = empty(read_record(folder))
    assert len(work.chosen_from_unknown()) == 9 * (4 + 5)
    write_reproduction(work, folder, tmp_path / "page.md")
    missing = (tmp_path / "page.md").read_text().partition("## What is missing")[2].partition("\n## ")[0]
    assert "- GAT: what validation chose from; what won stands in these places alone. Cora: clean of links" in missing


def test_what_may_not_be_chosen_is_not_run_beside_the_candidates(folder, empty, change, forget_seeds):
    change(folder / "noise-rate.csv", lambda row: forget_seeds(row) if row["model"] == "gat" else row)
    text = (folder / "candidates.csv").read_text().splitlines(keepends=True)
    missing = next(line for line in text if line.startswith("gat,cora,node,noise-level"))
    (folder / "candidates.csv").write_text("".join(line for line in text if line != missing))
    lacking = empty(read_record(folder)).lacking()
    assert len(lacking.choosing()) == 3
    # On four graphs the choice is known; on Cora it waits for the candidate that lacks.
    beside = lacking._reporting(lacking._decided).values()
    assert {spec.dataset for spec in beside} == {"citeseer", "pubmed", "computers", "photo"}


def test_one_amount_alone_can_be_lacking(folder, empty, change):
    (folder / "candidates.csv").unlink()
    gone = {"model": "gat", "dataset": "photo", "value": "0.6"}
    change(folder / "noise-rate.csv", lambda row: row | {"seeds": "9"} if gone.items() <= row.items() else row)
    lacking = empty(read_record(folder)).lacking()
    # What was chosen stands beside the other amounts.
    assert lacking.choosing() == []
    assert {(spec.dataset, spec.value, spec.seed) for spec in lacking.reporting()} == {("photo", 0.6, s) for s in SEEDS}


def test_further_seeds_count_where_the_first_are_in_a_table(folder, empty, made_up, change):
    change(folder / "candidates.csv", lambda row: row | {"final": "", "final_ran": ""})
    (folder / "link-table.csv").unlink()
    (folder / "noise-rate.csv").unlink()
    work = empty(read_record(folder))
    lacking = work.lacking()
    finals = [spec for spec in lacking.choosing() if spec.seed not in SEEDS[:3]]
    assert finals
    work.known.runs |= {spec.key: made_up(spec) for spec in finals}
    assert {spec.key for spec in finals} <= work.used().keys()
    # They count where a candidate lacks as well.
    where = ("model", "dataset", "task", "candidate")
    last = min((row for row in work.candidates() if row["model"] == "gat"), key=lambda row: float(row["validation"]))
    change(folder / "candidates.csv", lambda row: None if all(row[name] == last[name] for name in where) else row)
    without = empty(read_record(folder))
    without.known.runs |= {spec.key: made_up(spec) for spec in finals}
    assert {spec.key for spec in finals} <= without.used().keys()


def test_what_is_missing_does_not_hang_on_the_order_of_experiments(folder, empty, change, forget_seeds):
    (folder / "candidates.csv").unlink()
    change(folder / "link-table.csv", lambda row: None if row["model"] == "gat" else row)
    few = {"model": "gat", "value": "0.2"}
    change(folder / "noise-rate.csv", lambda row: forget_seeds(row) if few.items() <= row.items() else row)
    names = ("noise-level", "noise-rate")
    there, back = (empty(read_record(folder), names=order).lacking().missing() for order in (names, names[::-1]))
    assert there == back
    assert there[0] > 0


def test_tables_alone_choose_nothing_where_everything_is_run(folder, empty, planned, made_up):
    """Which candidates run with all seeds is for the runs to say that are there then."""
    work = empty(read_record(folder))
    assert not work.is_decided()
    assert work.lacking().is_decided()
    tuned = {spec.key for spec in work.choosing()}
    assert {spec.seed for spec in work.choosing()} == set(SEEDS[:3])
    first = len({*tuned, *(spec.key for spec in work.reporting())})
    assert first + 7 * 4 * len(contests(work)) <= work.missing()[0]
    for spec in work.choosing():
        work.known.runs[spec.key] = made_up(spec)
    finals = [spec for spec in work.choosing() if spec.key not in tuned]
    assert {spec.seed for spec in finals} == set(SEEDS[3:])
    # Those of the tables must not choose before these.
    assert not work.is_decided()
    assert {spec.key for spec in work.reporting()} & tuned == set()
    left = work.missing()[0]
    for spec in finals:
        score = 0.5 * made_up(replace(spec, seed=spec.seed + 1)).metrics[f"val_{METRICS[spec.task]}"]
        work.known.runs[spec.key] = RunResult(
            metrics={f"val_{METRICS[spec.task]}": score}, seconds=1.0, started="2026-03-02T12:00:00Z"
        )
    assert work.is_decided()
    assert work.missing()[0] == left - len(finals)
    assert work.missing()[1] == planned.missing()[1]


def contests(work: Reproduction) -> set[tuple[object, ...]]:
    """Where validation chooses, once each."""
    return {
        (series.decided_at, contender.name)
        for _, series, contender in work._contests()
        if len(contender.among(series.task)) > 1
    }


def test_the_first_seeds_of_what_is_reported_may_be_too_old(folder, empty, made_up, change):
    """A finalist without a rival: its first seeds ran on one day, the others, and with them its row, on a later one."""
    series = series_of("link-table", "cora")
    cell = Findings(empty(read_record(folder))).cell("link-table", series, Rival("gat", "tuned"))
    assert cell is not None

    def far_ahead(row: dict[str, str]) -> dict[str, str]:
        ours = row["dataset"] == "cora" and row["task"] == "link" and row["candidate"] == cell.candidate.describe()
        return row | {"validation": "0.95", "ran": "2026-02-01", "final": "", "final_ran": ""} if ours else row

    change(folder / "candidates.csv", far_ahead)
    lacking = empty(read_record(folder)).lacking("2026-02-15")
    first = lacking.choosing()
    assert {spec.seed for spec in first} == set(SEEDS[:3])
    for spec in first:
        lacking.known.runs[spec.key] = replace(made_up(spec), metrics={"roc_auc": 0.5, "val_roc_auc": 0.95})
    assert lacking.choice(series, cell.contender) is cell.candidate
    left = [spec for spec in lacking.reporting() if spec.key not in lacking.known.runs]
    assert {(spec.model, spec.dataset, spec.case) for spec in left} == {("gat", "cora", "clean")}
    assert {spec.seed for spec in left} == set(SEEDS[3:])
