"""Tables as a record: what they hold of runs whose store is gone."""

import csv
import functools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bigcn.experiments.cells import Measured, difference
from bigcn.experiments.findings import OURS, PUBLISHED, Findings, Rival, series_of
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.recorded import CANDIDATE_COLUMNS, Record, read_record
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.experiments.specs import METRICS
from bigcn.report.reproduction import write_reproduction

NAMES = ("link-table", "noise-rate", "sensitivity-k")
SETTING = Setting("cpu")
COSTS = '[{"first": "", "last": "", "hosts": [], "versions": [], "experiments": {}, "all": {"runs": 5}}]'


class Nothing:
    """A store without runs."""

    def rows(self, **_):
        return []


def made_up(spec: RunSpec) -> RunResult:
    generator = np.random.default_rng([spec.seed, *map(ord, spec.model + spec.dataset), int(100 * (spec.value or 0))])
    score, val = (float(number) for number in generator.uniform(0.3, 0.9, 2))
    metric = "accuracy" if spec.task == "node" else "roc_auc"
    few = {"accuracy_low_degree": score / 2, "accuracy_isolated": score / 3} if spec.task == "node" else {}
    options = {"versions": {"torch": "2"}, "host": {"gpu": "Some GPU"}, "started": "2026-03-01T12:00:00Z"}
    return RunResult(metrics={metric: score, f"val_{metric}": val, **few}, seconds=2.0, epochs=3, **options)


def empty(record: Record | None = None, setting: Setting = SETTING, names: tuple[str, ...] = NAMES) -> Reproduction:
    return Reproduction([EXPERIMENTS[name] for name in names], Nothing(), setting, record)  # type: ignore[arg-type]


@functools.cache
def planned() -> Reproduction:
    """Some experiments carried out with made-up results, once."""
    work = empty()
    for stage in ("choosing", "choosing", "reporting"):
        for spec in getattr(work, stage)():
            work.known.runs.setdefault(spec.key, made_up(spec))
    return work


@pytest.fixture
def folder(tmp_path) -> Path:
    write_reproduction(planned(), tmp_path / "results", tmp_path / "page.md")
    return tmp_path / "results"


def change(path: Path, how) -> None:
    """Rewrites the rows of a table; one that becomes nothing is left out."""
    with path.open(newline="") as file:
        rows = [changed for row in csv.DictReader(file) if (changed := how(row)) is not None]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def forget_seeds(row: dict[str, str]) -> dict[str, str]:
    return {name: "" if name.endswith("scores") else text for name, text in row.items()}


def test_tables_say_all_that_the_store_did(folder, tmp_path):
    work = empty(read_record(folder))
    rows, expected = work.rows(), planned().rows()
    assert len(rows) == len(expected) > 300
    for row, other in zip(rows, expected, strict=True):
        assert row.keys() == other.keys()
        for column, value in row.items():
            assert value == (pytest.approx(other[column], abs=1e-6) if isinstance(value, float) else other[column])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.suffix for path in before} == {".csv", ".json", ".svg", ".md"}
    write_reproduction(work, folder, tmp_path / "page.md")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_nothing_of_a_full_record_is_lacking(folder):
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


def test_what_ran_before_a_day_can_be_lacking(folder):
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


def test_what_was_lacking_counts_once_it_has_run(folder):
    (folder / "candidates.csv").unlink()
    change(folder / "sensitivity-k.csv", lambda row: row | {"seeds": "9"})
    change(folder / "noise-rate.csv", lambda row: forget_seeds(row) if row["model"] == "mlp" else row)
    lacking = empty(read_record(folder)).lacking()
    ran = {spec.key: made_up(spec) for spec in lacking.reporting()}
    assert len(ran) == 200 + 5 * 5 * len(SEEDS)
    lacking.known.runs.update(ran)
    assert lacking.missing() == (0, 0)
    work = lacking.about([EXPERIMENTS[name] for name in NAMES])
    assert work.used().keys() == ran.keys()
    assert all(cell.scores() for cell in work.cells())


@pytest.mark.parametrize("wins", [False, True])
def test_candidates_that_came_later_are_lacking_and_chosen_if_they_win(folder, tmp_path, wins):
    experiment = EXPERIMENTS["noise-rate"]
    (gcn,) = (contender for contender in experiment.contenders if contender.name == "gcn")
    before = planned().choice(experiment.series[0], gcn)
    later = gcn.candidates[-1]  # all have the same scores, so that it is no finalist
    gone, complete = {"dataset": "cora", "task": "node", "candidate": later.describe()}, read_record(folder)
    change(folder / "candidates.csv", lambda row: None if gone.items() <= row.items() else row)
    work = empty(read_record(folder))
    assert len(complete.validated) - len(work.record.validated) == 1
    assert work.choice(experiment.series[0], gcn) is None
    # What stands was chosen without it, and the page says so.
    assert work.rows() == empty(read_record(folder)).rows()
    assert len(work.rows()) == len(planned().rows())
    write_reproduction(work, folder, tmp_path / "page.md")
    missing = (tmp_path / "page.md").read_text().partition("## What is missing")[2].partition("\n## ")[0]
    assert "- GCN: some of the runs that validation chooses by today; what stands" in missing
    assert "was chosen without them. Cora: noise rate.\n" in missing

    lacking = work.lacking()
    specs = lacking.choosing()
    assert [(spec.dataset, spec.case, spec.seed) for spec in specs] == [
        ("cora", "noise-level", seed) for seed in SETTING.choice_seeds
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
    for spec in lacking.reporting():
        lacking.known.runs[spec.key] = made_up(spec)
    assert anew.chosen_before() == []


def test_what_is_reported_has_run_with_all_seeds(folder):
    change(folder / "candidates.csv", lambda row: row | {"final": "", "final_ran": ""})
    record, work, series = read_record(folder), planned(), series_of("link-table", "cora")
    gcn = next(c for c in EXPERIMENTS["link-table"].contenders if (c.name, c.tuning) == ("gcn", "tuned"))
    for candidate in gcn.for_links:
        expected = work.known.validation(series, None, candidate, final=True)
        found = record.validation(series, None, candidate, final=True)
        assert found == (expected if candidate is work.choice(series, gcn) else None)


def test_a_run_that_diverged_has_nothing_for_validation_either():
    ran = RunResult(metrics={"accuracy": 0.5, "val_accuracy": 0.8}, seconds=1.0, started="2026-03-01T12:00:00Z")
    failed = replace(ran, metrics={}, status="failed", error="the loss became NaN")
    assert Measured.of("accuracy", SEEDS[:2], [ran, failed]).means["val_accuracy"] == 0.4


def test_a_table_that_knows_the_first_seeds_alone_lacks_the_others(folder, tmp_path):
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


def test_what_may_not_be_chosen_is_not_run_beside_the_candidates(folder):
    change(folder / "noise-rate.csv", lambda row: forget_seeds(row) if row["model"] == "gat" else row)
    text = (folder / "candidates.csv").read_text().splitlines(keepends=True)
    missing = next(line for line in text if line.startswith("gat,cora,node,noise-level"))
    (folder / "candidates.csv").write_text("".join(line for line in text if line != missing))
    lacking = empty(read_record(folder)).lacking()
    assert len(lacking.choosing()) == 3
    # On four graphs the choice is known; on Cora it waits for the candidate that lacks.
    beside = lacking._reporting(lacking._decided).values()
    assert {spec.dataset for spec in beside} == {"citeseer", "pubmed", "computers", "photo"}


def test_one_amount_alone_can_be_lacking(folder):
    (folder / "candidates.csv").unlink()
    gone = {"model": "gat", "dataset": "photo", "value": "0.6"}
    change(folder / "noise-rate.csv", lambda row: row | {"seeds": "9"} if gone.items() <= row.items() else row)
    lacking = empty(read_record(folder)).lacking()
    # What was chosen stands beside the other amounts.
    assert lacking.choosing() == []
    assert {(spec.dataset, spec.value, spec.seed) for spec in lacking.reporting()} == {("photo", 0.6, s) for s in SEEDS}


def test_what_is_run_takes_the_place_of_what_was_recorded(folder):
    work = empty(read_record(folder), names=("sensitivity-k",))
    first, *others = work.cells()
    for seed in SEEDS:
        result = RunResult(metrics={"accuracy": 0.25}, seconds=1.0, started="2026-03-01T12:00:00Z")
        work.known.runs[work.known.spec(first.series, first.value, first.candidate, seed)[1]] = result
    again, *rest = work.cells()
    assert (again.mean, again.std) == (25.0, 0.0)
    assert rest == others


def test_runs_that_the_record_alone_has_are_counted(folder):
    work, used = empty(read_record(folder)), planned().used()
    assert work.recorded_runs() == {"2026-03-01": len(used)}
    again = dict(list(used.items())[: len(used) // 3])
    work.known.runs.update(again)
    assert work.recorded_runs() == {"2026-03-01": len(used) - len(again)}


def test_who_is_no_finalist_any_more_keeps_its_score_and_counts_no_longer(folder, tmp_path):
    work = empty(read_record(folder))
    counted = work.recorded_runs()
    change(folder / "candidates.csv", raise_the_last_of_gat)
    ousted = empty(read_record(folder))
    scores = {_place_of(row): row["final"] for row in ousted.candidates() if row["final"] is not None}
    assert scores == {_place_of(row): row["final"] for row in work.candidates() if row["final"] is not None}
    assert sum(ousted.recorded_runs().values()) < sum(counted.values())
    for _ in range(2):
        write_reproduction(ousted, folder, tmp_path / "page.md")
        again = empty(read_record(folder))
        assert again.recorded_runs() == ousted.recorded_runs()
        assert {_place_of(row): row["final"] for row in again.candidates() if row["final"] is not None} == scores


def raise_the_last_of_gat(row: dict[str, str]) -> dict[str, str]:
    """One that was no finalist is far ahead with the first seeds."""
    ours = row["model"] == "gat" and row["dataset"] == "cora" and row["task"] == "link" and not row["final"]
    return row | {"validation": "0.95"} if ours else row


def _place_of(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("model", "dataset", "task", "case", "protocol", "candidate"))


def test_a_choice_that_lacks_a_candidate_keeps_the_finals_that_are_there(folder):
    whole = empty(read_record(folder)).candidates()
    gone = next(row for row in whole if row["model"] == "gat" and row["final"] is None)
    change(folder / "candidates.csv", lambda row: None if _place_of(row) == _place_of(gone) else row)
    left = empty(read_record(folder)).candidates()
    assert [row for row in whole if _place_of(row) != _place_of(gone)] == left


def test_further_seeds_count_where_the_first_are_in_a_table(folder):
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
    last = min((row for row in work.candidates() if row["model"] == "gat"), key=lambda row: float(row["validation"]))
    change(folder / "candidates.csv", lambda row: None if _place_of(row) == _place_of(last) else row)
    without = empty(read_record(folder))
    without.known.runs |= {spec.key: made_up(spec) for spec in finals}
    assert {spec.key for spec in finals} <= without.used().keys()


def test_what_is_missing_does_not_hang_on_the_order_of_experiments(folder):
    (folder / "candidates.csv").unlink()
    change(folder / "link-table.csv", lambda row: None if row["model"] == "gat" else row)
    few = {"model": "gat", "value": "0.2"}
    change(folder / "noise-rate.csv", lambda row: forget_seeds(row) if few.items() <= row.items() else row)
    names = ("noise-level", "noise-rate")
    there, back = (empty(read_record(folder), names=order).lacking().missing() for order in (names, names[::-1]))
    assert there == back
    assert there[0] > 0


def test_tables_alone_choose_nothing_where_everything_is_run(folder):
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
    assert work.missing()[1] == planned().missing()[1]


def contests(work: Reproduction) -> set[tuple[object, ...]]:
    """Where validation chooses, once each."""
    return {
        (series.decided_at, contender.name)
        for _, series, contender in work._contests()
        if len(contender.among(series.task)) > 1
    }


def test_the_first_seeds_of_what_is_reported_may_be_too_old(folder):
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


def test_a_row_of_another_choice_stands_until_the_new_one_has_run(folder):
    ours = next(c for c in EXPERIMENTS["link-table"].contenders if (c.name, c.tuning) == OURS)

    def prefer_the_last(row: dict[str, str]) -> dict[str, str]:
        last = row["candidate"] == ours.for_links[-1].describe() and row["dataset"] == "dblp"
        return row | ({"validation": "0.99", "final": "0.99", "final_ran": row["ran"]} if last else {})

    change(folder / "candidates.csv", prefer_the_last)  # which becomes a finalist so
    work = empty(read_record(folder))
    assert work.rows() == empty(read_record(folder)).rows()
    series = series_of("link-table", "dblp")
    before = Findings(work).cell("link-table", series, OURS)
    assert before is not None
    assert before.candidate is not ours.for_links[-1]
    lacking = work.lacking()
    assert {(spec.dataset, spec.seed) for spec in lacking.reporting()} == {("dblp", seed) for seed in SEEDS}
    ran = lacking.reporting()
    for spec in ran:
        work.known.runs[spec.key] = replace(made_up(spec), metrics={"roc_auc": 0.5, "val_roc_auc": 0.99})
    after = Findings(work).cell("link-table", series, OURS)
    assert after is not None
    assert after.candidate is ours.for_links[-1]
    assert work.used().keys() == {spec.key for spec in ran}


def test_equals_on_validation_are_equals_in_the_table(folder):
    """The mean of three numbers depends on their order in the last digit, and six digits are written."""
    ours = next(c for c in EXPERIMENTS["link-table"].contenders if (c.name, c.tuning) == OURS)
    series, work = series_of("link-table", "cora"), empty()
    for number, candidate in enumerate(ours.for_links):
        scores = (0.1, 0.2, 0.3) if number == 0 else (0.3, 0.2, 0.1) if number == 1 else (0.0, 0.0, 0.0)
        for seed, score in zip(SEEDS, (*scores * 3, scores[1]), strict=True):
            found = RunResult(metrics={"val_roc_auc": score}, seconds=1.0, started="2026-03-01T12:00:00Z")
            work.known.runs[work.known.spec(series, None, candidate, seed)[1]] = found
    assert work.choice(series, ours) is ours.for_links[0]
    scores = (work.known.validation(series, None, candidate) for candidate in ours.for_links[:2])
    assert [score.mean for score in scores if score] == [0.2, 0.2]


def test_without_the_table_of_candidates_rows_say_what_was_chosen(folder):
    (folder / "candidates.csv").unlink()
    work = empty(read_record(folder))
    assert [cell.candidate for cell in work.cells()] == [cell.candidate for cell in planned().cells()]
    change(folder / "link-table.csv", lambda row: row | {"chosen": "gcn of old"} if row["model"] == "gcn" else row)
    left = {(c.contender.name, c.contender.tuning) for c in empty(read_record(folder)).cells()}
    assert ("gcn", "tuned") in left, "under noise it stands"
    assert (
        Findings(empty(read_record(folder))).cell("link-table", series_of("link-table", "cora"), Rival("gcn", "tuned"))
        is None
    )


@pytest.mark.parametrize("setting", [Setting("cpu", SEEDS[:3]), Setting("cpu", SEEDS, 2)])
def test_short_runs_leave_records_alone(folder, tmp_path, setting):
    work = empty(read_record(folder), setting)
    assert work.record == Record()
    assert work.rows() == []
    # And give none.
    for spec in (short := empty(setting=setting, names=("sensitivity-k",))).reporting():
        short.known.runs[spec.key] = made_up(spec)
    write_reproduction(short, tmp_path / "short", None)
    assert (tmp_path / "short" / "sensitivity-k.csv").exists()
    assert read_record(tmp_path / "short").cells == {}


def test_without_seeds_intervals_are_those_of_independent_runs(folder, tmp_path):
    paired, series = Findings(planned()), series_of("noise-rate", "pubmed")
    for name in NAMES:
        change(folder / f"{name}.csv", forget_seeds)
    work = empty(read_record(folder))
    findings = Findings(work)
    assert all(not cell.scores() for cell in work.cells())
    ours, theirs = (paired.cell("noise-rate", series, rival, 0.6) for rival in (OURS, PUBLISHED))
    assert ours is not None
    assert theirs is not None
    gap = difference(
        *([cell] for rival in (OURS, PUBLISHED) if (cell := findings.cell("noise-rate", series, rival, 0.6)))
    )
    assert gap is not None
    assert not gap.paired
    sides = [[100 * score for score in cell.scores().values()] for cell in (ours, theirs)]
    interval = stats.ttest_ind(*sides, equal_var=False).confidence_interval(0.95)
    assert (gap.low, gap.high) == pytest.approx((interval.low, interval.high), abs=1e-3)
    assert re.fullmatch(r"[+−±]\d+\.\d \[[+−±]\d+\.\d to [+−±]\d+\.\d\]", str(gap))
    assert difference([ours], [theirs], "accuracy_isolated") is not None
    missing = findings.above("noise-rate", series, OURS, PUBLISHED, "accuracy_isolated")
    assert missing is None, "nothing is known of the spread of other metrics"
    # They can be run again, without a new choice.
    assert work.lacking().choosing() == []
    assert len(work.lacking().reporting()) == len(planned().reporting())
    page = tmp_path / "page.md"
    assert "seed by seed" not in page.read_text()
    write_reproduction(work, folder, page)
    assert f"Of {len(work.rows()):,} numbers, {len(work.rows()):,} were measured before" in page.read_text()


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("noise-rate.csv", "model\n1\n", "noise-rate.csv is not a table of results: it has no column 'seeds'"),
        ("candidates.csv", "model\n1\n", "candidates.csv is not a table of results: it has no column 'task'"),
        (
            "candidates.csv",
            ",".join(CANDIDATE_COLUMNS) + "\ngat,cora,link\n",
            "candidates.csv cannot be read as results: row 1 has more or fewer fields than there are columns",
        ),
        (
            "candidates.csv",
            ",".join(CANDIDATE_COLUMNS) + "\n<<<<<<< HEAD\n",
            "candidates.csv cannot be read as results: row 1 has more or fewer",
        ),
        (
            "noise-rate.csv",
            "model,scorez\ngat,1\n",
            "noise-rate.csv cannot be read as results: it has a column 'scorez', which results do not have",
        ),
        ("costs.json", "{", "costs.json cannot be read as results: Expecting"),
        *(
            ("costs.json", text, "costs.json cannot be read as results: it must be a list")
            for text in ("[1, 2]", '{"a": 1}', '[{"first": "x"}]', "null", "7")
        ),
        ("costs.json", COSTS.replace("5", '"many"'), "costs.json cannot be read as results: what a store took must be"),
    ],
)
def test_other_files_are_refused(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read_record(tmp_path)


@pytest.mark.parametrize("text", ["99", "-3", "nan", "many"])
@pytest.mark.parametrize(
    ("name", "column"),
    [("noise-rate", "mean"), ("noise-rate", "validation"), ("candidates", "validation"), ("candidates", "final")],
)
def test_scores_are_fractions(folder, text, name, column):
    change(folder / f"{name}.csv", lambda row: row | {column: text})
    with pytest.raises(ValueError, match=rf"{name}\.csv cannot be read as results"):
        read_record(folder)


def test_no_folder_is_no_record(tmp_path):
    assert read_record(tmp_path / "none") == Record()
