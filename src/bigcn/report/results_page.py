"""The page with every published number beside ours, every claim, what is missing, and what it took."""

from collections.abc import Iterable, Mapping

from bigcn.experiments.claim_checks import TABLES
from bigcn.experiments.claims import CLAIMS
from bigcn.experiments.contenders import Contender
from bigcn.experiments.findings import Findings
from bigcn.experiments.paper import Experiment, Series
from bigcn.report import results_tables as tables
from bigcn.report.results_closeness import closeness_section
from bigcn.report.results_cost import cost_section, costs
from bigcn.report.results_default import default_section
from bigcn.report.results_figures import case_title
from bigcn.report.results_opening import CLAIMS_INTRO, GUIDE, POOL, note, opening
from bigcn.report.results_overview import overview_section
from bigcn.report.results_summary import SUMMARY
from bigcn.report.words import dataset_title

#: What is not there of a choice.
_CHOSEN_WITHOUT = (
    "some of the runs that validation chooses by today; what stands in these places was chosen without them."
)
_CHOSEN_SINCE = "some of the runs of what validation chooses today; what had been chosen before stands in these places."
_CHOSEN_FROM = "what validation chose from; what won stands in these places alone."
_BESIDE = f"Ours, in brackets the published number and the difference; {tables.FAR} beyond {tables.REACH:g} points.\n"


def results_page(findings: Findings, figures: Mapping[str, str], folder: str = "results", guide: str = GUIDE) -> str:
    """Returns the page as Markdown.

    Args:
        findings (Findings): What was measured.
        figures (Mapping): Where the figure of an experiment lies, seen from the page, by name, and the one that
            sums up.
        folder (str, optional): Where its tables are. (default: :obj:`"results"`)
        guide (str, optional): What tells how all is run, a name or a link. (default: a link to a page beside it)
    """
    experiments, stores = findings.work.experiments, costs(findings.work)
    parts = [opening(findings, folder), overview_section(findings, figures.get(SUMMARY, ""))]
    parts += [closeness_section(findings, stores), _claims(findings)]
    for experiment in experiments:
        body = _section(findings, experiment, folder)
        if body:
            # A table has its published numbers even where nothing has run, so its figure may still be missing.
            picture = f"![{experiment.title}]({figures[experiment.name]})\n" if experiment.name in figures else ""
            heading = f"## {experiment.title} (`{experiment.name}`)\n"
            parts.append(_joined(heading, picture, note(experiment.name, guide), body))
    parts += [_few_links(findings), default_section(findings), POOL]
    return _joined(*parts, _missing(findings), cost_section(findings.work, stores, guide))


def _claims(findings: Findings) -> str:
    verdicts = [(claim, claim.check(findings)) for claim in CLAIMS]
    states = [verdict.state for _, verdict in verdicts]
    rows = [
        [
            tables.escaped(claim.topic + (" (no experiment in the paper)" if claim.ours else "")),
            tables.escaped(claim.text),
            tables.escaped(verdict.figures) or tables.NONE,
            tables.state(verdict.state),
        ]
        for claim, verdict in verdicts
        if verdict.state != "not run"
    ]
    waiting: dict[str, int] = {}
    for claim, verdict in verdicts:
        if verdict.state == "not run":
            waiting[claim.topic] = waiting.get(claim.topic, 0) + 1
    left = "; ".join(f"{tables.escaped(topic)} ({count})" for topic, count in waiting.items())
    ours = [verdict for claim, verdict in verdicts if claim.ours]
    intro = CLAIMS_INTRO.format(
        confirmed=states.count("confirmed"),
        refuted=states.count("not confirmed"),
        waiting=states.count("not run"),
        ours=len(ours),
        ours_confirmed=sum(verdict.state == "confirmed" for verdict in ours),
    )
    return _joined(
        "## What the paper claims\n",
        intro,
        tables.table(["about", "claim", "measured", ""], rows, words=True) if rows else "",
        f"Not run: {left}.\n" if left else "",
    )


def _section(findings: Findings, experiment: Experiment, folder: str) -> str:
    if experiment.name in TABLES:
        return _published(findings, experiment)
    if not findings.cells(experiment.name):
        return ""
    if experiment.name == "fixed-learnable":
        return _fixed_learnable(findings, experiment)
    if experiment.figure:
        return _noise(findings, experiment, folder)
    if experiment.name in ("sensitivity-p-lambda", "depth", "depth-link"):
        sign = "=" if experiment.name == "sensitivity-p-lambda" else "@"
        title = _graph_and_amount if experiment.name == "depth-link" else case_title
        shown = {
            title(series): tables.crossed_table(findings, experiment, series, sign) for series in experiment.series
        }
        return _each(shown, "Mean ± standard deviation.\n")
    if experiment.name == "ablations":
        return _ablations(findings, experiment)
    if experiment.name == "protocols":
        names = [f"{dataset_title(series.graph)}, {series.protocol}" for series in experiment.series]
        found = tables.series_table(findings, experiment, experiment.series, names)
        return _joined(found or "", tables.gaps_table(findings, experiment) or "")
    return (
        tables.series_table(
            findings, experiment, experiment.series, [case_title(series) for series in experiment.series]
        )
        or ""
    )


def _published(findings: Findings, experiment: Experiment) -> str:
    far = tables.far_list(findings, experiment)
    gaps = tables.gaps_table(findings, experiment)
    return _joined(
        _BESIDE,
        "### Paper's settings\n",
        tables.published_table(findings, experiment, ("paper", "fixed")),
        "### Tuned equally\n",
        tables.published_table(findings, experiment, ("tuned",)),
        f"### Outside {tables.REACH:g} points\n" if far else "",
        far,
        "### Our form, the published form and APPNP\n" if gaps else "",
        gaps or "",
    )


def _fixed_learnable(findings: Findings, experiment: Experiment) -> str:
    parts = [_BESIDE]
    for series in experiment.series:
        name = series.case.replace("-", " ").capitalize()
        parts += [f"### {name}, {dataset_title(series.graph)}\n", tables.amounts_beside(findings, experiment, series)]
    far = tables.far_list(findings, experiment)
    return _joined(*parts, f"### Outside {tables.REACH:g} points\n" if far else "", far)


def _noise(findings: Findings, experiment: Experiment, folder: str) -> str:
    shown = {dataset_title(s.graph): tables.noise_table(findings, experiment, s) for s in experiment.series}
    gaps = tables.gaps_table(findings, experiment)
    spread = (
        f"Means; standard deviations, shaded in the figure, are in `{folder}/{experiment.name}.csv`. Best in bold\n"
        "among what has run. BiGCN without a further word is our form.\n"
    )
    return _joined(_each(shown, spread), "### Averaged over all amounts\n" if gaps else "", gaps or "")


def _ablations(findings: Findings, experiment: Experiment) -> str:
    groups: dict[str, list[Series]] = {}
    for series in experiment.series:
        groups.setdefault(series.case, []).append(series)
    shown = {
        case.replace("-", " ").capitalize(): tables.series_table(
            findings, experiment, group, [_graph_and_amount(series) for series in group]
        )
        for case, group in groups.items()
    }
    intro = (
        "Means, 16 units, best in bold among what has run. On Cora and CiteSeer the published rows have the released\n"
        "code's weight decay 7e-3 and the exact rows 5e-4: compare within each group; elsewhere all have 5e-4.\n"
    )
    return _each(shown, intro)


def _graph_and_amount(series: Series) -> str:
    return " ".join([dataset_title(series.graph), *(f"{value:g}" for value in series.values)])


def _each(shown: Mapping[str, str | None], intro: str) -> str:
    parts = [part for title, found in shown.items() if found for part in (f"### {title}\n", found)]
    return _joined(intro, *parts) if parts else ""


def _few_links(findings: Findings) -> str:
    parts = []
    for experiment in findings.work.experiments:
        if experiment.name in ("node-table", "ablations"):
            found = tables.few_links_table(findings, experiment)
            parts += [f"### `{experiment.name}`\n", found] if found else []
    if not parts:
        return ""
    intro = (
        "Accuracy on test nodes without a link / with two links at most (those without one among them), clean data.\n"
    )
    return _joined("## Nodes with few links\n", intro, *parts)


def _missing(findings: Findings) -> str:
    lines = []
    for experiment in findings.work.experiments:
        absent = findings.absent(experiment)
        if not absent:
            continue
        if not findings.cells(experiment.name):
            lines.append(f"- `{experiment.name}` ({experiment.title}): all of it.\n")
            continue
        total = len(experiment.contenders)
        places: dict[tuple[str, str], list[str]] = {}
        for series, titles in absent.items():
            which = "all" if len(titles) == total else tables.escaped(", ".join(titles)) if len(titles) <= 4 else ""
            case = ", ".join(part for part in (series.case.replace("-", " "), series.protocol) if part)
            places.setdefault((case, which or f"{len(titles)} of {total} models"), []).append(
                dataset_title(series.graph)
            )
        parts = (f"{', '.join(graphs)} ({case}): {which}" for (case, which), graphs in places.items())
        lines.append(f"- `{experiment.name}` ({experiment.title}): {'; '.join(parts)}.\n")
    work = findings.work
    before = [(work.choice(*place) is None, place) for place in work.chosen_before()]
    lines += [
        *_by_model((place for unknown, place in before if unknown), _CHOSEN_WITHOUT),
        *_by_model((place for unknown, place in before if not unknown), _CHOSEN_SINCE),
        *_by_model(work.chosen_from_unknown(), _CHOSEN_FROM),
    ]
    done = "Nothing: everything has run.\n"
    return _joined("## What is missing\n", "".join(lines) or done)


def _by_model(places: Iterable[tuple[Series, Contender]], words: str) -> list[str]:
    found: dict[str, dict[str, list[str]]] = {}
    for series, contender in places:
        task = " of links" if series.task == "link" else ""
        split = f" ({series.protocol} split)" if series.protocol else ""
        kind = f"{series.case.replace('-', ' ')}{task}{split}"
        found.setdefault(contender.title, {}).setdefault(dataset_title(series.graph), []).append(kind)
    listed = {
        title: "; ".join(f"{graph}: {', '.join(kinds)}" for graph, kinds in graphs.items())
        for title, graphs in found.items()
    }
    return [f"- {title}: {words} {places}.\n" for title, places in listed.items()]


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
