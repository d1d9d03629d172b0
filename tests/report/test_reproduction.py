import csv
import re
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
from bigcn.report.results_page import results_page
from bigcn.report.results_reasons import REASONS, TUNED_ABOVE, WITHIN_SPREADS
from bigcn.report.results_tables import beside, escaped, noise_table, published_table


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
        whys = (*REASONS.values(), TUNED_ABOVE, WITHIN_SPREADS, "not explained")
        known = tuple(f"- {why[0].upper()}{why[1:]}: " for why in whys)
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
