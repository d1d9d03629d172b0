from dataclasses import asdict

import pytest

from bigcn import BiGCN
from bigcn.estimators.candidates import DEFAULT_MODEL, DEFAULT_TRAINING, NO_SEARCH, SHORT_SEARCH, Plan, Trial, best_of
from bigcn.feature_graphs import FEATURE_GRAPHS
from bigcn.training import TrainConfig


def plan(size: int = 1000, features: int = 20, search: bool = True) -> Plan:
    return Plan(DEFAULT_MODEL, asdict(TrainConfig(**DEFAULT_TRAINING["node"])), size, features, search)


def trial(candidate, score: float, loss: float = 0.0) -> Trial:
    return Trial(**vars(candidate), score=score, loss=loss, best_epoch=1, epochs=1, seconds=0.0)


def run(plan: Plan, scores) -> list[Trial]:
    trials: list[Trial] = []
    while (candidate := plan.next(trials)) is not None:
        trials.append(trial(candidate, scores(candidate)))
    return trials


def test_quick_is_the_default_alone():
    (only,) = run(plan(search=False), lambda candidate: 1.0)
    assert only.model == DEFAULT_MODEL
    assert plan(search=False).total == 1


@pytest.mark.parametrize("features", [3, 20, 600])
@pytest.mark.parametrize("size", [100, SHORT_SEARCH + 1, NO_SEARCH, NO_SEARCH + 1])
def test_as_many_as_announced_each_of_them_sound(size, features):
    trials = run(plan(size, features), lambda candidate: 0.5)
    assert len(trials) == plan(size, features).total <= 12
    assert len({(str(t.model), str(t.training)) for t in trials}) == len(trials)
    for t in trials:
        BiGCN(features, out_channels=3, **t.model)
        TrainConfig(**t.training)
        assert t.model["feature_graph"] in FEATURE_GRAPHS
    if size > NO_SEARCH:
        assert len(trials) == 1
    if size > SHORT_SEARCH:
        assert len(trials) < plan(100, features).total


def test_later_ones_stand_on_the_best_so_far():
    def wins(candidate):
        return 0.9 if candidate.model["node_strength"] == 8 and candidate.training["weight_decay"] > 1e-3 else 0.5

    trials = run(plan(), wins)
    by_graph = {t.model["feature_graph"]: t for t in trials}
    assert {"none", "spectral", "correlation", "uniform"} == set(by_graph)
    # Nothing above 0.5 before the decay was tried, so the first strength went on; its decay is the one that differs.
    decayed = trials[5]
    assert (decayed.model["node_strength"], decayed.training["weight_decay"]) == (0.5, 7e-3)
    for name in ("spectral", "correlation", "uniform"):
        assert by_graph[name].model["node_strength"] == 0.5


def test_ties_are_decided_by_the_loss_then_by_order():
    first = plan().next([])
    trials = [trial(first, 0.8, 0.5), trial(first, 0.9, 0.7), trial(first, 0.9, 0.4), trial(first, 0.9, 0.4)]
    assert best_of(trials) == 2
