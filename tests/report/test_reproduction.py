import csv
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pandas as pd
import pytest

from bigcn.experiments.cells import COLUMNS
from bigcn.experiments.closeness import weak_baselines
from bigcn.experiments.contenders import TUNED
from bigcn.experiments.findings import Findings, Rival
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.published import FIXED_LEARNABLE, LINK_TABLE, NODE_TABLE
from bigcn.experiments.records import RunResult
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.report.reproduction import write_reproduction
from bigcn.report.results_default import validation_scores
from bigcn.report.results_figures import Curve, Panel, figure_of, panels, svg
from bigcn.report.results_page import results_page
from bigcn.report.results_reasons import REASONS, TUNED_ABOVE
from bigcn.report.results_tables import beside, escaped, noise_table, published_table

PANELS = {
    "noise-level": 5,
    "noise-rate-link": 4,
    "fixed-learnable": 2,
    "sensitivity-k": 1,
    "sensitivity-p-lambda": 6,
    "depth": 2,
    "node-table": 0,
}


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d", text))


def section(page: str, name: str) -> str:
    return next(part for part in page.split("\n## ") if f"(`{name}`)" in part.partition("\n")[0])


def test_page_has_every_published_number(work):
    page = results_page(Findings(work), {})
    for name, table in (("node-table", NODE_TABLE), ("link-table", LINK_TABLE)):
        rows = [line for line in section(page, name).splitlines() if line.startswith("| ")]
        for model, title in {"gcn": "GCN", "sage": "GraphSAGE", "bigcn:published": "BiGCN (published)"}.items():
            row = next(row for row in rows if row.startswith(f"| {title} |"))
            for cell, number in zip(row.split("|")[2:], table[model].values(), strict=False):
                assert f"({number:.1f}: " in cell
        assert {f"{n:.1f}" for found in table.values() for n in found.values()} <= numbers(section(page, name))
    printed = {f"{n:.1f}" for model in FIXED_LEARNABLE.values() for case in model.values() for n in case.values()}
    assert printed <= numbers(section(page, "fixed-learnable"))
    # And all experiments, with all claims and nothing missing.
    assert [name for name in EXPERIMENTS if f"(`{name}`)" not in page] == []
    assert "Nothing: everything has run." in page
    assert "0 not run. Among them are 16 that the paper has no\nexperiment on" in page


def test_page_says_what_differs_and_by_how_much(work):
    findings = Findings(work)
    frame = pd.DataFrame(cell.row() for cell in findings.cells("node-table"))
    row = frame[(frame.model == "gat") & (frame.tuning == "tuned") & (frame.dataset == "photo")].iloc[0]
    gap = round(100 * row["mean"], 1) - 88.2
    mark = " †" if abs(gap) > 1.5 else ""
    shown = f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f} (88.2: {gap:+.1f}){mark}".replace("-", "−")
    table = published_table(findings, EXPERIMENTS["node-table"], ("tuned",))
    assert shown in next(line for line in table.splitlines() if line.startswith("| GAT "))


def test_where_our_form_is_below_the_paper_other_splits_stand_beside(work):
    findings = Findings(work)
    part = results_page(findings, {}).partition("### Where our form is below the paper")[2].partition("\n## ")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| ")]
    rows = {line[0]: line[1:] for line in lines[2:]}
    frame = pd.DataFrame(c.row() for name in ("node-table", "protocols") for c in findings.cells(name))
    ours = frame[(frame.model == "bigcn") & (frame.tuning == "tuned")].set_index(["dataset", "protocol"])["mean"]
    table = {"Cora": 83.6, "CiteSeer": 71.0, "PubMed": 80.0, "Computers": 87.0, "Photo": 92.6}
    below = {title for title, known in table.items() if 100 * work_mean(frame, title.lower()) < known - 0.05}
    assert below
    assert {name.partition(",")[0] for name in rows} == below
    for (graph, protocol), mean in ours.items():
        title = next(title for title in table if title.lower() == graph)
        if title in below:
            assert rows[f"{title}, {protocol}"][1] == f"{100 * mean:.1f}"
    assert len(rows) == sum(next(t for t in table if t.lower() == graph) in below for graph, _ in ours.index)


def test_why_baselines_are_below_the_paper(work):
    for key, result in work.used().items():
        work.known.runs[key] = replace(result, metrics=result.metrics | {"val_accuracy": 0.7})
    findings = Findings(work)
    part = results_page(findings, {}).partition("### Baselines that are below the paper")[2].partition("\n#")[0]
    lines = [line for line in part.splitlines() if line.startswith("- ")]
    weak = weak_baselines(findings)
    assert len(lines) == len(weak) > 1
    for line, cell in zip(lines, weak, strict=True):
        assert line.startswith(f"- {cell.contender.title}, ")
        assert f", {cell.series.task}s, {'tuned' if cell.contender.tuning == 'tuned' else 'at the paper'}" in line
        if cell.contender.tuning == "tuned" and cell.series.task == "node":
            other = findings.cell("node-table", cell.series, Rival(cell.contender.name, "paper"))
            assert other is not None
            assert f" 70.0 on validation data and {cell.mean:.1f} on test data, " in line
            assert line.endswith(f" the paper's settings have 70.0 and {other.mean:.1f}.")


def work_mean(frame: pd.DataFrame, graph: str) -> float:
    """The mean of our form on the split of the paper's table."""
    return frame[(frame.experiment == "node-table") & (frame.model == "bigcn") & (frame.dataset == graph)][
        "mean"
    ].item()


def test_marks_and_reasons(work):
    page = results_page(Findings(work), {})
    for name in ("node-table", "link-table", "fixed-learnable"):
        part = section(page, name)
        table, _, outside = part.partition("### Outside 1.5 points")
        gaps = re.findall(r": ([+−±]\d+\.\d)\)( †)?", table)
        assert gaps
        for gap, mark in gaps:
            assert (abs(float(gap.strip("±").replace("−", "-"))) > 1.5) == bool(mark)
        body = outside.partition("###")[0]
        # Every mark is answered: by a reason, or by saying that there is none.
        answered = re.findall(r"[+−]\d+\.\d", re.sub(r"\(tuned [^)]*\)", "", body))
        assert sorted(answered) == sorted(gap for gap, mark in gaps if mark)
        lines = [line for line in body.splitlines() if line.startswith("- ")]
        known = tuple(f"- {why[0].upper()}{why[1:]}: " for why in (*REASONS.values(), TUNED_ABOVE, "not explained"))
        assert lines
        assert all(line.startswith(known) for line in lines)


def test_cells(work):
    assert beside(None, None) == "–"
    assert beside(None, 83.61) == "– (83.6)"
    cell = next(cell for cell in Findings(work).cells("node-table") if cell.published is None)
    assert beside(cell, None) == f"{cell.mean:.1f} ± {cell.std:.1f}"
    alone = replace(cell, seeds=cell.seeds[:1])
    assert beside(alone, None) == f"{alone.mean:.1f}"


def test_noise_tables_have_means_and_the_best_in_bold(work):
    findings = Findings(work)
    experiment = EXPERIMENTS["noise-level"]
    table = noise_table(findings, experiment, experiment.series[0])
    assert table is not None
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert lines[0] == ["", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "mean"]
    frame = pd.DataFrame(c.row() for c in findings.cells("noise-level") if c.series.graph == "cora")
    wide = 100 * frame.pivot(index="model", columns="value", values="mean").assign(mean=lambda f: f.mean(axis=1))
    for model, title in {"gcn": "GCN", "bigcn:published": "BiGCN (published)", "appnp": "APPNP"}.items():
        row = next(line for line in lines if line[0] == title)
        assert [cell.strip("*") for cell in row[1:]] == [f"{mean:.1f}" for mean in wide.loc[model]]
    bold = {title for title, *cells in lines if cells[-1].startswith("**")}
    assert wide["mean"].max() == pytest.approx(
        max(wide.loc[m, "mean"] for m, c in ((c.name, c) for c in experiment.contenders) if c.title in bold)
    )
    assert any(line[0] == "BiGCN, as the paper prints it" and line[5] == "74.9" for line in lines)


def test_what_has_not_run_is_missing_and_said_to_be(work):
    for cell in list(work.cells()):
        if cell.series.graph == "dblp" or cell.experiment.name == "depth":
            for seed in cell.seeds:
                work.known.runs.pop(work.known.spec(cell.series, cell.value, cell.candidate, seed)[1], None)
    page = results_page(Findings(work), {})
    missing = page.partition("## What is missing")[2].partition("\n## ")[0]
    assert "- `link-table` (Link prediction on clean data): DBLP (clean): all.\n" in missing
    assert "- `noise-rate-link` (Noise on some nodes, link prediction): DBLP (noise rate): all.\n" in missing
    assert "- `depth` (Deep models): all of it.\n" in missing
    assert "(`depth`)" not in page
    assert "### DBLP" not in page
    assert "– (93.1)" in section(page, "link-table")  # the published number stands alone
    assert "| published form, DBLP, links | within 1 of 93.1 | – | not run |" in page


def test_short_runs_say_so(work):
    assert "**This is a short run: 2 of 10 seeds.**" in results_page(Findings(work), {})
    some = {name: EXPERIMENTS[name] for name in ("sensitivity-k", "fixed-learnable")}
    capped = Reproduction(list(some.values()), work.store, Setting("cpu", SEEDS, 2))
    assert "**This is a short run: 10 of 10 seeds and at most 2 epochs.**" in results_page(Findings(capped), {})
    full = Reproduction(list(some.values()), work.store, Setting("cpu"))
    page = results_page(Findings(full), {})
    assert "short run" not in page
    assert all(f"`{name}` ({e.title}): all of it." in page for name, e in some.items())


def test_names_are_escaped(work):
    contender = EXPERIMENTS["node-table"].contenders[0]
    nasty = replace(contender, title="a|b <script> *x* [y](z)")
    experiment = replace(EXPERIMENTS["node-table"], contenders=(nasty,))
    table = published_table(Findings(work.about([experiment])), experiment, ("paper",))
    assert "a\\|b \\<script\\> \\*x\\* \\[y\\](z)" in table
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
    assert bars == {len(experiment.series) + 2}
    assert escaped("two\nlines") == "two lines"


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


def test_files(work, tmp_path):
    some = work.about([EXPERIMENTS[name] for name in ("node-table", "noise-rate", "fixed-learnable")])
    results, page = tmp_path / "results", tmp_path / "docs" / "results.md"
    written = write_reproduction(some, results, page)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "results/node-table.csv",
        "results/noise-rate.csv",
        "results/fixed-learnable.csv",
        "results/figures/noise-rate.svg",
        "results/figures/fixed-learnable.svg",
        "docs/results.md",
    ]
    with (results / "noise-rate.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS[1:]
    expected = [row for row in some.rows() if row["experiment"] == "noise-rate"]
    assert [float(row["mean"]) for row in rows] == pytest.approx([row["mean"] for row in expected], abs=1e-6)
    assert [row["chosen"] for row in rows] == [row["chosen"] for row in expected]
    for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / target).is_file()
    before = {path: path.read_bytes() for path in written}
    write_reproduction(some, results, page)
    assert {path: path.read_bytes() for path in written} == before
    assert not [p for p in write_reproduction(some, tmp_path / "other", None) if p.suffix == ".md"]


def test_the_default_is_the_best_on_validation_where_everyone_has_run(work):
    ours = next(contender for contender in TUNED if contender.name == "bigcn")
    places = {series.decided_at for series in EXPERIMENTS["noise-level"].series}
    favourite = ours.candidates[4]
    for number, (series, value) in enumerate(sorted(places, key=str)):
        for candidate in ours.candidates:
            for seed in work.setting.choice_seeds:
                score = 0.9 if candidate is favourite else 0.5 + 0.01 * number
                found = RunResult(
                    metrics={"accuracy": 0.1, "val_accuracy": score}, seconds=1.0, started="2026-03-01T12:00:00Z"
                )
                work.known.runs[work.known.spec(series, value, candidate, seed)[1]] = found
    scores, asked = validation_scores(Findings(work), "node")
    assert asked == 15
    assert {len(row) for row in scores.values()} == {15}
    page = results_page(Findings(work), {})
    shown = page.partition("## The shipped default")[2].partition("### Links")[0]
    assert "### Nodes, 15 of 15 places" in shown
    rows = [line for line in shown.splitlines() if line.startswith("| `")]
    assert len(rows) == len(ours.candidates)
    assert favourite.describe() in rows[0]
    (series, value), *_ = places
    del work.known.runs[work.known.spec(series, value, favourite, work.setting.seeds[0])[1]]
    assert "### Nodes, 14 of 15 places" in results_page(Findings(work), {})


@pytest.mark.parametrize(("name", "trouble"), [("structure-mistakes", "wrong edges"), ("link-table", "none")])
def test_the_overview_names_the_best_on_average(work, name, trouble):
    overview = results_page(Findings(work), {}).partition("## Who is ahead")[2].partition("\n## ")[0]
    part = overview.partition("### Links")[2 if "link" in name else 0]
    line = next(line for line in part.splitlines() if line.startswith(f"| {trouble} |"))
    rows = pd.DataFrame(work.about([EXPERIMENTS[name]]).rows())
    rows = rows[(rows.tuning == "tuned") | (rows.model == "bigcn:published")]
    titles = {c.name: c.title for c in EXPERIMENTS[name].contenders if c.tuning == "tuned" or "published" in c.name}
    for cell, (_, of_graph) in zip(line.split(" | ")[1:], rows.groupby("dataset", sort=False), strict=True):
        means = 100 * of_graph.groupby("model")["mean"].mean()
        ours, best = means["bigcn"], means.idxmax()
        others = means.drop("bigcn").max()
        assert cell.strip(" |*").replace("**", "").startswith(f"{titles[best]} {means[best]:.1f} (")
        assert f"{abs(ours - others):.1f})" in cell


def test_the_overview_is_silent_about_what_has_not_run(work):
    spec = next(s for s in work.reporting() if (s.model, s.dataset, s.case) == ("gin", "cora", "structure-mistakes"))
    del work.known.runs[spec.key]
    line = next(line for line in results_page(Findings(work), {}).splitlines() if line.startswith("| wrong edges |"))
    assert line.split(" | ")[1] == "–"
    assert "–" not in line.partition(" | – | ")[2]
