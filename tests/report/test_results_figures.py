"""The figures of the reproduction, against the cells they are drawn from."""

import xml.etree.ElementTree as ET

import pandas as pd
import pytest

from bigcn.experiments.findings import Findings
from bigcn.experiments.paper import EXPERIMENTS
from bigcn.report.results_figures import Curve, Panel, figure_of, panels, svg

PANELS = {
    "noise-level": 5,
    "noise-rate-link": 4,
    "fixed-learnable": 2,
    "sensitivity-k": 1,
    "sensitivity-p-lambda": 6,
    "depth": 2,
    "node-table": 0,
}


@pytest.mark.parametrize(("name", "count"), PANELS.items())
def test_figures(work, name, count):
    findings, experiment = Findings(work.about([EXPERIMENTS[name]])), EXPERIMENTS[name]
    drawn = panels(findings, experiment)
    assert len(drawn) == count
    if not drawn:
        return
    for panel in drawn:
        assert len({curve.style for curve in panel.curves}) == len(panel.curves)
        assert max(curve.style for curve in panel.curves) < 10, "there are ten colours"
        assert all(len(curve.where) == len(curve.mean) == len(curve.std) > 1 for curve in panel.curves)
    first, again = (svg(figure_of(panels(findings, experiment), experiment.title)) for _ in range(2))
    assert first == again
    assert len(first) < 150_000
    text = " ".join(ET.fromstring(first).itertext())
    assert all(curve.label in text for panel in drawn for curve in panel.curves)


def test_a_panel_ends_above_what_lies_far_below_and_names_it():
    def curve(label: str, style: int, *mean: float) -> Curve:
        return Curve(label, style, [0.1, 0.5, 0.9], list(mean), [1.0] * 3)

    near = [curve("BiGCN", 1, 85, 84, 83), curve("GCN", 3, 86, 84, 80), curve("APPNP", 2, 85, 82, 79)]
    far = [curve("MLP", 9, 60, 50, 40), curve("GIN", 8, 55, 54, 70)]

    def drawn(curves: list[Curve]) -> tuple[float, float, str]:
        (axes, *_) = figure_of([Panel("Photo", "noise", "accuracy, %", curves, cuts=True)], "Noise").axes
        return *axes.get_ylim(), " ".join(text.get_text() for text in axes.texts)

    low, high, words = drawn([*far, *near])
    assert 70 < low < 79
    assert 86 < high < 90
    assert words == "below: GIN 54 to 70,\nMLP 40 to 60"
    flat = [curve("BiGCN", 1, 85, 85, 85), curve("GCN", 3, 85, 85, 85), curve("APPNP", 2, 84.9, 84.9, 84.9)]
    for some in (near, [*near, curve("MLP", 9, 80, 76, 75)], [near[0], *far], flat):
        low, high, words = drawn(some)
        assert low < min(min(c.mean) for c in some)
        assert words == ""


@pytest.mark.parametrize("name", [name for name, count in PANELS.items() if count])
def test_our_line_alone_is_heavy_and_settings_are_never_cut_off(work, name):
    drawn = panels(Findings(work), EXPERIMENTS[name])
    assert {curve.label for panel in drawn for curve in panel.curves if curve.heavy} <= {"BiGCN"}
    assert any(curve.heavy for panel in drawn for curve in panel.curves) == name.startswith("noise")
    assert all(panel.cuts == EXPERIMENTS[name].figure for panel in drawn)


def test_curves_hold_what_was_measured(work):
    findings = Findings(work)
    panel = next(p for p in panels(findings, EXPERIMENTS["noise-level"]) if p.title == "PubMed")
    curve = next(curve for curve in panel.curves if curve.label == "SGC")
    frame = pd.DataFrame(c.row() for c in findings.cells("noise-level"))
    frame = frame[(frame.model == "sgc") & (frame.dataset == "pubmed")]
    assert curve.where == frame["value"].tolist()
    assert curve.mean == pytest.approx((100 * frame["mean"]).tolist())
    assert curve.std == pytest.approx((100 * frame["std"]).tolist())
    depth = panels(findings, EXPERIMENTS["depth"])[0]
    assert {tuple(curve.where) for curve in depth.curves} == {(2.0, 4.0, 6.0, 8.0)}
    crossed = panels(findings, EXPERIMENTS["sensitivity-p-lambda"])[0]
    assert [curve.label for curve in crossed.curves] == [f"λ = {v}" for v in ("0.4", "0.8", "1.2", "1.5", "1.8", "2.2")]
