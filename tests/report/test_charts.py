from dataclasses import replace

import pytest

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report.charts import Chart, chart_of, close_up, nice_ticks
from bigcn.report.grid import grid_of


def draw(result: ComparisonResult) -> Chart:
    return chart_of(result, grid_of(result))


def test_one_mark_for_every_score(result: ComparisonResult) -> None:
    chart = draw(result)
    assert chart.kind == "curves"
    assert [len(series.marks) for series in chart.series] == [3, 3, 3, 3]
    for series in chart.series:
        xs, ys = [mark.x for mark in series.marks], [mark.y for mark in series.marks]
        assert xs == sorted(xs)
        assert ys == sorted(ys)  # scores fall with noise, and down is up in a picture
        for mark in series.marks:
            assert chart.left < mark.x < chart.right
            assert chart.top <= mark.high <= mark.y <= mark.low <= chart.bottom


def test_positions_are_to_scale(result: ComparisonResult) -> None:
    chart = draw(result)
    low, high = chart.y_ticks[0], chart.y_ticks[-1]
    for series, model in zip(chart.series, result.comparison.models, strict=True):
        for mark, cell in zip(series.marks, grid_of(result).row(model), strict=True):
            share = (mark.y - low.at) / (high.at - low.at)
            assert float(low.text) + share * (float(high.text) - float(low.text)) == pytest.approx(100 * cell["mean"])
    xs = [mark.x for mark in chart.series[0].marks]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1])


def test_lines_break_where_runs_failed(make_result) -> None:
    chart = draw(make_result(failing=(("gcn", 0.5),)))
    (series,) = [series for series in chart.series if series.name == "GCN"]
    assert len(series.marks) == 2
    assert series.line.count("M") == 2


def test_single_run_has_no_band(make_result) -> None:
    assert all(series.band == "" for series in draw(make_result(seeds=(5,))).series)


def test_clean_data_are_dots_the_best_on_top(make_result) -> None:
    chart = draw(make_result(case="clean", values=()))
    assert chart.kind == "dots"
    assert [len(series.marks) for series in chart.series] == [1, 1, 1, 1]
    assert [len(series.marks[0].seeds) for series in chart.series] == [3, 3, 3, 3]
    means = [series.marks[0].x for series in chart.series]
    assert means == sorted(means, reverse=True)


def test_tips_tell_the_numbers(result: ComparisonResult) -> None:
    tip = draw(result).series[0].marks[0].text
    assert tip == "BiGCN (exact, spectral, rank=16) at 0.1: 95.2 ± 0.4 % over 3 seeds, best"


def test_close_up_leaves_out_who_falls_behind(make_result) -> None:
    chart = close_up(grid_of(make_result()))
    assert chart is None  # they fall behind one by one
    crowd = make_result(models=("bigcn", "gcn", "mlp"))
    pairs = tuple(
        (spec, run) if spec.model == "mlp" else (spec, _with_score(run, 0.95 - 0.01 * (spec.value or 0)))
        for spec, run in crowd.pairs
    )
    chart = close_up(grid_of(ComparisonResult(crowd.comparison, pairs)))
    assert chart is not None
    assert [series.name for series in chart.series] == ["BiGCN", "GCN"]
    assert [series.place for series in chart.series] == [0, 1]  # they look as in the whole chart


def _with_score(run, score):
    return replace(run, metrics={"accuracy": score})


@pytest.mark.parametrize(("low", "high"), [(0, 100), (99.9, 100), (12.34, 12.35), (0, 0.5)])
def test_ticks_enclose(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 9


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_extreme_scores_can_be_drawn(make_result, score: float) -> None:
    plain = make_result(models=("gcn",))
    chart = draw(ComparisonResult(plain.comparison, tuple((s, _with_score(r, score)) for s, r in plain.pairs)))
    assert len(chart.y_ticks) >= 2
    assert all(chart.top <= mark.y <= chart.bottom for mark in chart.series[0].marks)


def test_nothing_to_draw(make_result) -> None:
    lost = make_result(models=("gcn",), failing=(("gcn", 0.1), ("gcn", 0.5), ("gcn", 0.9)))
    assert [series.marks for series in draw(lost).series] == [()]
    assert close_up(grid_of(lost)) is None
