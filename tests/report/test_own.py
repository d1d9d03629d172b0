import io
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.metrics import precision_score, recall_score

from bigcn.datasets.own import read_graph
from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor
from bigcn.experiments.own import MAJORITY, own_result, own_results
from bigcn.experiments.own_runs import run_own
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.store import RunStore
from bigcn.report import write_csv
from bigcn.report.own import own_sections, own_table, score_rows
from bigcn.report.page import render_page

NASTY = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>{{7*7}}"


def tables(names: tuple[str, ...], columns: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    kind = np.arange(80) % len(names)
    table = pd.DataFrame(rng.normal(size=(80, 8)) + kind[:, None], columns=[f"{columns} {i}" for i in range(8)])
    table.insert(0, "id", [f"{columns} {place}" for place in range(80)])
    table["kind"] = np.array(names, dtype=object)[kind]
    source, target = rng.integers(0, 80, (2, 300))
    ids = table["id"].to_numpy()
    return table, pd.DataFrame({"source": ids[source], "target": ids[target]})


def trained(tmp_path_factory, names: tuple[str, ...], columns: str, graph_name: str):
    graph = read_graph(*tables(names, columns), label="kind", name=graph_name)
    settings = {"feature_graph": "spectral", "feature_graph_kwargs": {"rank": 2}}
    fitted = BiGCNClassifier(search=False, max_epochs=8, settings=settings).fit(graph)
    with RunStore(tmp_path_factory.mktemp("store") / "runs.sqlite") as store:
        result = run_own(fitted, graph, store, ("mlp",), command=f"bigcn train '{graph_name}'")
    return fitted, graph, result


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    return trained(tmp_path_factory, ("ash", "elm", "yew"), "trait", "forest")


@pytest.fixture(scope="module")
def nasty_page(tmp_path_factory) -> str:
    names = (NASTY, f"{NASTY}\x00\n2", "$x$ [bold]")
    _, _, result = trained(tmp_path_factory, names, NASTY, NASTY)
    return render_page(result, result.about["command"])


def test_page_has_the_names_of_the_tables(forest):
    _, _, result = forest
    page = render_page(result, "bigcn train")
    for part in (
        "How well can the nodes of forest be labelled?",
        "80 nodes",
        "Class by class",
        "elm",
        "Can the probabilities be believed?",
        "Which features belong together",
        "trait 3",
        "What was tried",
        "Largest class",
    ):
        assert part in page, part
    assert "own:" not in page.replace("own:forest", "")
    assert "when the data are clean" not in page
    assert "<dt>Noise</dt>" not in page


def test_class_by_class_as_scikit_learn_counts(forest):
    fitted, graph, result = forest
    place = fitted._ordered.order[fitted.split_.test].numpy()
    truth = np.array(graph.classes, dtype=object)[graph.data.y.numpy()[place]].astype(str)
    predicted = fitted.predict(graph)[place].astype(str)
    section = own_sections(result)["classes"]
    assert section["names"] == ["ash", "elm", "yew"]
    for row in section["rows"]:
        of = {"labels": [row["name"]], "average": "macro", "zero_division": np.nan}
        recall, precision = recall_score(truth, predicted, **of), precision_score(truth, predicted, **of)
        assert row["recall"] == f"{100 * recall:.1f}"
        assert row["precision"] == ("–" if np.isnan(precision) else f"{100 * precision:.1f}")
        assert row["nodes"] == (truth == row["name"]).sum()
        assert row["cells"] == [((truth == row["name"]) & (predicted == other)).sum() for other in section["names"]]


def test_many_classes_are_listed_by_what_is_confused(forest):
    _, _, result = forest
    spec, run = next((spec, run) for spec, run in result.pairs if spec.model == "bigcn")
    report = {**run.details["own"]["report"], "confusion": [[0, 0, 5], [0, 14, 3], [2, 1, 9]]}
    own = {**run.details["own"], "classes": [f"class {i}" for i in range(15)], "report": report}
    many = own_result([(spec, replace(run, details={"own": own}))])
    section = own_sections(many)["classes"]
    assert not section["matrix"]
    assert section["confused"][0] == {"truth": "class 2", "predicted": "class 1", "nodes": 9}
    assert "class 2 taken for class 1 (9)" in render_page(many, "")


def section_of(page: str, name: str) -> str:
    return page.partition(f'<h2 id="{name}">')[2].partition("</section>")[0]


def test_a_page_explains_the_scores_that_it_shows(forest, tmp_path):
    _, _, result = forest
    graph = read_graph(*tables(("a", "b"), "trait"), features=[f"trait {i}" for i in range(8)], name="forest")
    fitted = BiGCNLinkPredictor(search=False, max_epochs=2).fit(graph)
    with RunStore(tmp_path / "runs.sqlite") as store:
        of_links = run_own(fitted, graph, store, (), command="bigcn train --task link")
    words = {"node": ("Macro-F1", "calibration error"), "link": ("ROC-AUC", "Average precision")}
    for task, other, shown in (("node", "link", result), ("link", "node", of_links)):
        section = section_of(render_page(shown, ""), "scores")
        assert all(word in section for word in words[task])
        assert not any(word in section for word in words[other])


def test_negative_weights_are_told_from_positive_ones(forest):
    _, _, result = forest
    spec, run = next((spec, run) for spec, run in result.pairs if spec.model == "bigcn")
    pages = {}
    for weight in (0.25, -0.25):
        own = {**run.details["own"], "feature_edges": [["a", "b", 0.5], ["a", "c", weight]]}
        pages[weight] = section_of(
            render_page(own_result([(spec, replace(run, details={"own": own}))]), ""), "features"
        )
    assert '+0.250</td><td class="wide"><span class="bar" style="width:50.0%">' in pages[0.25]
    assert '-0.250</td><td class="wide"><span class="bar against" style="width:50.0%">' in pages[-0.25]
    assert "negative" in pages[-0.25]
    assert "negative" not in pages[0.25]


def test_terminal_table_marks_the_best(forest):
    _, _, result = forest
    rows = {row["name"]: row["cells"] for row in score_rows(result)["rows"]}
    best = max(run.metrics["accuracy"] for _, run in result.pairs)
    marked = [name for name, cells in rows.items() if cells[0]["best"]]
    assert marked
    assert all(rows[name][0]["text"] == f"{100 * best:.1f}" for name in marked)
    # Saying the same of every node is well calibrated, and no merit.
    assert not any(cell["best"] for cell in rows["Largest class"])
    screen = io.StringIO()
    Console(file=screen, width=100).print(own_table(result))
    assert "macro-F1" in screen.getvalue()


def test_who_is_out_of_the_contest_is_told(forest):
    _, _, result = forest
    screen = io.StringIO()
    Console(file=screen, width=200).print(own_table(result))
    words = "The largest class says the same of every node: its calibration error is out of the contest."
    assert words in " ".join(screen.getvalue().split())
    assert words in render_page(result, "")
    without = own_result([pair for pair in result.pairs if pair[0].model != MAJORITY])
    screen = io.StringIO()
    Console(file=screen, width=200).print(own_table(without))
    assert "out of the contest" not in screen.getvalue() + render_page(without, "")


def marked(page: str, section: str) -> set[str]:
    """The models with a star in the first column of a table."""
    rows = re.findall(
        r'<tr><th scope="row">([^<]*)</th>\s*<td([^>]*)>',
        page.partition(f'<h2 id="{section}">')[2].partition("</table>")[0],
    )
    assert rows
    return {name for name, attributes in rows if "best" in attributes}


@pytest.mark.parametrize("scores", [(0.9, 0.9, 0.4), (0.9, 0.8, 0.9), (0.5, 0.5, 0.5), (0.4, 0.6, 0.5)])
def test_all_tables_of_a_page_have_the_same_stars(forest, scores):
    _, _, result = forest
    by_model = dict(zip(("bigcn", "mlp", MAJORITY), scores, strict=True))
    pairs = [
        (spec, replace(run, metrics=run.metrics | {"accuracy": by_model[spec.model]})) for spec, run in result.pairs
    ]
    page = render_page(own_result(pairs), "")
    titles = {"bigcn": "BiGCN", "mlp": "MLP", MAJORITY: "Largest class"}
    best = {titles[model] for model, score in by_model.items() if score == max(scores)}
    assert marked(page, "numbers") == marked(page, "scores") == best
    assert "≈" not in page


def test_nothing_of_the_user_reaches_the_page_unescaped(nasty_page):
    assert "<script" not in nasty_page.lower()
    assert "<img src=x" not in nasty_page
    assert "{{7*7}}" in nasty_page  # text, not a template
    assert "49" not in [part.strip() for part in nasty_page.split("&gt;")]
    assert "\x00" not in nasty_page
    assert "&lt;script&gt;" in nasty_page


def test_nasty_names_reach_the_table_as_they_are(tmp_path_factory, tmp_path):
    _, _, result = trained(tmp_path_factory, ("a", "b"), "column", NASTY)
    rows = pd.read_csv(write_csv(tmp_path / "table.csv", result))
    assert set(rows["dataset"]) == {f"own:{NASTY}"}


def test_other_comparisons_have_no_such_sections(result):
    assert own_sections(result) is None


def stored(model: str, epochs: int, strength: float = 1.0, seed: int = 0, width: int = 64, score: float = 0.5):
    """A run as a search with so many epochs leaves it in the store."""
    settings = {
        "model": {"hidden_channels": width, "node_strength": strength},
        "training": {"max_epochs": epochs, "weight_decay": 0.002},
        "weight_decays": [0.0005, 0.007],
    }
    details = {}
    if model == "bigcn":
        del settings["weight_decays"]
        settings |= {"search": True, "training": {"max_epochs": epochs, "weight_decay": 0.0005 * strength}}
        details = {"own": {"trials": [{}, {}]}}
    spec = RunSpec("node", "own:forest", f"split {seed}", "stratified", "clean", None, model, settings, seed, "cpu")
    if model == MAJORITY:
        spec = replace(spec, settings={})
    metrics = {"accuracy": score, "macro_f1": score, "ece": 0.1}
    return spec, RunResult(metrics=metrics, seconds=1.0, started="2026-03-01T12:00:00+00:00", details=details)


def epochs_of(result) -> set[tuple[str, int]]:
    return {(spec.model, spec.settings["training"]["max_epochs"]) for spec, _ in result.pairs if spec.settings}


def test_trainings_of_one_graph_are_not_mixed():
    # The store sorts by settings, and a search may choose any form, so that the order of the two says nothing.
    found = own_results(
        [
            stored("bigcn", 300, strength=1.0),
            stored("bigcn", 20, strength=2.0),
            stored("gcn", 20),
            stored("gcn", 300),
            stored(MAJORITY, 0),
            stored("mlp", 20),
        ]
    )
    assert [epochs_of(result) for result in found] == [
        {("bigcn", 300), ("gcn", 300)},
        {("bigcn", 20), ("gcn", 20), ("mlp", 20)},
    ]
    assert [result.comparison.models for result in found] == [
        ("bigcn", MAJORITY, "gcn"),
        ("bigcn", MAJORITY, "gcn", "mlp"),
    ]


def test_each_split_and_each_width_has_its_own_runs():
    runs = [
        *(stored(model, 20, seed=seed) for model in ("bigcn", MAJORITY, "gcn") for seed in (0, 1)),
        *(stored(model, 20, width=16) for model in ("bigcn", "gcn")),
        stored("mlp", 7),
    ]
    first, second, narrow, alone = own_results(runs)
    for result, seeds in ((first, (0,)), (second, (1,)), (narrow, (0,))):
        assert result.comparison.seeds == seeds
        assert [row["model"] for row in result.rows()] == ["bigcn", MAJORITY, "gcn"]
    assert alone.comparison.models == ("mlp",)


def test_a_search_and_none_are_told_apart(forest):
    _, _, result = forest
    spec, run = next((spec, run) for spec, run in result.pairs if spec.model == "mlp")
    searched = replace(spec, settings={**spec.settings, "weight_decays": [0.0005, 0.007]})
    found = own_results([*result.pairs, (searched, run)])
    assert [len(other.pairs) for other in found] == [len(result.pairs), 1]
    assert found[0].about == result.about


def test_nodes_with_few_neighbours_are_counted(forest):
    fitted, graph, result = forest
    place = fitted._ordered.order[fitted.split_.test]
    source, target = graph.data.edge_index
    degree = np.bincount(target[source != target].numpy(), minlength=80)[place.numpy()]
    counts = result.about["test_nodes"]
    assert counts == {
        "accuracy": len(place),
        "accuracy_low_degree": (degree <= 2).sum(),
        "accuracy_isolated": (degree == 0).sum(),
    }
