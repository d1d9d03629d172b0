"""The figure that sums up, against the tables it is drawn from."""

import pandas as pd
import pytest

from bigcn.experiments.findings import Findings
from bigcn.experiments.paper import EXPERIMENTS
from bigcn.report.reproduction import write_reproduction
from bigcn.report.results_summary import SUMMARY, summary_panels


def test_the_best_baseline_is_another_at_each_amount(work):
    findings = Findings(work)
    drawn = summary_panels(findings)
    assert [panel.title for panel in drawn] == ["Cora", "CiteSeer", "PubMed", "Computers", "Photo"] * 2
    for name, panels in (("noise-level", drawn[:5]), ("structure-mistakes", drawn[5:])):
        frame = pd.DataFrame(cell.row() for cell in findings.cells(name))
        for panel in panels:
            here = frame[frame["dataset"] == panel.title.lower()]
            others = here[~here["model"].str.startswith("bigcn") & (here["tuning"] == "tuned")]
            assert others["model"].nunique() == 8
            ours, published, gcn, best = panel.curves
            assert best.mean == pytest.approx((100 * others.groupby("value")["mean"].max()).tolist())
            for curve, model in ((ours, "bigcn"), (published, "bigcn:published"), (gcn, "gcn")):
                assert curve.mean == pytest.approx((100 * here[here["model"] == model]["mean"]).tolist())
            assert [curve.heavy for curve in panel.curves] == [True, False, False, False]


def test_nothing_is_drawn_while_something_lacks(work, tmp_path):
    some = work.about([EXPERIMENTS["noise-level"]])
    assert not summary_panels(Findings(some))
    written = write_reproduction(some, tmp_path, tmp_path / "page.md")
    assert SUMMARY not in {path.stem for path in written}
    assert SUMMARY not in (tmp_path / "page.md").read_text()


def test_the_page_shows_it(work, tmp_path):
    some = work.about([EXPERIMENTS[name] for name in ("noise-level", "structure-mistakes")])
    written = write_reproduction(some, tmp_path, tmp_path / "page.md")
    assert tmp_path / "figures" / "summary.svg" in written
    # Who is ahead is told where everything has run in full; the figure stands there.
    text = (tmp_path / "page.md").read_text()
    assert text.index("## Who is ahead") < text.index("(figures/summary.svg)") < text.index("### Nodes")
