"""Runs as units of work."""

import pytest
import torch

from bigcn.experiments import execution
from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import LocalExecutor, Unit, execute, make_units, run, run_unit
from bigcn.experiments.graphs import KEPT_BYTES, GraphSource
from bigcn.experiments.store import RunStore
from bigcn.nn.registry import model_names
from bigcn.noise import make_noise

TRAINING = {"max_epochs": 3}


def specs(models=("gcn",), **changes):
    arguments = {"dataset": "digits", "models": models, "seeds": (5, 10), "training": TRAINING} | changes
    return Comparison(**arguments).specs()


@pytest.mark.parametrize("model", model_names())
@pytest.mark.parametrize("task", ["node", "link"])
def test_a_population_starts_where_each_run_would(model, task):
    """Without a step of training nothing is random, and scores are those of the initial parameters.

    Scores of links count pairs in the right order, some 10^6 of them, and a few pairs are equal up to rounding, which
    is not the same in single precision.
    """
    listed = specs((model,), task=task, training={"max_epochs": 1, "learning_rate": 1e-30, "weight_decay": 0.0})
    together = run_unit(Unit(tuple(listed), together=True))
    alone = [run(spec) for spec in listed]
    few_pairs = 1e-5 if task == "link" else 0.0
    expected = [pytest.approx(result.metrics, abs=few_pairs) for result in alone]
    assert [result.metrics for result in together] == expected
    assert together[0].metrics != together[1].metrics


def test_same_sizes_train_together():
    listed = [
        *specs(("gcn", "bigcn:published")),
        *specs(("gcn",), case="noise-level", values=(0.2, 0.5)),
        *specs(("gcn",), training=TRAINING | {"weight_decay": 7e-3}),
        *specs(("bigcn:published+p=2",)),
        *specs(("gcn",), case="feature-rate", values=(0.2, 0.4)),
        *specs(("gcn",), case="structure-mistakes", values=(0.001, 0.002)),
        *specs(("gcn",), training={"max_epochs": 4}),
    ]
    units = make_units(listed, together=True)
    assert [len(unit.specs) for unit in units] == [8, 4, 2, 2, 2, 2, 2]
    assert sorted(spec.key for unit in units for spec in unit.specs) == sorted(spec.key for spec in listed)
    assert [unit.specs for unit in make_units(listed, together=False)] == [(spec,) for spec in listed]


def test_large_populations_are_units_of_equal_size(monkeypatch):
    listed = specs(("sgc",), case="noise-level", values=tuple(0.1 * i for i in range(1, 8)))
    monkeypatch.setattr(execution, "MAX_MEMBERS", 4)
    units = make_units(listed, together=True)
    sizes = [len(unit.specs) for unit in units]
    assert max(sizes) <= 4
    assert max(sizes) - min(sizes) <= len(sizes)
    assert [spec for unit in units for spec in unit.specs] == listed


@pytest.mark.parametrize("together", [False, True])
def test_only_what_is_missing_is_run(tmp_path, together):
    listed = specs(("sgc",), case="noise-level", values=(0.2, 0.5))
    with RunStore(tmp_path / "runs.sqlite") as store:
        first = execute(listed[:3], store, together=together)
        seen = []
        results = execute(listed, store, on_run=lambda spec, result, known: seen.append(known), together=together)
        assert seen == [True, True, True, False]
        assert [r.metrics for r in results[:3]] == [r.metrics for r in first]
        assert execute(listed, store, together=together)[3].metrics == results[3].metrics
        again = []
        execute(listed, store, force=True, on_run=lambda *run: again.append(run[2]), together=together)
        assert again == [False] * 4


def test_what_an_executor_leaves_undone_is_missing(tmp_path):
    class Lazy(LocalExecutor):
        def run(self, units):
            yield from super().run(units[:1])

    listed = specs(("sgc",))
    with RunStore(tmp_path / "runs.sqlite") as store:
        assert len(execute(listed, store, executor=Lazy(), together=False)) == 1
        assert store.has(listed[0])
        assert not store.has(listed[1])


@pytest.mark.parametrize("case", ["noise-level", "noise-rate", "column-noise", "structure-mistakes", "feature-rate"])
@pytest.mark.parametrize("task", ["node", "link"])
def test_tasks_have_the_noise_of_their_run(case, task):
    if task == "link" and case == "structure-mistakes":
        return
    graphs = GraphSource()
    listed = specs(("gcn", "mlp"), case=case, values=(0.2, 0.4) if case != "structure-mistakes" else (0.01,), task=task)
    from bigcn.datasets import digits

    tasks = graphs.tasks(listed)
    for spec, made in zip(listed, tasks, strict=True):
        noisy = make_noise(case, spec.value, spec.seed)(digits())
        assert torch.equal(made.x, noisy.x)
        if task == "node":
            assert torch.equal(made.edge_index, noisy.edge_index)
    # Runs on the same noisy graph share its tensors.
    assert tasks[0].x is tasks[1].x
    assert tasks[0].edge_index is tasks[1].edge_index
    assert graphs.tasks(listed)[0].x is tasks[0].x


def test_features_of_one_part_alone_are_on_the_device():
    made = []

    class Watched(GraphSource):
        def tasks(self, specs):
            made.append(len(specs))
            return super().tasks(specs)

    still = {"max_epochs": 1, "learning_rate": 1e-30, "weight_decay": 0.0}
    clean = specs(training=still)
    listed = (*clean, *specs(training=still, case="noise-level", values=(0.1, 0.2, 0.3, 0.4)))
    whole = run_unit(Unit(listed, together=True))
    assert {result.details["population"] for result in whole} == {10}
    features = GraphSource().tasks(listed[-1:])[0].x.nbytes
    parts = run_unit(Unit(listed, together=True, max_memory=20 * features), Watched())
    assert 1 < max(made[1:]) < 10
    assert sum(made[1:]) == 10
    assert {result.details["population"] for result in parts} == set(made[1:])
    assert [result.metrics for result in parts] == [pytest.approx(result.metrics) for result in whole]
    # The first two share their features, and are as many as they were.
    made.clear()
    run_unit(Unit(tuple(clean), together=True, max_memory=20 * features), Watched())
    assert made == [2, 2]


def test_when_time_is_up_no_further_part_of_a_population_is_begun(tmp_path, monkeypatch):
    listed = specs(training={"max_epochs": 1}, case="noise-level", values=(0.1, 0.2, 0.3, 0.4))
    memory = 20 * GraphSource().tasks(listed[-1:])[0].x.nbytes
    unit = Unit(tuple(listed), together=True, max_memory=memory)
    whole, begun = run_unit(unit, seconds=1000), run_unit(unit, seconds=0)
    assert len(whole) == len(listed)
    assert 0 < len(begun) == begun[0].details["population"] < len(listed)
    assert [result.metrics for result in begun] == [result.metrics for result in whole[: len(begun)]]

    monkeypatch.setattr(execution, "seconds_left", lambda deadline: 0.0)
    with RunStore(tmp_path / "runs.sqlite") as store:
        execute(listed, store, executor=LocalExecutor(minutes=1), together=True, max_memory=memory)
        assert [store.has(spec) for spec in listed] == [number < len(begun) for number in range(len(listed))]
        monkeypatch.undo()
        execute(listed, store, together=True, max_memory=memory)
        assert all(store.has(spec) for spec in listed)


@pytest.mark.parametrize("case", ["noise-level", "structure-mistakes"])
def test_few_noisy_graphs_are_made_ahead(case, monkeypatch):
    waiting = []

    class Watched(GraphSource):
        def _task(self, spec, moved):
            waiting.append(len(self._coming))
            return super()._task(spec, moved)

    listed = specs(("gcn",), case=case, values=(0.01, 0.02, 0.03, 0.04))
    expected = GraphSource().tasks(listed)
    monkeypatch.setattr("bigcn.experiments.graphs.THREADS", 1)
    graphs = Watched(sharers=KEPT_BYTES["cpu"] // (3 * expected[0].x.nbytes))  # its share is room for three
    for made, other in zip(graphs.tasks(listed), expected, strict=True):
        assert torch.equal(made.x, other.x)
        assert torch.equal(made.edge_index, other.edge_index)
    assert len(listed) > max(waiting) == 3
    assert graphs._coming == {}


def test_a_run_that_diverges_is_a_failed_one():
    listed = specs(("gcn",), training={"max_epochs": 2, "learning_rate": 1e30})
    for together in (False, True):
        results = run_unit(Unit(tuple(listed), together))
        assert {result.status for result in results} == {"failed"}
        assert "diverged" in results[0].error
