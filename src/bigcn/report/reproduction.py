"""What `bigcn reproduce` writes: a table for each experiment, the figures, and the page with every number."""

import csv
import io
from pathlib import Path

from bigcn.experiments.reproduction import COLUMNS, Reproduction
from bigcn.files import write_text


def write_reproduction(work: Reproduction, results: Path, page: Path | None) -> list[Path]:
    """Writes tables, figures and page from all that has run, and returns their paths.

    Args:
        work (Reproduction): The experiments.
        results (Path): The folder for tables; figures go to a folder within it.
        page (Path, optional): The page, or :obj:`None` to leave it.
    """
    rows = work.rows()
    written = []
    for experiment in work.experiments:
        found = [row for row in rows if row["experiment"] == experiment.name]
        if not found:
            continue
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS[1:], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
        path = results / f"{experiment.name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text.getvalue())
        written.append(path)
    return written
