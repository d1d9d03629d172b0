"""The numbers of tables: scores as text and back, and differences of what has no single seeds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bigcn.experiments.cells import Cell, Measured, difference, write_scores
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.records import RunResult
from bigcn.experiments.statistics import unpaired_interval


def test_an_average_over_cells_is_no_surer_than_its_seeds_allow():
    """Whatever the cells have in common, the interval of independent runs is as wide as what their seeds say."""
    experiment = EXPERIMENTS["noise-rate"]
    series, contender = experiment.series[0], experiment.contenders[0]
    generator = np.random.default_rng(0)

    def cells(shift: float) -> list[Cell]:
        common = generator.normal(size=len(SEEDS))
        out = []
        for value in series.values:
            scores = dict(zip(SEEDS, 0.7 + shift + 0.01 * common, strict=True))
            measured = Measured.of(
                "accuracy",
                SEEDS,
                [
                    RunResult(metrics={"accuracy": s}, seconds=1.0, started="2026-03-01T12:00:00Z")
                    for s in scores.values()
                ],
            )
            out.append(Cell(experiment, series, contender, contender.candidates[0], value, SEEDS, measured))
        return out

    first, second = cells(0.02), cells(0.0)
    averages = [[100 * np.mean([c.scores()[seed] for c in side]) for seed in SEEDS] for side in (first, second)]
    interval = stats.ttest_ind(*averages, equal_var=False).confidence_interval(0.95)
    kept = [[replace(c, measured=replace(c.measured, by_seed={})) for c in side] for side in (first, second)]
    gap = difference(*kept)
    assert gap is not None
    assert (gap.low, gap.high) == pytest.approx((interval.low, interval.high), abs=3e-4)  # six digits of a fraction


@given(st.lists(st.none() | st.floats(0, 1), min_size=2, max_size=12))
def test_scores_survive_being_written(scores):
    seeds = tuple(range(len(scores)))
    known = {seed: round(score, 6) for seed, score in enumerate(scores) if score is not None}
    row = {"metric": "accuracy", "mean": "0.5", "std": "0", "validation": "", "isolated": "", "low_degree": ""}
    row |= {"epochs": "1", "seconds": "1", "scores": write_scores(known, seeds)}
    assert Measured.from_row(row, seeds).by_seed["accuracy"] == known
    if known:
        with pytest.raises(ValueError, match=f"{len(seeds)} scores for {len(seeds) + 1} seeds"):
            Measured.from_row(row, (*seeds, 999))


def test_unpaired_intervals_need_a_spread():
    with pytest.raises(ValueError, match="two runs"):
        unpaired_interval((0.5, 0.4), (0.0, 0.0), (2, 1))


def test_unpaired_intervals_are_those_of_scipy():
    first, second = [0.82, 0.85, 0.81, 0.84, 0.9], [0.7, 0.72, 0.65]
    found = unpaired_interval(*zip(*((np.mean(s), np.std(s, ddof=1)) for s in (first, second)), strict=True), (5, 3))
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found == pytest.approx((np.mean(first) - np.mean(second), *interval))
