import inspect
from dataclasses import asdict, replace

import pytest
import torch
from torch_geometric.data import Data

from bigcn import BiGCN, BiGCNClassifier, BiGCNConv
from bigcn.estimators.candidates import (
    DEFAULT_MODEL,
    DEFAULT_TRAINING,
    LOCAL_SEARCH,
    NO_SEARCH,
    SHORT_SEARCH,
    Plan,
    Trial,
    best_of,
)
from bigcn.experiments.contenders import TUNED
from bigcn.feature_graphs import FEATURE_GRAPHS
from bigcn.nn.registry import ModelContext, get_model
from bigcn.training import TrainConfig


def plan(size: int = 1000, features: int = 40, search: bool = True, model: dict | None = None) -> Plan:
    return Plan(model or DEFAULT_MODEL["node"], asdict(TrainConfig(**DEFAULT_TRAINING["node"])), size, features, search)


def trial(candidate, score: float, loss: float = 0.0) -> Trial:
    return Trial(**vars(candidate), score=score, loss=loss, best_epoch=1, epochs=1, seconds=0.0)


def run(plan: Plan, scores) -> list[Trial]:
    trials: list[Trial] = []
    while (candidate := plan.next(trials)) is not None:
        trials.append(trial(candidate, scores(candidate)))
    return trials


def test_quick_is_the_default_alone():
    (only,) = run(plan(search=False), lambda candidate: 1.0)
    assert only.model == DEFAULT_MODEL["node"]
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
        return 0.9 if candidate.model["node_strength"] == 5 and candidate.training["weight_decay"] > 5e-3 else 0.5

    trials = run(plan(), wins)
    by_graph = {t.model["feature_graph"]: t for t in trials}
    assert {"none", "spectral", "correlation", "uniform"} == set(by_graph)
    # Nothing above 0.5 before the decay was tried, so the first strength went on; its decay is the one that differs.
    decayed = trials[5]
    assert (decayed.model["node_strength"], decayed.training["weight_decay"]) == (0.5, 7e-3)
    for name in ("none", "correlation", "uniform"):
        assert by_graph[name].model["node_strength"] == 0.5


def test_other_uses_of_the_filter_are_tried():
    by_name = {t.name: t.model for t in run(plan(), lambda candidate: 0.5)}
    assert by_name["exact, node strength 0.5, keeping more of each node"]["p"] == 0.1
    after = by_name["smoothing after prediction"]
    assert (after["feature_graph"], after["node_strength"], after["hidden_node_strength"]) == ("none", 0.0, 10.0)
    nearest = by_name["the nearest nodes alone"]
    assert (nearest["top"], nearest["node_strength"], nearest["p"], nearest["iterations"]) == (64, 9.0, 30.0, 1)
    training = asdict(TrainConfig(**DEFAULT_TRAINING["link"]))
    links = run(Plan(DEFAULT_MODEL["link"], training, 1000, 40, task="link"), lambda candidate: 0.5)
    assert [t.model["num_layers"] for t in links if t.name.endswith("one layer")] == [1]
    alone = run(
        Plan({**DEFAULT_MODEL["link"], "num_layers": 1}, training, 1000, 40, task="link"), lambda candidate: 0.5
    )
    assert len(alone) == len(links) - 1


def test_a_local_filter_is_for_small_graphs():
    for size, there in ((LOCAL_SEARCH, True), (LOCAL_SEARCH + 1, False)):
        trials = run(plan(size), lambda candidate: 0.9 if candidate.model.get("top") else 0.5)
        assert any(t.model.get("top") for t in trials) == there
    # What stands on it keeps it.
    assert all(t.model["top"] == 64 for t in run(plan(), lambda c: 0.9 if c.model.get("top") else 0.5)[9:])


def test_a_local_filter_is_for_undirected_graphs():
    trials = run(replace(plan(), undirected=False), lambda candidate: 0.5)
    assert not any(t.model.get("top") for t in trials)
    x = torch.randn(60, 8)
    data = Data(x=x, edge_index=torch.randint(60, (2, 150)), y=(x[:, 0] > 0).long())
    found = BiGCNClassifier(max_epochs=2).fit(data)
    assert len(found.trials_) == found.plan().total
    assert not any(t.model.get("top") for t in found.trials_)


def test_the_search_may_start_from_a_local_filter():
    trials = run(plan(model=DEFAULT_MODEL["node"] | {"top": 8}), lambda candidate: 0.5)
    for t in trials:
        BiGCN(40, out_channels=3, **t.model)


def test_feature_graphs_come_beside_a_use_that_won():
    trials = run(plan(), lambda candidate: 0.9 if candidate.model.get("hidden_node_strength") == 10.0 else 0.5)
    assert [t.model["feature_graph"] for t in trials[9:]] == ["spectral", "correlation", "uniform"]
    assert all(t.model["node_strength"] == 0.0 for t in trials[9:])


@pytest.mark.parametrize(
    ("features", "changes", "tried"),
    [
        (40, {}, ["none", "correlation", "uniform"]),
        (40, {"feature_graph": "none"}, ["spectral", "correlation", "uniform"]),
        (40, {"feature_graph": "uniform"}, ["none", "correlation"]),
        (600, {}, ["none", "uniform"]),
        # Of few features a spectral graph keeps all directions, as none does; with a rank it does not.
        (20, {}, ["spectral", "correlation", "uniform"]),
        (20, {"feature_graph_kwargs": {"rank": 7}}, ["none", "correlation", "uniform"]),
        (5, {}, []),
    ],
)
def test_feature_graphs_that_are_tried_differ_from_the_one_that_is_there(features, changes, tried):
    trials = run(plan(features=features, model=DEFAULT_MODEL["node"] | changes), lambda candidate: 0.5)
    last = [t.model for t in trials[9:]]
    assert [model["feature_graph"] for model in last] == tried
    kept = {model["feature_graph"]: model["feature_graph_kwargs"] for model in last}
    assert all(kwargs is None for name, kwargs in kept.items() if name != "spectral")
    if "spectral" in kept:
        assert 0 < kept["spectral"]["rank"] < features


def test_the_search_tries_the_default_itself():
    for model in (*DEFAULT_MODEL.values(), DEFAULT_MODEL["node"] | {"node_strength": 7.5}):
        trials = run(plan(model=model), lambda candidate: 0.5)
        assert any(t.model == model for t in trials)


def test_ties_are_decided_by_the_loss_then_by_order():
    first = plan().next([])
    trials = [trial(first, 0.8, 0.5), trial(first, 0.9, 0.7), trial(first, 0.9, 0.4), trial(first, 0.9, 0.4)]
    assert best_of(trials) == 2


@pytest.mark.parametrize(("task", "decay"), [("node", 5e-4), ("link", 5e-4)])
def test_the_default_is_one_of_those_that_validation_chooses_from(task, decay):
    ours = next(contender for contender in TUNED if contender.name == "bigcn")
    context = ModelContext("cora", "clean", task, in_channels=40, out_channels=3)

    def settings(candidate):
        return get_model(candidate.model).settings(context) | dict(candidate.settings)

    model, training = dict(DEFAULT_MODEL[task]), DEFAULT_TRAINING[task]
    assert not model.pop("check_low_pass")  # which warns, and changes nothing
    assert training["weight_decay"] == decay
    written = [settings(c) for c in ours.among(task) if c.training["weight_decay"] == decay]
    layer = inspect.signature(BiGCNConv).parameters
    same = [
        found
        for found in written
        if all(model[key] == value for key, value in found.items() if key in model)
        # What a candidate leaves to the layer is what the default says.
        and all(model[key] == layer[key].default for key in model.keys() - found.keys() if key in layer)
    ]
    assert len(same) == 1
