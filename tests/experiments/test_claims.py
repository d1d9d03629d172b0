"""Claims in made-up worlds: one in which the paper is right in everything, one in which all models are alike."""

import functools
import math
from collections import Counter
from copy import copy

import pytest
from scipy import stats

from bigcn.experiments.claims import CLAIMS
from bigcn.experiments.closeness import behind, marks, to_the_paper, weak_baselines
from bigcn.experiments.findings import APPNP, OURS, PUBLISHED, TUNED, Findings, Rival, series_of
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.published import published_number
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting

SETTING = Setting("cpu", SEEDS[:2])


class Nothing:
    """A store without runs."""

    def rows(self, **_):
        return []


def outcome(metrics: dict[str, float]) -> RunResult:
    options = {"host": {}, "versions": {}, "started": "2026-03-01T12:00:00+00:00", "seconds": 0.1}
    return RunResult(metrics=metrics, **options)


@functools.cache
def planned(names: tuple[str, ...]) -> tuple[Reproduction, dict[str, RunSpec]]:
    """Returns experiments with all their runs; making thousands of specs takes seconds, so it is done once."""
    work = Reproduction([EXPERIMENTS[name] for name in names], Nothing(), SETTING)
    # All candidates are equal on validation data, so the first is chosen in every world.
    specs: dict[str, RunSpec] = {}
    for _ in range(2):  # those that run with all seeds are known once all have run
        specs |= {spec.key: spec for spec in work.choosing()}
        work.known.runs = dict.fromkeys(specs, outcome({}))
    return work, specs | {spec.key: spec for spec in work.reporting()}


def world(score, names=tuple(EXPERIMENTS)) -> Findings:
    """Carries out experiments with made-up scores."""
    plan, specs = planned(tuple(names))
    work = plan.about(plan.experiments)
    work.known = copy(plan.known)
    work.known.runs = {}
    for key, spec in specs.items():
        metrics = score(spec)
        metric = "accuracy" if spec.task == "node" else "roc_auc"
        work.known.runs[key] = outcome({metric: metrics.pop("score"), **metrics})
    return Findings(work)


def shake(spec: RunSpec) -> float:
    return 1e-4 * ((spec.seed // 5 + len(spec.model)) % 3)


def as_claimed(spec: RunSpec) -> dict[str, float]:
    model, settings = spec.model, spec.settings["model"]
    amount, score = spec.value or 0.0, 0.6 + shake(spec)
    isolated = {"accuracy_isolated": 0.5 + shake(spec), "accuracy_low_degree": 0.5 + shake(spec)}
    if model == "bigcn:published":
        score += 0.13 - (0.2 if (spec.dataset, spec.case) == ("cora", "noise-level") and amount != 0.2 else 0.0)
        score -= 0.3 if spec.task == "link" and spec.dataset == "pubmed" and spec.case == "clean" else 0.0
        isolated = {name: value + 0.1 for name, value in isolated.items()}
    elif model == "bigcn:published+correlation":
        score -= 0.2
    elif model == "gin" and spec.case == "noise-level" and spec.dataset in ("computers", "photo"):
        score -= 0.1
    if model in ("gcn", "sage", "gat", "gin", "gdc") and spec.case == "structure-mistakes":
        score -= amount
    layers = settings.get("num_layers", 2)
    if layers > 2:
        helped = "jk" in settings or settings.get("gcn_layers")
        score -= 0.0 if helped else 0.02 * layers * (2 if model == "gcn" else 1)
    if model.startswith("bigcn:published+p="):
        p, strength, other = settings["p"], settings["node_strength"], settings["feature_strength"]
        score = 0.8 + shake(spec)
        if strength == other:
            score += 0.1 * strength * (0.05 if amount < 0.5 else 1.0)
            score -= 0.02 * (p - 3) if p > 3 and strength >= 1.5 else 0.0
            score -= {0.5: 0.1, 1.0: 0.0, 2.0: 0.2}.get(p, 0.0)
    return {"score": score, **isolated}


def all_alike(spec: RunSpec) -> dict[str, float]:
    # A model of a longer name is no better: seeds shake everyone the same way.
    return {"score": 0.7 + 1e-3 * spec.seed, "accuracy_isolated": 0.5, "accuracy_low_degree": 0.5}


@pytest.fixture(scope="module")
def claimed():
    return world(as_claimed)


def test_where_the_paper_is_right_every_claim_is_confirmed(claimed):
    for claim in CLAIMS:
        verdict = claim.check(claimed)
        assert verdict.state == "confirmed", (claim.topic, claim.text, verdict)
        assert verdict.figures


def test_where_all_are_alike_no_lead_is_confirmed():
    findings = world(all_alike)
    states = {(claim.topic, claim.text): claim.check(findings).state for claim in CLAIMS}
    assert "not run" not in states.values()
    # To be the best or level, to be flat or stable and not to over-smooth is true of models that are all the same.
    true = ("the best", "flat", "enough", "little", "stable", "over-smooth")
    for (topic, text), state in states.items():
        expected = any(word in text for word in true) and "not the best" not in text and "above" not in text
        assert state == ("confirmed" if expected else "not confirmed"), (topic, text)


def test_where_the_paper_is_wrong_nothing_is_confirmed():
    def upside_down(spec: RunSpec) -> dict[str, float]:
        scores = {name: 1 - value for name, value in as_claimed(spec).items()}
        amount = spec.value or 0.0
        settings = spec.settings["model"]
        if spec.model == "bigcn:published" and (spec.dataset, spec.case) == ("cora", "noise-level"):
            scores["score"] = 0.9
        if spec.model == "bigcn:published+correlation":
            scores["score"] = 0.95
        if spec.model.startswith("bigcn:published+p="):
            k, other = settings["iterations"], settings["feature_strength"]
            scores["score"] = 0.5 + 0.05 * k + 0.05 * other
            if settings["node_strength"] == other:
                scores["score"] = 0.5 + 0.05 * k + (0.01 * settings["p"] + 0.01 * other) * (amount < 0.5)
                scores["score"] -= 0.01 * settings["p"] * (amount < 0.5 and settings["p"] < 3)
        if spec.model == "bigcn:published" and settings.get("num_layers", 2) > 2:
            scores["score"] = 0.1
        if spec.case == "noise-level" and spec.model == "gat":
            scores["score"] -= 0.4 * amount
        return scores

    findings = world(upside_down)
    for claim in CLAIMS:
        assert claim.check(findings).state == "not confirmed", (claim.topic, claim.text, claim.check(findings))


def test_what_has_not_run_is_neither():
    findings = world(as_claimed, ["link-table"])
    states = Counter(claim.check(findings).state for claim in CLAIMS)
    assert states == {"confirmed": 4, "not run": len(CLAIMS) - 4}


def test_a_claim_needs_every_rival():
    findings = world(as_claimed, ["node-table"])
    series = series_of("node-table", "cora")
    assert findings.lead("node-table", series, None, PUBLISHED, TUNED) is not None
    assert findings.lead("node-table", series, None, PUBLISHED, (*TUNED, Rival("gone", "tuned"))) is None


def test_leads_are_over_the_best(claimed):
    series = series_of("structure-mistakes", "photo")
    leads = claimed.leads("structure-mistakes", series, PUBLISHED, TUNED)
    assert leads is not None
    for value, lead in zip(series.values, leads, strict=True):
        means = {
            rival.name: claimed.cell("structure-mistakes", series, rival, value).mean for rival in (*TUNED, PUBLISHED)
        }
        own = means.pop("bigcn:published")
        assert lead.over.mean == max(means.values())
        assert lead.difference.mean == pytest.approx(own - max(means.values()))


def test_series_of():
    assert series_of("ablations", "photo", "noise-level").values == (0.5,)
    assert series_of("protocols", "cora", protocol="random").protocol == "random"
    with pytest.raises(ValueError, match="link-table has no series on photo"):
        series_of("link-table", "photo")


def printed(spec: RunSpec, name: str | None = None) -> float | None:
    number = published_number(name or spec.model, spec.task, spec.dataset, spec.case, spec.value)
    return None if number is None else number / 100


TABLES = ["node-table", "link-table", "fixed-learnable", "noise-level"]


def test_every_bar_is_met_by_the_numbers_of_the_paper():
    def score(spec: RunSpec) -> dict[str, float]:
        name = "fixed" if spec.model == "bigcn:published+correlation" else spec.model
        known = printed(spec, name)
        if known is None and spec.model.startswith("bigcn:exact"):
            known = printed(spec, "bigcn:published")
            known = (known or 0.5) + (0.04 if spec.case == "noise-level" else 0.0)
        return {"score": 0.5 if known is None else known}

    findings = world(score, TABLES)
    assert {mark.state for mark in marks(findings)} == {"met"}
    assert behind(findings) == []
    assert weak_baselines(findings) == []
    assert sum("all 28 numbers" in mark.bar for mark in marks(findings)) == 1
    gap = findings.above("noise-level", series_of("noise-level", "pubmed"), OURS, PUBLISHED)
    assert gap is not None
    assert gap.mean == pytest.approx(4)
    assert findings.above("noise-level", series_of("noise-level", "pubmed"), OURS, APPNP).mean == pytest.approx(4)


@pytest.mark.parametrize(("shift", "missed"), [(-0.0101, "published form, Cora, nodes"), (-0.0201, "Computers, nodes")])
def test_bars_are_missed_just_beyond_them(shift, missed):
    # A tenth of a point is what the paper prints, so the bar is missed from there on.
    def score(spec: RunSpec) -> dict[str, float]:
        known = printed(spec)
        moved = spec.model == "bigcn:published"
        return {"score": 0.5 if known is None else known + (shift - 0.0005) * moved}

    found = {mark.what: mark for mark in marks(world(score, ["node-table"]))}
    computers = found["published form, Computers, nodes"]
    assert next(mark.state for what, mark in found.items() if missed in what) == "missed"
    assert computers.state == ("met" if shift > -0.02 else "missed")
    assert found["published form, Cora, links"].state == "not run"
    assert found["baselines at the paper's settings, nodes"].state == "met"


def test_a_weak_baseline_is_named():
    def score(spec: RunSpec) -> dict[str, float]:
        known = printed(spec)
        weak = spec.model == "gat" and spec.dataset == "photo"
        return {"score": 0.5 if known is None else known - 0.05 * weak}

    found = {mark.what: mark for mark in marks(world(score, ["node-table"]))}
    for tuning in ("at the paper's settings", "tuned"):
        mark = found[f"baselines {tuning}, nodes"]
        assert (mark.state, mark.measured) == ("missed", "24 of 25 that have run; not GAT Photo −5.0 [−5.9 to −4.1]")
    weak = weak_baselines(world(score, ["node-table"]))
    assert [(cell.contender.name, cell.contender.tuning, cell.series.graph) for cell in weak] == [
        ("gat", "paper", "photo"),
        ("gat", "tuned", "photo"),
    ]


def verdict_of(topic: str, text: str, findings: Findings) -> str:
    return next(c for c in CLAIMS if c.topic == topic and c.text.startswith(text)).check(findings).state


def test_at_least_means_everywhere():
    def score(spec: RunSpec) -> dict[str, float]:
        weak = spec.dataset == "photo" and spec.value == 0.005
        return {"score": 0.6 + shake(spec) + (0.01 if weak else 0.13) * (spec.model == "bigcn:published")}

    findings = world(score, ["structure-mistakes"])
    assert verdict_of("structure mistakes, node classification", "Photo: at least", findings) == "not confirmed"
    assert verdict_of("structure mistakes, node classification", "Cora: at least", findings) == "confirmed"


def test_a_lead_that_seeds_do_not_share_is_none():
    def score(spec: RunSpec) -> dict[str, float]:
        lead = {5: 0.2, 10: -0.1}[spec.seed] if spec.dataset == "cora" else 0.05 + shake(spec)
        return {"score": 0.6 + lead * (spec.model == "bigcn:published")}

    findings = world(score, ["node-table"])
    assert verdict_of("clean data, node classification", "Cora", findings) == "not confirmed"
    assert verdict_of("clean data, node classification", "Photo", findings) == "confirmed"


def test_a_steady_rise_is_not_erratic():
    def rising(spec: RunSpec) -> dict[str, float]:
        return {"score": 0.4 + 0.1 * spec.settings["model"]["p"] + shake(spec)}

    def turning(spec: RunSpec) -> dict[str, float]:
        return {"score": 0.4 + 0.1 * (spec.settings["model"]["p"] == 1.0) + shake(spec)}

    names = ("sensitivity-p-lambda",)
    assert verdict_of("sensitivity, Cora", "p ≤ 2 is erratic", world(rising, names)) == "not confirmed"
    assert verdict_of("sensitivity, Cora", "p ≤ 2 is erratic", world(turning, names)) == "confirmed"


def test_differences_to_the_paper_have_the_interval_of_independent_runs():
    """Two seeds here, ten there, against SciPy."""
    findings = world(lambda spec: {"score": 0.28 if spec.seed == SEEDS[0] else 0.32}, ["node-table"])
    cell = findings.cell("node-table", series_of("node-table", "photo"), Rival("gin", "paper"))
    assert cell is not None
    gap = to_the_paper(cell, "gin")
    welch = stats.ttest_ind_from_stats(30, math.sqrt(8), 2, 37.1, 12.0, 10, equal_var=False)
    assert gap.mean == -7.1
    # The end of an interval is where a test is as sure as the interval is.
    at_the_end = stats.ttest_ind_from_stats(30 - gap.high, math.sqrt(8), 2, 37.1, 12.0, 10, equal_var=False)
    assert at_the_end.pvalue == pytest.approx(0.05, abs=1e-5)
    assert (gap.high < 0) == (welch.pvalue < 0.05)
    assert gap.high - gap.mean == pytest.approx(gap.mean - gap.low)
    assert behind(findings) == ["cora", "citeseer", "pubmed", "computers", "photo"]
    assert str(gap).endswith("]")
