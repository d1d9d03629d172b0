from dataclasses import replace

import pytest

from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.own import MAJORITY, own_results
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.report.differences import tell_apart
from bigcn.report.page import render_page


def titles(*results: ComparisonResult) -> list[str]:
    return [result.comparison.title for result in tell_apart(results)]


def trained(
    seed: int = 0, data: str = "", day: int = 1, search: bool = False, decay: float = 0.002, **training: object
) -> ComparisonResult:
    """A training of a graph of one's own, beside the largest class."""
    settings = {"search": search, "training": {"max_epochs": 300, "curves": False, "weight_decay": decay} | training}
    own = {"chosen": "the defaults", "trials": [{}, {}] if search else [{}]}
    spec = RunSpec("node", "own:trees", f"{data}{seed}", "stratified", "clean", None, "bigcn", settings, seed, "cpu")
    run = RunResult(metrics={"accuracy": 0.5}, seconds=1.0, started=f"2026-03-0{day}T12:00:00Z", details={"own": own})
    (result,) = own_results([(spec, run), (replace(spec, model=MAJORITY, settings={}), replace(run, details={}))])
    return result


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({}, {"max_epochs": 20}, ("at most 300 epochs", "at most 20 epochs")),
        ({}, {"search": True, "decay": 0.007}, ("without a search", "with a search")),
        ({}, {"decay": 0.007}, ("weight decay 0.002", "weight decay 0.007")),
        ({"max_epochs": 20, "seed": 3}, {"seed": 4}, ("at most 20 epochs, seed 3", "at most 300 epochs, seed 4")),
        ({"data": "old"}, {"data": "new"}, ("data old0", "data new0")),
        ({"curves": True}, {"day": 2}, ("run 2026-03-01 12:00:00", "run 2026-03-02 12:00:00")),
    ],
)
def test_only_what_differs_is_named(first, second, words) -> None:
    assert titles(trained(**first), trained(**second)) == [f"trees, node classification, {word}" for word in words]


def test_what_is_alone_keeps_its_title(make_result) -> None:
    alone = trained()
    assert tell_apart([alone]) == [alone]
    assert titles(alone, make_result()) == ["trees, node classification", "Digits, node classification, noise level"]


def test_three_of_which_two_differ_in_little() -> None:
    found = titles(trained(), trained(max_epochs=20), trained(max_epochs=20, data="new"))
    assert len(set(found)) == 3
    assert found[0].endswith(", at most 300 epochs")
    assert [title.partition("20 epochs")[2] for title in found[1:]] == [", data 0", ", data new0"]


def test_comparisons(make_result) -> None:
    usual, short = make_result(), make_result(training={"max_epochs": 20})
    first, second = tell_apart([usual, short])
    assert first.comparison.title == "Digits, node classification, noise level, at most 10000 epochs"
    assert second.comparison.title == "Digits, node classification, noise level, at most 20 epochs"
    assert (second.rows(), second.verdict()) == (short.rows(), short.verdict())
    assert [spec.key for spec in second.comparison.specs()] == [spec.key for spec, _ in short.pairs]
    assert "<title>Digits, node classification, noise level, at most 20 epochs</title>" in render_page(second, "")
    # Models that only one of them has say nothing about what differs.
    assert titles(usual, make_result(models=("gcn", "mlp"), training={"max_epochs": 20}))[1].endswith(
        "level, at most 20 epochs"
    )
    links = [make_result(task="link", negatives=negatives) for negatives in ("fresh", "fixed")]
    assert [title.rpartition(", ")[2] for title in titles(*links)] == ["fresh negatives", "fixed negatives"]
    exact = titles(usual, make_result(training={"deterministic": True}))
    assert [title.rpartition(", ")[2] for title in exact] == ["noise level", "deterministic algorithms"]
