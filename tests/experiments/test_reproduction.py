from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bigcn.datasets import fingerprint
from bigcn.experiments.cells import COLUMNS, difference, signed
from bigcn.experiments.contenders import Candidate, Contender, fixed
from bigcn.experiments.execution import LocalExecutor
from bigcn.experiments.paper import EXPERIMENTS, FINALISTS, SEEDS, Experiment, Series
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting, make_spec
from bigcn.experiments.store import RunStore

CPU = Setting("cpu", SEEDS[:4])
LEVEL = Series("node", "cora", "noise-level", (0.1, 0.5, 0.9))
WIDTHS = (8, 16, 32, 64, 128, 256)
TUNED = Contender("gcn", "GCN", "tuned", tuple(Candidate("gcn", {"hidden_channels": width}, {}) for width in WIDTHS))
SMALL = Experiment("small", "A small one", (Series("node", "cora"), LEVEL), (TUNED, fixed("mlp")))
Score = Callable[[RunSpec], dict[str, float]]


class Memory:
    """What a store is to a reproduction."""

    def __init__(self, pairs: Iterable[tuple[RunSpec, RunResult]] = ()) -> None:
        self.pairs = list(pairs)

    def rows(self, *, history: bool = False) -> list[tuple[RunSpec, RunResult]]:
        return [(s, r) for s, r in self.pairs if history or r.status == "ok"]


def result(metrics: dict[str, float], **options: object) -> RunResult:
    values = {"seconds": 0.5, "started": "2026-03-01T12:00:00+00:00", "epochs": 7, "host": {}, "versions": {}} | options
    return RunResult(metrics=metrics, **values)  # type: ignore[arg-type]


def wobble(spec: RunSpec) -> float:
    return 0.001 * ((spec.seed * 7 + spec.settings["model"].get("hidden_channels", 3)) % 11)


def usual(spec: RunSpec) -> dict[str, float]:
    """Validation likes 16 hidden units best; test scores would say 8."""
    width = spec.settings["model"].get("hidden_channels", 16)
    val = {16: 0.7, 32: 0.699}.get(width, 0.698)
    return {"val_accuracy": val, "accuracy": 0.9 - 0.01 * width + wobble(spec), "accuracy_low_degree": 0.4}


def carried_out(experiments: list[Experiment], setting: Setting = CPU, score: Score = usual) -> Memory:
    memory = Memory()
    for stage in ("choosing", "choosing", "reporting"):
        work = Reproduction(experiments, memory, setting)  # type: ignore[arg-type]
        known = {spec.key for spec, _ in memory.pairs}
        memory.pairs += [(s, result(score(s))) for s in getattr(work, stage)() if s.key not in known]
    return memory


def reproduction(memory: Memory, experiments: list[Experiment] | None = None, setting: Setting = CPU) -> Reproduction:
    return Reproduction(experiments or [SMALL], memory, setting)  # type: ignore[arg-type]


def test_a_spec_says_what_is_run():
    spec = make_spec(CPU, LEVEL, 0.5, Candidate("bigcn:published", {}, {"weight_decay": 0.1}), 5)
    assert (spec.task, spec.dataset, spec.case, spec.value, spec.seed) == ("node", "cora", "noise-level", 0.5, 5)
    assert (spec.protocol, spec.model, spec.device) == ("authors", "bigcn:published", "cpu")
    assert spec.dataset_fingerprint == fingerprint("cora")
    assert (spec.settings["model"]["p"], spec.settings["model"]["node_strength"]) == (3.0, 1.8)
    training = spec.settings["training"]
    assert (training["weight_decay"], training["patience"], training["max_epochs"]) == (0.1, 100, 10_000)
    assert "negatives" not in spec.settings

    link = make_spec(CPU, Series("link", "dblp"), None, Candidate("gcn", {}, {"max_epochs": 2_000}), 5)
    assert (link.protocol, link.settings["negatives"], link.settings["training"]["max_epochs"]) == (
        "links-80-10-10",
        "fresh",
        100,
    )
    capped = make_spec(replace(CPU, max_epochs=2), LEVEL, 0.5, Candidate("gcn"), 5)
    assert capped.settings["training"]["max_epochs"] == 2
    other = make_spec(CPU, Series("node", "cora", protocol="random"), None, Candidate("gcn"), 5)
    assert other.protocol == "random"


def test_validation_chooses():
    work = reproduction(carried_out([SMALL]))
    assert work.choice(LEVEL, TUNED) == TUNED.candidates[1]
    assert {row["chosen"] for row in work.rows() if row["model"] == "gcn"} == {"gcn hidden_channels=16"}


def test_test_scores_choose_nothing():
    memory = carried_out([SMALL])
    before = reproduction(memory).rows()
    rng = np.random.default_rng(0)
    memory.pairs = [
        (s, replace(r, metrics={n: v if n.startswith("val_") else rng.random() for n, v in r.metrics.items()}))
        for s, r in memory.pairs
    ]
    after = reproduction(memory).rows()
    assert [row["chosen"] for row in after] == [row["chosen"] for row in before]
    assert [row["mean"] for row in after] != [row["mean"] for row in before]
    assert reproduction(memory).missing()[0] == 0


def test_choice_looks_at_the_middle_amount_alone():
    def spoilt(spec: RunSpec) -> dict[str, float]:
        decisive = spec.value in (None, 0.5)
        return usual(spec) if decisive else usual(spec) | {"val_accuracy": wobble(spec)}

    work = reproduction(carried_out([SMALL], score=spoilt))
    assert work.choice(LEVEL, TUNED) == TUNED.candidates[1]


def test_the_best_with_a_few_seeds_run_with_all():
    last = CPU.seeds[-1]

    def late(spec: RunSpec) -> dict[str, float]:
        """The first seeds like narrow models, a little; the last likes wide ones, a lot."""
        width = spec.settings["model"].get("hidden_channels", 3)
        return {"accuracy": 0.5, "val_accuracy": 0.01 * width if spec.seed == last else 0.6 - 0.0001 * width}

    memory = carried_out([SMALL], score=late)
    finals = {s.settings["model"]["hidden_channels"] for s, _ in memory.pairs if s.model == "gcn" and s.seed == last}
    assert finals == set(WIDTHS[:FINALISTS]), "no other has a chance to win with the last seed"
    work = reproduction(memory)
    assert work.choice(LEVEL, TUNED) == TUNED.candidates[FINALISTS - 1]
    rows = pd.DataFrame(work.candidates()).set_index(["case", "candidate"]).sort_index()
    assert rows.final.notna().sum() == 2 * FINALISTS
    for candidate in TUNED.candidates:
        runs = {s.seed: r.metrics["val_accuracy"] for s, r in memory.pairs if s.value == 0.5 and _made_by(s, candidate)}
        row = rows.loc["noise-level", candidate.describe()]
        assert row.validation == pytest.approx(np.mean([runs[seed] for seed in CPU.choice_seeds]), abs=1e-6)
        assert np.isnan(row.final) if last not in runs else row.final == pytest.approx(np.mean(list(runs.values())))


@pytest.mark.parametrize(("behind", "runs"), [(0.0101, False), (0.0099, True)])
def test_who_is_too_far_behind_does_not_run_with_all_seeds(behind, runs):
    def score(spec: RunSpec) -> dict[str, float]:
        """The second is near the best, the others are far away."""
        places = dict(zip(WIDTHS, (0.0, behind, *[0.2] * 4), strict=True))
        return {"accuracy": 0.5, "val_accuracy": 0.7 - places.get(spec.settings["model"].get("hidden_channels"), 0.0)}

    memory = carried_out([replace(SMALL, series=SMALL.series[:1])], score=score)
    finals = {
        s.settings["model"]["hidden_channels"] for s, _ in memory.pairs if s.model == "gcn" and s.seed == SEEDS[3]
    }
    assert finals == {WIDTHS[0], *[WIDTHS[1]] * runs}
    assert reproduction(memory).choice(SMALL.series[0], TUNED) == TUNED.candidates[0]


def test_one_run_of_a_finalist_that_lacks_leaves_the_choice_open():
    memory = carried_out([SMALL])
    gone = make_spec(CPU, LEVEL, 0.5, TUNED.candidates[2], CPU.seeds[-1])
    memory.pairs = [(s, r) for s, r in memory.pairs if s.key != gone.key]
    work = reproduction(memory)
    assert work.choice(LEVEL, TUNED) is None
    assert [spec.key for spec in work.choosing() if spec.key not in work.known.runs] == [gone.key]


def _made_by(spec: RunSpec, candidate: Candidate) -> bool:
    return spec.model == candidate.model and candidate.settings.items() <= spec.settings["model"].items()


def test_of_equals_the_first_is_taken():
    work = reproduction(carried_out([SMALL], score=lambda spec: usual(spec) | {"val_accuracy": 0.5}))
    assert work.choice(LEVEL, TUNED) == TUNED.candidates[0]


def scores(work: Reproduction, contender: Contender, value: float) -> Mapping[int, float] | None:
    """Returns the test scores of a contender under noise by seed."""
    found = [cell for cell in work.cells() if (cell.series, cell.contender, cell.value) == (LEVEL, contender, value)]
    return found[0].scores() if found else None


@pytest.mark.parametrize("value", [0.5, 0.9])
def test_what_has_not_run_is_not_reported(value):
    memory = carried_out([SMALL])
    gone = make_spec(CPU, LEVEL, value, TUNED.candidates[1], 10)
    memory.pairs = [(s, r) for s, r in memory.pairs if s.key != gone.key]
    work = reproduction(memory)
    values = {row["value"] for row in work.rows() if row["model"] == "gcn" and row["case"] == "noise-level"}
    # Without one of the runs that validation chooses from, nothing is known; without another, its amount is missing.
    assert values == (set() if value == 0.5 else {0.1, 0.5})
    assert scores(work, TUNED, value) is None
    assert {row["value"] for row in work.rows() if row["model"] == "mlp"} == {None, 0.1, 0.5, 0.9}


def test_rows_against_pandas():
    memory = carried_out([SMALL])
    rows = pd.DataFrame(reproduction(memory).rows())
    assert tuple(rows.columns) == COLUMNS
    frame = pd.DataFrame(
        {
            "model": s.model,
            "width": s.settings["model"].get("hidden_channels"),
            "value": -1 if s.value is None else s.value,
            "accuracy": r.metrics["accuracy"],
            "seconds": r.seconds,
        }
        for s, r in memory.pairs
    )
    frame = frame[(frame.model == "mlp") | (frame.width == 16)]
    expected = frame.groupby(["model", "value"]).agg(
        mean=("accuracy", "mean"), std=("accuracy", "std"), seeds=("accuracy", "size"), seconds=("seconds", "sum")
    )
    found = rows.assign(value=rows.value.fillna(-1)).set_index(["model", "value"])[list(expected.columns)]
    pd.testing.assert_frame_equal(found.sort_index(), expected.round(6).sort_index(), check_dtype=False)
    assert set(rows.low_degree.round(6)) == {0.4}
    assert rows.isolated.isna().all()
    assert set(rows.epochs) == {7}


def test_scores_are_by_seed():
    memory = carried_out([SMALL])
    expected = {s.seed: r.metrics["accuracy"] for s, r in memory.pairs if s.model == "mlp" and s.value == 0.9}
    assert scores(reproduction(memory), SMALL.contenders[1], 0.9) == expected


def test_published_numbers_belong_to_the_authors_split():
    graphs = ("cora", "citeseer", "photo")
    series = tuple(Series("node", graph, protocol=p) for graph in graphs for p in ("", "random", "public"))[:-1]
    experiment = Experiment("splits", "Splits", series, (fixed("gcn"),))
    rows = reproduction(carried_out([experiment]), [experiment]).rows()
    found = {(row["dataset"], row["protocol"]): row["published"] for row in rows}
    assert found == {
        ("cora", "authors"): 0.818,
        ("cora", "random"): None,
        ("cora", "public"): None,
        ("citeseer", "authors"): 0.71,
        ("citeseer", "random"): None,
        ("citeseer", "public"): 0.71,
        ("photo", "authors"): 0.908,
        ("photo", "random"): None,
    }


def test_a_run_that_diverged_counts_as_nothing_and_is_not_repeated():
    memory = carried_out([SMALL])
    lost = make_spec(CPU, LEVEL, 0.9, SMALL.contenders[1].candidates[0], 5)
    failed = result({}, status="failed", error="the loss became NaN")
    memory.pairs = [(s, failed if s.key == lost.key else r) for s, r in memory.pairs]
    work = reproduction(memory)
    assert work.missing()[0] == 0
    found = scores(work, SMALL.contenders[1], 0.9)
    assert found is not None
    assert found[5] == 0.0 < min(score for seed, score in found.items() if seed > 5)
    # Repeated with success, it is as if nothing had happened, whichever comes first.
    for again in ([(lost, result({"accuracy": 0.5}))], []):
        memory.pairs = [*again, *memory.pairs, (lost, result({"accuracy": 0.5}))]
        found = scores(reproduction(memory), SMALL.contenders[1], 0.9)
        assert found is not None
        assert found[5] == 0.5


def test_missing_counts_what_is_to_come():
    memory = Memory()
    # Two series: six candidates with three seeds each, four of them with the fourth; then four seeds on the two amounts
    # where nothing is chosen; and the MLP.
    total = 2 * (18 + 4) + 8 + 4 + 12
    assert reproduction(memory).missing() == (total, total)
    work = reproduction(memory)
    memory.pairs = [(s, result(usual(s))) for s in work.choosing()]
    assert reproduction(memory).missing() == (total - 36, total)
    memory.pairs += [(s, result(usual(s))) for s in reproduction(memory).choosing()[-4:]]
    assert reproduction(memory).missing() == (total - 40, total)
    assert reproduction(carried_out([SMALL])).missing() == (0, total)
    other = Reproduction([SMALL], carried_out([SMALL]), replace(CPU, device="cuda"))  # type: ignore[arg-type]
    assert other.missing() == (0, total), "what has run elsewhere counts"
    assert other.estimate() is None, "but says nothing of how long it takes here"
    assert reproduction(Memory()).estimate() is None
    assert reproduction(memory).estimate() == pytest.approx((total - 40) * 0.5)
    assert reproduction(memory).estimate(at_once=4) == pytest.approx((total - 40) * 0.5 / 4)


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_of_this_device_goes_before_one_of_another(order):
    spec = reproduction(Memory()).choosing()[0]
    here, there = (spec, result({"accuracy": 0.3})), (replace(spec, device="cuda"), result({"accuracy": 0.9}))
    memory = Memory()
    memory.pairs = [here, there][::order]
    assert [r.metrics["accuracy"] for r in reproduction(memory).used().values()] == [0.3]
    memory.pairs = [there]
    assert [r.metrics["accuracy"] for r in reproduction(memory).used().values()] == [0.9]


def test_used_holds_every_run_once():
    memory = carried_out([SMALL])
    used = reproduction(memory, [SMALL, SMALL]).used()
    assert used.keys() == {spec.key for spec, _ in memory.pairs}
    half = reproduction(memory, [replace(SMALL, series=SMALL.series[:1])]).used()
    assert len(half) == 18 + 4 + 4


def test_about_shares_what_is_known():
    work = reproduction(carried_out([SMALL]))
    part = work.about([replace(SMALL, series=(LEVEL,))])
    assert part.rows() == [row for row in work.rows() if row["case"] == "noise-level"]


class Counting:
    """Makes up results; stops after some units."""

    def __init__(self, units: int | None = None) -> None:
        self.left, self.done = units, 0

    def run(self, units):  # type: ignore[no-untyped-def]
        for unit in units:
            if self.left is not None and self.done == self.left:
                return
            self.done += 1
            yield unit, [result(usual(spec)) for spec in unit.specs]


def test_goes_on_where_it_stopped(tmp_path):
    told: list[str] = []
    with RunStore(tmp_path / "runs.sqlite") as store:
        Reproduction([SMALL], store, CPU).run(executor=Counting(5))
    with RunStore(tmp_path / "runs.sqlite") as store:
        work = Reproduction([SMALL], store, CPU)
        missing, total = work.missing()
        # The first stage was cut short, so the second had the MLP alone to report.
        assert 0 < missing < total
        rest = Counting()
        work.run(on_run=lambda spec, found, stored: told.append(spec.key), executor=rest)
        assert rest.done == len(told) == missing
        assert work.missing() == (0, total)
        again = Counting()
        Reproduction([SMALL], store, CPU).run(executor=again)
        assert again.done == 0
        assert work.rows() == reproduction(carried_out([SMALL])).rows()


def test_begins_nothing_when_time_is_up(tmp_path):
    with RunStore(tmp_path / "runs.sqlite") as store:
        work = Reproduction([EXPERIMENTS["node-table"]], store, CPU)
        before = work.missing()
        work.run(executor=LocalExecutor(-1))
        assert work.missing() == before


def test_differences_are_paired():
    def shifted(spec: RunSpec) -> dict[str, float]:
        jump = 0.1 * (spec.seed % 3)  # seeds differ a lot, models do not
        return {"accuracy": 0.5 + jump + (0.02 if spec.model == "mlp" else 0.0) + 0.1 * wobble(spec)}

    work = reproduction(carried_out([SMALL], score=lambda spec: usual(spec) | shifted(spec)))
    cells = {(c.contender.name, c.value): c for c in work.cells()}
    gap = difference([cells["mlp", v] for v in LEVEL.values], [cells["gcn", v] for v in LEVEL.values])
    assert gap is not None
    assert 1.8 < gap.low <= gap.mean <= gap.high < 2.2
    assert str(gap).startswith("+2.0 (+")
    alone = replace(CPU, seeds=SEEDS[:1])
    lonely = {(c.contender.name, c.value): c for c in reproduction(carried_out([SMALL], alone), setting=alone).cells()}
    one = difference([lonely["mlp", 0.1]], [lonely["gcn", 0.1]])
    assert one is not None
    assert (one.low, one.high) == (float("-inf"), float("inf"))
    assert str(one) == signed(one.mean)
    assert difference([cells["mlp", 0.1]], [cells["gcn", 0.1]], "accuracy_isolated") is None
