"""How the claims about parameters and depth are checked; see :mod:`bigcn.experiments.claim_checks`."""

from collections.abc import Iterable

from bigcn.experiments.cells import Cell, difference, signed
from bigcn.experiments.claim_checks import LITTLE, NOT_RUN, Verdict, verdict
from bigcn.experiments.findings import Findings, Rival
from bigcn.experiments.paper import EXPERIMENTS, HARD, SENSITIVITY, Series

#: What "quickly" asks, in points.
QUICKLY = 5.0


def two_rounds_suffice(findings: Findings) -> Verdict:
    """Checks that more rounds than two gain two points nowhere."""
    table = _varied(findings, "sensitivity-k", SENSITIVITY)
    if table is None:
        return NOT_RUN
    gains = {
        (series, name): cell.mean - row["k=2"].mean
        for series, row in table.items()
        for name, cell in row.items()
        if int(name.removeprefix("k=")) > 2
    }
    series, name = max(gains, key=lambda place: gains[place])
    return verdict(gains[series, name] <= LITTLE, f"at most {signed(gains[series, name])} ({name}, {_case(series)})")


def lambda2_matters_little(findings: Findings) -> Verdict:
    """Checks that the best and the worst strength are within two points of each other everywhere."""
    table = _varied(findings, "sensitivity-lambda2", SENSITIVITY)
    if table is None:
        return NOT_RUN
    ranges = {series: _range(row.values()) for series, row in table.items()}
    return verdict(max(ranges.values()) <= LITTLE, _listed(ranges))


def stable_for_small_lambda(findings: Findings) -> Verdict:
    """Checks that for each λ up to 1.2 all p from 3 on are within two points of each other."""
    table = _by_p_and_lambda(findings)
    if table is None:
        return NOT_RUN
    ranges = {
        series: max(_range(grid[p, v] for p in (3.0, 5.0, 8.0)) for v in (0.4, 0.8, 1.2))
        for series, grid in table.items()
    }
    return verdict(max(ranges.values()) <= LITTLE, f"range over p: {_listed(ranges)}")


def falls_for_large_lambda(findings: Findings) -> Verdict:
    """Checks that from p=3 to p=8 five points are lost for every λ from 1.5 on, on average over the settings."""
    table = _by_p_and_lambda(findings)
    if table is None:
        return NOT_RUN
    falls = {
        v: sum(grid[3.0, v].mean - grid[8.0, v].mean for grid in table.values()) / len(table) for v in (1.5, 1.8, 2.2)
    }
    figures = ", ".join(f"λ={v:g} {signed(-fall)}" for v, fall in falls.items())
    return verdict(min(falls.values()) >= QUICKLY, f"from p=3 to p=8: {figures}")


def small_p_is_erratic(findings: Findings) -> Verdict:
    """Checks that for λ from 1.5 on accuracy fluctuates with p up to 2 in most settings: at p=1 it lies more than two
    points above or below both neighbours, 0.5 and 2.
    """
    table = _by_p_and_lambda(findings)
    if table is None:
        return NOT_RUN
    turns = []
    for grid in table.values():
        for v in (1.5, 1.8, 2.2):
            before, middle, after = (grid[p, v].mean for p in (0.5, 1.0, 2.0))
            turns.append(max(middle - max(before, after), min(before, after) - middle))
    many = sum(turn > LITTLE for turn in turns)
    figures = f"p from 0.5 to 2, λ ≥ 1.5: turns by more than {LITTLE:g} points in {many} of {len(turns)} settings"
    return verdict(many > len(turns) / 2, figures)


def lambda_matters_more_under_noise(findings: Findings) -> Verdict:
    """Checks that at p=3 the best and the worst λ are further apart under heavy noise than under light."""
    table = _by_p_and_lambda(findings)
    if table is None:
        return NOT_RUN
    ranges = {series: _range(cell for (p, _), cell in grid.items() if p == 3.0) for series, grid in table.items()}
    pairs = [(ranges[light], ranges[hard]) for light in SENSITIVITY for hard in HARD if light.case == hard.case]
    return verdict(all(light < hard for light, hard in pairs), f"range over λ at p=3: {_listed(ranges)}")


def does_not_oversmooth(findings: Findings) -> Verdict:
    """Checks that BiGCN loses no more from two to eight layers than a GCN, on clean data and under noise."""
    falls = {}
    for series in EXPERIMENTS["depth"].series:
        cells = {
            (name, depth): findings.cell("depth", series, Rival(f"{name}@{depth}", "fixed"), _only(series))
            for name in ("published", "gcn")
            for depth in (2, 8)
        }
        found = {place: cell.mean for place, cell in cells.items() if cell is not None}
        if len(found) < len(cells):
            return NOT_RUN
        falls[series] = (found["published", 2] - found["published", 8], found["gcn", 2] - found["gcn", 8])
    figures = "; ".join(
        f"{_case(series)}: BiGCN {signed(-own)}, GCN {signed(-other)}" for series, (own, other) in falls.items()
    )
    return verdict(all(own <= other for own, other in falls.values()), figures)


def helps_when_deep(findings: Findings, name: str) -> Verdict:
    """Checks that a variant is better than plain BiGCN with eight layers: the interval lies above zero."""
    gaps = {}
    for series in EXPERIMENTS["depth"].series:
        variant, plain = (
            findings.cell("depth", series, Rival(f"{kind}@8", "fixed"), _only(series)) for kind in (name, "bigcn")
        )
        gap = None if variant is None or plain is None else difference([variant], [plain])
        if gap is None:
            return NOT_RUN
        gaps[series] = gap
    figures = "; ".join(f"{_case(series)}: {gap}" for series, gap in gaps.items())
    return verdict(
        all(gap.low > 0 for gap in gaps.values()), f"eight layers of our form, with it and without: {figures}"
    )


def _varied(findings: Findings, experiment: str, where: tuple[Series, ...]) -> dict[Series, dict[str, Cell]] | None:
    table: dict[Series, dict[str, Cell]] = {}
    for series in where:
        for contender in EXPERIMENTS[experiment].contenders:
            cell = findings.cell(experiment, series, Rival(contender.name, contender.tuning), _only(series))
            if cell is None:
                return None
            table.setdefault(series, {})[contender.name] = cell
    return table


def _by_p_and_lambda(findings: Findings) -> dict[Series, dict[tuple[float, float], Cell]] | None:
    table = _varied(findings, "sensitivity-p-lambda", (*SENSITIVITY, *HARD))
    if table is None:
        return None
    return {series: {_place(name): cell for name, cell in row.items()} for series, row in table.items()}


def _place(name: str) -> tuple[float, float]:
    p, strength = name.partition("=")[2].split(",")
    return float(p), float(strength)


def _only(series: Series) -> float | None:
    return series.values[0] if series.values else None


def _case(series: Series) -> str:
    return " ".join([series.case.replace("-", " "), *(f"{value:g}" for value in series.values)])


def _range(cells: Iterable[Cell]) -> float:
    means = [cell.mean for cell in cells]
    return max(means) - min(means)


def _listed(ranges: dict[Series, float]) -> str:
    return ", ".join(f"{_case(series)} {width:.1f}" for series, width in ranges.items())
