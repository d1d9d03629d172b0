"""Tables as a record: what they hold of runs whose store is gone."""

import json
import re
from dataclasses import replace

import pytest
from scipy import stats

from bigcn.experiments.cells import Measured, difference
from bigcn.experiments.findings import OURS, PUBLISHED, Findings, Rival, series_of
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.recorded import CANDIDATE_COLUMNS, Record, read_record
from bigcn.experiments.records import RunResult
from bigcn.experiments.setting import Setting
from bigcn.report.reproduction import write_reproduction

COSTS = '[{"first": "", "last": "", "hosts": [], "versions": [], "experiments": {}, "all": {"runs": 5}}]'


def test_tables_say_all_that_the_store_did(folder, tmp_path, empty, planned):
    work = empty(read_record(folder))
    rows, expected = work.rows(), planned.rows()
    assert len(rows) == len(expected) > 300
    for row, other in zip(rows, expected, strict=True):
        assert row.keys() == other.keys()
        for column, value in row.items():
            assert value == (pytest.approx(other[column], abs=1e-6) if isinstance(value, float) else other[column])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.suffix for path in before} == {".csv", ".json", ".svg", ".md"}
    write_reproduction(work, folder, tmp_path / "page.md")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_is_reported_has_run_with_all_seeds(folder, planned, change):
    change(folder / "candidates.csv", lambda row: row | {"final": "", "final_ran": ""})
    record, work, series = read_record(folder), planned, series_of("link-table", "cora")
    gcn = next(c for c in EXPERIMENTS["link-table"].contenders if (c.name, c.tuning) == ("gcn", "tuned"))
    for candidate in gcn.for_links:
        expected = work.known.validation(series, None, candidate, final=True)
        found = record.validation(series, None, candidate, final=True)
        assert found == (expected if candidate is work.choice(series, gcn) else None)


def test_a_run_that_diverged_has_nothing_for_validation_either():
    ran = RunResult(metrics={"accuracy": 0.5, "val_accuracy": 0.8}, seconds=1.0, started="2026-03-01T12:00:00Z")
    failed = replace(ran, metrics={}, status="failed", error="the loss became NaN")
    assert Measured.of("accuracy", SEEDS[:2], [ran, failed]).means["val_accuracy"] == 0.4


def test_what_is_run_takes_the_place_of_what_was_recorded(folder, empty):
    work = empty(read_record(folder), names=("sensitivity-k",))
    first, *others = work.cells()
    for seed in SEEDS:
        result = RunResult(metrics={"accuracy": 0.25}, seconds=1.0, started="2026-03-01T12:00:00Z")
        work.known.runs[work.known.spec(first.series, first.value, first.candidate, seed)[1]] = result
    again, *rest = work.cells()
    assert (again.mean, again.std) == (25.0, 0.0)
    assert rest == others


def test_runs_that_the_record_alone_has_are_counted(folder, empty, planned):
    work, used = empty(read_record(folder)), planned.used()
    assert work.recorded_runs() == {"2026-03-01": len(used)}
    again = dict(list(used.items())[: len(used) // 3])
    work.known.runs.update(again)
    assert work.recorded_runs() == {"2026-03-01": len(used) - len(again)}


def test_who_is_no_finalist_any_more_keeps_its_score_and_counts_no_longer(folder, tmp_path, empty, change):
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


def test_a_choice_that_lacks_a_candidate_keeps_the_finals_that_are_there(folder, empty, change):
    whole = empty(read_record(folder)).candidates()
    gone = next(row for row in whole if row["model"] == "gat" and row["final"] is None)
    change(folder / "candidates.csv", lambda row: None if _place_of(row) == _place_of(gone) else row)
    left = empty(read_record(folder)).candidates()
    assert [row for row in whole if _place_of(row) != _place_of(gone)] == left


def test_a_row_of_another_choice_stands_until_the_new_one_has_run(folder, empty, made_up, change):
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


def test_equals_on_validation_are_equals_in_the_table(folder, empty):
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


def test_without_the_table_of_candidates_rows_say_what_was_chosen(folder, empty, planned, change):
    (folder / "candidates.csv").unlink()
    work = empty(read_record(folder))
    assert [cell.candidate for cell in work.cells()] == [cell.candidate for cell in planned.cells()]
    change(folder / "link-table.csv", lambda row: row | {"chosen": "gcn of old"} if row["model"] == "gcn" else row)
    left = {(c.contender.name, c.contender.tuning) for c in empty(read_record(folder)).cells()}
    assert ("gcn", "tuned") in left, "under noise it stands"
    assert (
        Findings(empty(read_record(folder))).cell("link-table", series_of("link-table", "cora"), Rival("gcn", "tuned"))
        is None
    )


@pytest.mark.parametrize("setting", [Setting("cpu", SEEDS[:3]), Setting("cpu", SEEDS, 2)])
def test_short_runs_leave_records_alone(folder, tmp_path, setting, empty, made_up):
    work = empty(read_record(folder), setting)
    assert work.record == Record()
    assert work.rows() == []
    # And give none.
    for spec in (short := empty(setting=setting, names=("sensitivity-k",))).reporting():
        short.known.runs[spec.key] = made_up(spec)
    write_reproduction(short, tmp_path / "short", None)
    assert (tmp_path / "short" / "sensitivity-k.csv").exists()
    assert read_record(tmp_path / "short").cells == {}


def test_without_seeds_intervals_are_those_of_independent_runs(folder, tmp_path, empty, planned, change, forget_seeds):
    paired, series = Findings(planned), series_of("noise-rate", "pubmed")
    for name in (experiment.name for experiment in planned.experiments):
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
    assert len(work.lacking().reporting()) == len(planned.reporting())
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
        ("noise-rate.csv", "", "noise-rate.csv cannot be read as results: it is empty"),
        (
            "candidates.csv",
            ",".join(CANDIDATE_COLUMNS) + "\ngat,cora,link,clean,,p,gcn,0.5,2026-11",
            "candidates.csv cannot be read as results: its last line does not end; was the file cut off?",
        ),
        *(
            ("candidates.csv", ",".join(CANDIDATE_COLUMNS) + f"\n{line}\n", f"a day must be like 2026-11-18 (got {day}")
            for line, day in (
                ("gat,cora,link,clean,,p,gcn,0.5,2026-11,,", "'2026-11'"),
                ("gat,cora,link,clean,,p,gcn,0.5,,0.5,yesterday", "'yesterday'"),
                ("gat,cora,link,clean,,p,gcn,0.5,20261118,,", "'20261118'"),
            )
        ),
        *(
            ("costs.json", COSTS.replace(before, after), f"costs.json cannot be read as results: {sentence}")
            for before, after, sentence in (
                ('{"runs": 5}', '{"runs": 5, "gpu": "many"}', "what a store took must be numbers"),
                ('{"runs": 5}', '{"runs": 5, "gpu": NaN}', "what a store took must be numbers"),
                ('{"runs": 5}', '{"runs": 5, "gpu": -1}', "what a store took must be numbers"),
                ('{"runs": 5}', "{}", "what a store took must have a number of runs"),
                ('{"runs": 5}', '{"runs": 0}', "what a store took must have a number of runs"),
                (
                    '"experiments": {}',
                    '"experiments": {"depth": {"gpu": 1}}',
                    "what a store took must have a number of",
                ),
                ('"hosts": []', '"hosts": [{}]', "machines and versions must be texts"),
                ('"hosts"', '"standing": 5, "hosts"', "what stands of a store must be numbers by experiment"),
            )
        ),
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
def test_scores_are_fractions(folder, text, name, column, change):
    change(folder / f"{name}.csv", lambda row: row | {column: text})
    with pytest.raises(ValueError, match=rf"{name}\.csv cannot be read as results"):
        read_record(folder)


def test_costs_are_read(tmp_path):
    (tmp_path / "costs.json").write_text(COSTS)
    assert read_record(tmp_path).costs == json.loads(COSTS)


def test_no_folder_is_no_record(tmp_path):
    assert read_record(tmp_path / "none") == Record()
