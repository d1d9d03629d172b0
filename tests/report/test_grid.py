from dataclasses import replace

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report.grid import BEST, TIE, grid_of
from bigcn.report.tables import legend


def with_scores(result: ComparisonResult, **scores: tuple[float, ...]) -> ComparisonResult:
    """The same runs with these accuracies, seed by seed."""
    seeds = result.comparison.seeds
    pairs = [
        (spec, replace(run, metrics={"accuracy": scores[spec.model][seeds.index(spec.seed)]}))
        for spec, run in result.pairs
    ]
    return ComparisonResult(result.comparison, tuple(pairs))


def test_one_row_a_model_one_column_a_value(result: ComparisonResult) -> None:
    grid = grid_of(result)
    assert grid.models == result.comparison.models
    assert grid.values == result.comparison.values
    assert grid.hardest == 0.9
    assert grid.middle == 0.5
    assert len(grid.cells) == 12
    assert grid.seeds == 3


def test_values_are_sorted(make_result) -> None:
    grid = grid_of(make_result(values=(0.9, 0.1, 0.5)))
    assert grid.values == (0.1, 0.5, 0.9)
    assert [cell["value"] for cell in grid.row("gcn")] == [0.1, 0.5, 0.9]


def test_clean_data_have_one_column(make_result) -> None:
    grid = grid_of(make_result(case="clean", values=()))
    assert grid.values == (None,)
    assert grid.headings == ["score"]


def test_fewest_features_are_hardest(make_result) -> None:
    assert grid_of(make_result(case="feature-rate")).hardest == 0.1


def test_models_that_only_failed_keep_their_row(make_result) -> None:
    grid = grid_of(make_result(failing=(("gcn", 0.1), ("gcn", 0.5), ("gcn", 0.9), ("mlp", 0.5))))
    assert set(grid.models) == {"bigcn:exact+spectral+rank=16", "bigcn:published", "gcn", "mlp"}
    assert [grid.text("gcn", value) for value in grid.values] == ["failed"] * 3
    assert grid.text("mlp", 0.5) == "failed"
    assert grid.text("mlp", 0.1) != "failed"


def test_nothing_but_failures(make_result) -> None:
    grid = grid_of(make_result(models=("gcn",), values=(0.1,), failing=(("gcn", 0.1),)))
    assert grid.models == ("gcn",)
    assert grid.values == (0.1,)
    assert grid.seeds == 0


def test_marks(make_result) -> None:
    alone = grid_of(make_result(seeds=(5,)))
    best = [model for model in alone.models if alone.mark(model, 0.9) == BEST]
    assert best == ["bigcn:exact+spectral+rank=16"]
    # One seed ties with everything, and nothing is marked.
    assert {alone.mark(model, 0.9) for model in alone.models} == {BEST, ""}
    assert grid_of(make_result()).mark("gcn", 0.9) == ""
    close = with_scores(make_result(models=("gcn", "mlp"), values=(0.1,)), gcn=(0.9, 0.8, 0.7), mlp=(0.8, 0.8, 0.7))
    assert [grid_of(close).mark(model, 0.1) for model in ("gcn", "mlp")] == [BEST, TIE]
    assert "≈ cannot be told from the best, seed by seed." in legend(close)


def test_the_same_mean_is_as_good(make_result) -> None:
    # The same sum in another order, but for rounding.
    scores = {"gcn": (0.1, 0.2, 0.3), "mlp": (0.3, 0.15, 0.15), "sgc": (0.2, 0.1, 0.1)}
    result = with_scores(make_result(models=tuple(scores), values=(0.1,)), **scores)
    grid = grid_of(result)
    assert [grid.mark(model, 0.1) for model in scores] == [BEST, BEST, TIE]
    assert (
        "GCN and MLP are best with 20.0 % accuracy, though SGC cannot be told from them over 3 seeds."
        in result.verdict()
    )
    alone = with_scores(make_result(models=tuple(scores), values=(0.1,), seeds=(5,)), **scores)
    assert [grid_of(alone).mark(model, 0.1) for model in scores] == ["", BEST, ""]


def test_wide_ranges_are_logarithmic(make_result) -> None:
    assert not grid_of(make_result()).logarithmic
    assert grid_of(make_result(case="structure-mistakes", values=(1e-4, 1e-3, 1e-2))).logarithmic
    assert not grid_of(make_result(case="structure-mistakes", values=(0.0, 1e-3, 1e-2))).logarithmic
