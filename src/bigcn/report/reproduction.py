"""What `bigcn reproduce` writes: a table for each experiment, the figures, and the page with every number."""

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bigcn.experiments.cells import COLUMNS
from bigcn.experiments.findings import Findings
from bigcn.experiments.recorded import CANDIDATE_COLUMNS, CANDIDATES, CAP, COSTS
from bigcn.experiments.reproduction import Reproduction
from bigcn.files import write_bytes, write_text
from bigcn.report.results_cost import costs
from bigcn.report.results_figures import figure_of, panels, svg
from bigcn.report.results_opening import GUIDE
from bigcn.report.results_page import results_page
from bigcn.report.results_summary import SUMMARY, TITLE, summary_panels


def write_reproduction(work: Reproduction, results: Path, page: Path | None) -> list[Path]:
    """Writes tables, figures and page from all that has run or is recorded, and returns their paths.

    Args:
        work (Reproduction): The experiments.
        results (Path): The folder for tables; figures go to a folder within it.
        page (Path, optional): The page, or :obj:`None` to leave it.
    """
    findings = Findings(work)
    written, figures = [], {}
    # By this, read_record tells that these are not the paper's numbers of epochs.
    cap = {} if work.setting.max_epochs is None else {CAP: work.setting.max_epochs}
    for experiment in work.experiments:
        rows = [cell.row() | cap for cell in findings.cells(experiment.name)]
        if not rows:
            continue
        written.append(_write_table(results / f"{experiment.name}.csv", (*COLUMNS[1:], *cap), rows))
        if drawn := panels(findings, experiment):
            figures[experiment.name] = write_bytes(
                results / "figures" / f"{experiment.name}.svg", svg(figure_of(drawn, experiment.title))
            )
    if drawn := summary_panels(findings):
        figures[SUMMARY] = write_bytes(
            results / "figures" / f"{SUMMARY}.svg", svg(figure_of(drawn, TITLE, columns=5, scale=0.66))
        )
    if not work.setting.is_short:  # which is no record
        written.append(_write_table(results / CANDIDATES, CANDIDATE_COLUMNS, work.candidates()))
        written.append(write_text(results / COSTS, json.dumps(costs(work), indent=1) + "\n"))
    written += figures.values()
    if page is not None:
        places = {name: _seen_from(path, page) for name, path in figures.items()}
        guide = GUIDE if (page.parent / "reproduce.md").exists() else "`docs/reproduce.md`"
        written.append(write_text(page, results_page(findings, places, _named(results), guide)))
    return written


def _named(folder: Path) -> str:
    """Names a folder without telling where on this machine it is."""
    full, here = folder.resolve(), Path.cwd()
    return full.relative_to(here).as_posix() if full.is_relative_to(here) else full.name


def _write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Path:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write_text(path, text.getvalue())


def _seen_from(path: Path, page: Path) -> str:
    return Path(os.path.relpath(os.path.abspath(path), os.path.abspath(page.parent))).as_posix()
