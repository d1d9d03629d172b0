"""How the claims of :mod:`bigcn.experiments.claims` are checked.

Where a claim has no number ("little", "quickly"), the bound below is ours.
"""

from typing import Literal, NamedTuple

from bigcn.datasets import get_spec
from bigcn.experiments.cells import Cell, difference, signed
from bigcn.experiments.findings import PUBLISHED, TUNED, UNTUNED, Findings, Lead, Rival, series_of
from bigcn.experiments.paper import EXPERIMENTS, Series

#: In points: what "flat", "enough", "little" and "stable" allow.
LITTLE = 2.0
TABLES = ("node-table", "link-table")


class Verdict(NamedTuple):
    """Whether a claim holds, and the figures that say so."""

    state: Literal["confirmed", "not confirmed", "not run"]
    figures: str = ""


NOT_RUN = Verdict("not run")


def verdict(holds: bool, figures: str) -> Verdict:
    """Returns the verdict on a claim that was measured."""
    return Verdict("confirmed" if holds else "not confirmed", figures)


def title(graph: str) -> str:
    """Returns the name of a graph for people."""
    return get_spec(graph).title


def _rivals(experiment: str) -> tuple[Rival, ...]:
    return UNTUNED if experiment in TABLES else TUNED


def _leads(findings: Findings, experiment: str, graph: str) -> list[Lead] | None:
    return findings.leads(experiment, series_of(experiment, graph), PUBLISHED, _rivals(experiment))


def _at(lead: Lead) -> str:
    where = "" if lead.over.value is None else f" at {lead.over.value:g}"
    return f"{lead.difference} against {lead.over.contender.title}{where}"


def leads_by(findings: Findings, experiment: str, graph: str, points: float, where: str) -> Verdict:
    """Checks a lead over the best baseline: at the strongest noise, or everywhere where the paper says "at least".

    It holds where the lead is real (its interval lies above zero) and its interval reaches the points claimed.
    """
    leads = _leads(findings, experiment, graph)
    if leads is None:
        return NOT_RUN
    extreme = leads[0] if experiment.startswith("feature-rate") else leads[-1]
    lead = min(leads, key=lambda lead: lead.difference.mean) if where == "least" else extreme
    figures = _at(lead)
    if len(leads) > 1:
        largest = max(leads, key=lambda lead: lead.difference.mean)
        figures += f"; at most {_at(largest)}"
    elif (tuned := findings.lead(experiment, lead.over.series, None, PUBLISHED, TUNED)) is not None:
        figures += f"; {_at(tuned)} with tuned baselines"
    return verdict(lead.difference.low > 0 and lead.difference.high >= points, figures)


def leads_on_average(findings: Findings, experiment: str, graph: str) -> Verdict:
    """Checks a lead, averaged over all amounts of noise, over every baseline."""
    series = series_of(experiment, graph)
    found = {rival: findings.above(experiment, series, PUBLISHED, rival) for rival in _rivals(experiment)}
    apart = [(gap, rival) for rival, gap in found.items() if gap is not None]
    if len(apart) < len(found):
        return NOT_RUN
    gap, rival = min(apart, key=lambda pair: pair[0].mean)
    return verdict(gap.low > 0, f"{gap} against {rival.title}")


def is_best(findings: Findings, experiment: str, graph: str) -> Verdict:
    """Checks that nobody has a higher mean under any amount of noise."""
    leads = _leads(findings, experiment, graph)
    return NOT_RUN if leads is None else verdict(all(lead.difference.mean >= 0 for lead in leads), _ranks(leads))


def is_not_best(findings: Findings, experiment: str, graph: str) -> Verdict:
    """Checks that a baseline is clearly better (the interval lies below zero) under some amount of noise."""
    leads = _leads(findings, experiment, graph)
    return NOT_RUN if leads is None else verdict(any(lead.difference.high < 0 for lead in leads), _ranks(leads))


def _ranks(leads: list[Lead]) -> str:
    worst = _at(min(leads, key=lambda lead: lead.difference.mean))
    if len(leads) == 1:
        return worst
    first, behind = sum(lead.difference.mean >= 0 for lead in leads), sum(lead.difference.high < 0 for lead in leads)
    return f"first at {first} of {len(leads)}, clearly behind at {behind}; at worst {worst}"


def above_most(findings: Findings, experiment: str, graph: str) -> Verdict:
    """Checks that three of the five baselines are below under every amount of noise."""
    series = series_of(experiment, graph)
    curve = findings.curve(experiment, series, PUBLISHED)
    others = _curves(findings, experiment, series, _rivals(experiment))
    if curve is None or others is None:
        return NOT_RUN
    below = [sum(other[place].mean < own.mean for other in others.values()) for place, own in enumerate(curve)]
    return verdict(min(below) > len(others) / 2, f"above {min(below)} to {max(below)} of {len(others)}")


def is_flat(findings: Findings, graph: str) -> Verdict:
    """Checks that every curve ends within two points of where it begins."""
    series = series_of("noise-level", graph)
    curves = _curves(findings, "noise-level", series, (PUBLISHED, *TUNED))
    if curves is None:
        return NOT_RUN
    falls = {rival: curve[0].mean - curve[-1].mean for rival, curve in curves.items()}
    most = max(falls, key=lambda rival: abs(falls[rival]))
    figures = f"from {series.values[0]:g} to {series.values[-1]:g}: BiGCN {signed(-falls[PUBLISHED])}, "
    return verdict(abs(falls[most]) <= LITTLE, f"{figures}at most {most.title} {signed(-falls[most])}")


def gin_is_worst(findings: Findings, graph: str) -> Verdict:
    """Checks that GIN is below all others under every amount of noise."""
    curves = _curves(findings, "noise-level", series_of("noise-level", graph), (PUBLISHED, *TUNED))
    if curves is None:
        return NOT_RUN
    own = curves.pop(Rival("gin", "tuned"))
    gaps = [min(curve[place].mean for curve in curves.values()) - cell.mean for place, cell in enumerate(own)]
    return verdict(min(gaps) > 0, f"{signed(-max(gaps))} to {signed(-min(gaps))} against the next")


def declines_less(findings: Findings, graph: str) -> Verdict:
    """Checks that BiGCN loses less than every baseline from the first to the last amount of wrong edges."""
    curves = _curves(findings, "structure-mistakes", series_of("structure-mistakes", graph), (PUBLISHED, *TUNED))
    if curves is None:
        return NOT_RUN
    falls = {rival: curve[0].mean - curve[-1].mean for rival, curve in curves.items()}
    own = falls.pop(PUBLISHED)
    least = min(falls, key=lambda rival: falls[rival])
    return verdict(
        own < falls[least], f"{signed(-own)}; the least of the baselines, {least.title}: {signed(-falls[least])}"
    )


def best_in_most(findings: Findings) -> Verdict:
    """Checks that BiGCN has the highest mean in more than half of all graphs and shares of features but CiteSeer's."""
    found: list[Lead] = []
    for series in EXPERIMENTS["feature-rate"].series:
        if series.graph != "citeseer":
            leads = findings.leads("feature-rate", series, PUBLISHED, TUNED)
            if leads is None:
                return NOT_RUN
            found += leads
    first = sum(lead.difference.mean > 0 for lead in found)
    return verdict(first > len(found) / 2, f"first in {first} of {len(found)}")


def learned_is_better(findings: Findings) -> Verdict:
    """Checks that the learned graph is better on average over all amounts of both kinds of noise."""
    learned: list[Cell] = []
    fixed: list[Cell] = []
    for series in EXPERIMENTS["fixed-learnable"].series:
        ours = findings.curve("fixed-learnable", series, PUBLISHED)
        theirs = findings.curve("fixed-learnable", series, Rival("fixed", "fixed"))
        if ours is None or theirs is None:
            return NOT_RUN
        learned, fixed = learned + ours, fixed + theirs
    gap = difference(learned, fixed)
    ahead = sum(first.mean > second.mean for first, second in zip(learned, fixed, strict=True))
    return NOT_RUN if gap is None else verdict(gap.low > 0, f"{gap} on average; ahead in {ahead} of {len(learned)}")


def feature_direction_helps(findings: Findings, graph: str, metric: str) -> Verdict:
    """Checks that the published form is better with its feature graph than without on some of the test nodes."""
    without = Rival("bigcn:published+none", "fixed")
    gap = findings.above("ablations", series_of("ablations", graph, "clean"), PUBLISHED, without, metric)
    return NOT_RUN if gap is None else verdict(gap.low > 0, f"{gap}")


def _curves(
    findings: Findings, experiment: str, series: Series, rivals: tuple[Rival, ...]
) -> dict[Rival, list[Cell]] | None:
    found = {rival: findings.curve(experiment, series, rival) for rival in rivals}
    curves = {rival: curve for rival, curve in found.items() if curve is not None}
    return curves if len(curves) == len(found) else None
