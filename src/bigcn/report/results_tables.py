"""The tables of the reproduction, in Markdown: every published number beside ours."""

from collections.abc import Iterable, Sequence

import numpy as np

from bigcn.experiments.cells import Cell, protocol_of, signed
from bigcn.experiments.contenders import Contender
from bigcn.experiments.findings import APPNP, OURS, PUBLISHED, Findings, Rival
from bigcn.experiments.paper import Experiment, Series
from bigcn.experiments.published import published_number
from bigcn.report.results_reasons import reason
from bigcn.report.words import dataset_title, label, number

#: How far a number may lie from the published one before it is marked, in points.
REACH = 1.5
FAR = "†"
NONE = "–"
_SPECIAL = "\\|*_`<>[]"


def escaped(text: str) -> str:
    r"""Returns a text that Markdown shows as it is.

    Example:
        >>> escaped("a|b*")
        'a\\|b\\*'
    """
    return "".join(f"\\{character}" if character in _SPECIAL else character for character in label(text))


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], words: bool = False) -> str:
    """Returns a Markdown table; cells are taken as they are. All columns but the first are aligned to the right, unless
    they hold words.
    """
    rule = ["---", *["---" if words else "---:"] * (len(heading) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heading, rule, *rows)) + "\n"


def state(word: str) -> str:
    """Writes whether a bar is met or a claim confirmed; what is not stands out."""
    return f"**{word}**" if word in ("missed", "not confirmed") else word


def score(cell: Cell) -> str:
    """Writes mean and standard deviation in percent; a single run has no spread."""
    return f"{cell.mean:.1f}" + (f" ± {cell.std:.1f}" if len(cell.seeds) > 1 else "")


def is_far(cell: Cell) -> bool:
    """Tells whether a cell lies outside the reach of its published number."""
    return cell.gap is not None and abs(cell.gap) > REACH


def beside(cell: Cell | None, published: float | None) -> str:
    """Writes a number with the published one and the difference beside it."""
    if cell is None:
        return NONE if published is None else f"{NONE} ({published:.1f})"
    if published is None or cell.gap is None:
        return score(cell)
    far = f" {FAR}" if is_far(cell) else ""
    return f"{score(cell)} ({published:.1f}: {signed(cell.gap)}){far}"


def published_table(findings: Findings, experiment: Experiment, tunings: tuple[str, ...]) -> str:
    """Returns a table of models and graphs, the published numbers beside ours."""
    rows = []
    for contender in experiment.contenders:
        if contender.tuning not in tunings:
            continue
        cells = [_cell(findings, experiment, series, contender, _only(series)) for series in experiment.series]
        numbers = [_published(contender, series, _only(series)) for series in experiment.series]
        if any(cell is not None for cell in cells) or any(known is not None for known in numbers):
            shown = [beside(cell, known) for cell, known in zip(cells, numbers, strict=True)]
            rows.append([escaped(contender.title), *shown])
    return table(["", *(escaped(dataset_title(series.graph)) for series in experiment.series)], rows)


def amounts_beside(findings: Findings, experiment: Experiment, series: Series) -> str:
    """Returns a table of amounts of noise and models, the published numbers beside ours."""
    rows = [
        [
            number(value),
            *(
                beside(_cell(findings, experiment, series, contender, value), _published(contender, series, value))
                for contender in experiment.contenders
            ),
        ]
        for value in series.values
    ]
    return table(["", *(escaped(contender.title) for contender in experiment.contenders)], rows)


def noise_table(findings: Findings, experiment: Experiment, series: Series) -> str | None:
    """Returns a table of models and amounts of noise with their mean, best in bold, or :obj:`None` if nothing ran."""
    curves: dict[str, list[Cell | None]] = {}
    for contender in experiment.contenders:
        cells = [_cell(findings, experiment, series, contender, value) for value in series.values]
        if any(cell is not None for cell in cells):
            curves[contender.title] = cells
    if not curves:
        return None
    means = {title: [None if cell is None else cell.mean for cell in cells] for title, cells in curves.items()}
    rows = _with_best_in_bold({title: [*line, _average(line)] for title, line in means.items()})
    numbers = [published_number("bigcn:published", series.task, series.graph, series.case, v) for v in series.values]
    known = [published for published in numbers if published is not None]
    if len(known) == len(numbers):
        shown = (f"{published:.1f}" for published in [*known, float(np.mean(known))])
        rows.append(["BiGCN, as the paper prints it", *shown])
    return table(["", *(number(value) for value in series.values), "mean"], rows)


def gaps_table(findings: Findings, experiment: Experiment) -> str | None:
    """Returns how far our form lies above the published one, and both above APPNP, on average over all amounts."""
    pairs = ((OURS, PUBLISHED), (OURS, APPNP), (PUBLISHED, APPNP))
    rows = []
    for series in experiment.series:
        gaps = [findings.above(experiment.name, series, first, second) for first, second in pairs]
        if any(gap is not None for gap in gaps):
            name = dataset_title(series.graph) + (f", {protocol_of(series)}" if series.protocol else "")
            rows.append([escaped(name), *(NONE if gap is None else str(gap) for gap in gaps)])
    heading = ["", "our form − published form", "our form − APPNP", "published form − APPNP"]
    return table(heading, rows) if rows else None


def series_table(findings: Findings, experiment: Experiment, columns: Sequence[Series], names: list[str]) -> str | None:
    """Returns a table of contenders and series, best in bold, or :obj:`None` if nothing ran."""
    lines: dict[str, list[float | None]] = {}
    for contender in experiment.contenders:
        cells = [_cell(findings, experiment, series, contender, _only(series)) for series in columns]
        if any(cell is not None for cell in cells):
            lines[contender.title] = [None if cell is None else cell.mean for cell in cells]
    return table(["", *names], _with_best_in_bold(lines)) if lines else None


def crossed_table(findings: Findings, experiment: Experiment, series: Series, sign: str) -> str | None:
    """Returns a table of contenders whose names hold two settings: :obj:`"bigcn@2"`, or :obj:`"p,lambda=3,1.8"`."""
    grid: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for contender in experiment.contenders:
        cell = _cell(findings, experiment, series, contender, _only(series))
        if sign == "@":
            row, _, column = contender.title.rpartition(", ")
        else:
            first, second = contender.name.partition("=")[2].split(",")
            row, column = f"p = {first}", f"λ = {second}"
        columns[column] = None
        grid.setdefault(row, {})[column] = NONE if cell is None else score(cell)
    grid = {row: line for row, line in grid.items() if any(text != NONE for text in line.values())}
    if not grid:
        return None
    return table(["", *columns], ([escaped(row), *(line.get(c, NONE) for c in columns)] for row, line in grid.items()))


def few_links_table(findings: Findings, experiment: Experiment) -> str | None:
    """Returns accuracy on test nodes without a link, and with at most two, for every contender."""
    rows, columns = [], [series for series in experiment.series if series.case == "clean"]
    for contender in experiment.contenders:
        cells = [_cell(findings, experiment, series, contender, None) for series in columns]
        rows.append([escaped(_titled(contender)), *(_few_links(cell) for cell in cells)])
    rows = [row for row in rows if any(text != NONE for text in row[1:])]
    heading = ["", *(escaped(dataset_title(series.graph)) for series in columns)]
    return table(heading, rows) if len(rows) > 1 else None


def far_list(findings: Findings, experiment: Experiment) -> str:
    """Returns the numbers outside the reach, by the reason as far as it is known."""
    reasons: dict[str, dict[str, list[str]]] = {}
    places = {(c.name, c.tuning): place for place, c in enumerate(experiment.contenders)}
    cells = sorted(findings.cells(experiment.name), key=lambda c: places[c.contender.name, c.contender.tuning])
    for cell in filter(is_far, cells):
        where = dataset_title(cell.series.graph)
        if cell.value is not None:
            where = f"{cell.series.case.replace('-', ' ')} {number(cell.value)}"
        text = f"{where} {signed(cell.gap or 0.0)}"
        tuned = findings.cell(experiment.name, cell.series, Rival(cell.contender.name, "tuned"), cell.value)
        if cell.contender.tuning == "paper" and tuned is not None and not is_far(tuned):
            text += f" (tuned {signed(tuned.gap or 0.0)})"
        reasons.setdefault(reason(cell), {}).setdefault(_titled(cell.contender), []).append(text)
    return "".join(
        f"- {why[0].upper()}{why[1:]}: {'; '.join(f'{escaped(t)}: ' + ', '.join(p) for t, p in models.items())}.\n"
        for why, models in reasons.items()
    )


def _titled(contender: Contender) -> str:
    return contender.title + {"paper": ", paper's settings", "tuned": ", tuned"}.get(contender.tuning, "")


def _few_links(cell: Cell | None) -> str:
    if cell is None:
        return NONE
    found = [cell.mean_of(metric) for metric in ("accuracy_isolated", "accuracy_low_degree")]
    shown = [NONE if mean is None else f"{100 * mean:.1f}" for mean in found]
    return NONE if shown == [NONE, NONE] else " / ".join(shown)


def _cell(
    findings: Findings, experiment: Experiment, series: Series, contender: Contender, value: float | None
) -> Cell | None:
    return findings.cell(experiment.name, series, Rival(contender.name, contender.tuning), value)


def _only(series: Series) -> float | None:
    return series.values[0] if series.values else None


def _published(contender: Contender, series: Series, value: float | None) -> float | None:
    return published_number(contender.name, series.task, series.graph, series.case, value)


def _average(means: Sequence[float | None]) -> float | None:
    known = [mean for mean in means if mean is not None]
    return float(np.mean(known)) if len(known) == len(means) else None


def _with_best_in_bold(lines: dict[str, list[float | None]]) -> list[list[str]]:
    best = [
        max((round(mean, 1) for mean in column if mean is not None), default=None)
        for column in zip(*lines.values(), strict=True)
    ]
    return [
        [
            escaped(title),
            *(
                NONE if mean is None else f"**{mean:.1f}**" if round(mean, 1) == top else f"{mean:.1f}"
                for mean, top in zip(means, best, strict=True)
            ),
        ]
        for title, means in lines.items()
    ]
