from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score

from bigcn.datasets.own import OwnGraph, read_graph
from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor
from bigcn.estimators.scoring import assess_nodes, node_logits
from bigcn.experiments import own_runs
from bigcn.experiments.own import OwnResult, own_result
from bigcn.experiments.own_runs import feature_edges, run_own
from bigcn.experiments.store import RunStore
from bigcn.experiments.stored import stored_comparisons


@pytest.fixture(scope="module")
def graph() -> OwnGraph:
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 90, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame(rng.normal(size=(90, 8)) + kind[:, None], columns=[f"column {i}" for i in range(8)])
    table.insert(0, "id", np.arange(90) * 7)
    table["kind"] = np.array(["ash", "elm", "yew"])[kind]
    edges = pd.DataFrame({"source": rng.integers(0, 90, 300) * 7, "target": rng.integers(0, 90, 300) * 7})
    return read_graph(table, edges, label="kind", name="trees")


@pytest.fixture(scope="module")
def fitted(graph) -> BiGCNClassifier:
    return BiGCNClassifier(search=False, max_epochs=10, seed=2).fit(graph)


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "store.sqlite") as store:
        yield store


def test_side_by_side_on_the_same_split(fitted, graph, store):
    result = run_own(fitted, graph, store, ("gcn", "gdc"), command="bigcn train it")
    assert isinstance(result, OwnResult)
    runs = {spec.model: (spec, run) for spec, run in result.pairs}
    assert set(runs) == {"bigcn", "majority", "gcn", "gdc"}
    assert {spec.dataset for spec, _ in runs.values()} == {"own:trees"}
    assert len({(spec.dataset_fingerprint, spec.protocol, spec.seed) for spec, _ in runs.values()}) == 1
    assert runs["bigcn"][1].metrics["accuracy"] == fitted.report_["scores"]["accuracy"]
    assert result.about["command"] == "bigcn train it"
    assert result.about["classes"] == ["ash", "elm", "yew"]
    assert list(store.rows())


def test_the_largest_class_as_scikit_learn_has_it(fitted, graph, store):
    result = run_own(fitted, graph, store, ())
    (majority,) = (run for spec, run in result.pairs if spec.model == "majority")
    y, order = graph.data.y, fitted._ordered.order
    train, test = (y[order[part]].numpy() for part in (fitted.split_.train, fitted.split_.test))
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(train), 1)), train)
    predicted = dummy.predict(np.zeros((len(test), 1)))
    assert majority.metrics["accuracy"] == pytest.approx(accuracy_score(test, predicted))
    assert majority.metrics["macro_f1"] == pytest.approx(f1_score(test, predicted, average="macro"))


def test_rivals_come_from_the_store_unless_forced(fitted, graph, store):
    told = []

    def note(spec, result, stored):
        told.append((spec.model, stored))

    run_own(fitted, graph, store, ("mlp",), on_run=note)
    run_own(fitted, graph, store, ("mlp",), on_run=note)
    run_own(fitted, graph, store, ("mlp",), on_run=note, force=True)
    assert [stored for model, stored in told if model == "mlp"] == [False, True, False]
    assert not any(stored for model, stored in told if model == "bigcn")


def test_a_rival_that_is_interrupted_is_not_stored(fitted, graph, store):
    answers = iter([False, False, True])
    assert run_own(fitted, graph, store, ("mlp",), stop=lambda: next(answers, True)) is None
    assert {spec.model for spec, _ in store.rows()} == {"bigcn", "majority"}


@pytest.mark.parametrize("better", [0, 1])
def test_rivals_choose_their_weight_decay_on_validation(graph, store, monkeypatch, better):
    fitted = BiGCNClassifier(search=True, max_epochs=3).fit(graph)
    real, models = own_runs.train, []

    def judged(model, *args):
        models.append(model)
        return replace(real(model, *args), score=1.0 if len(models) - 1 == better else 0.0)

    monkeypatch.setattr(own_runs, "train", judged)
    result = run_own(fitted, graph, store, ("gcn",))
    ((spec, run),) = ((spec, run) for spec, run in result.pairs if spec.model == "gcn")
    assert spec.settings["weight_decays"] == [5e-4, 7e-3]
    assert run.epochs == 6
    logits = node_logits(fitted.make_task(), models[better])
    assert run.metrics["log_loss"] == assess_nodes(logits, fitted._label, fitted.split_)["scores"]["log_loss"]


def test_the_store_gives_the_same_back(fitted, graph, store):
    result = run_own(fitted, graph, store)
    (again,) = stored_comparisons(list(store.rows()))
    assert isinstance(again, OwnResult)
    assert again.about == result.about
    assert {spec.key for spec, _ in again.pairs} == {spec.key for spec, _ in result.pairs}
    assert again.verdict().startswith("On trees, BiGCN gets")
    assert "the largest class alone" in again.verdict()
    assert again.comparison.title == "trees, node classification"


def test_graphs_of_one_name_are_not_mixed(fitted, graph, store):
    run_own(fitted, graph, store, ("mlp",))
    data = graph.data.clone()
    data.x = data.x + 1
    other = OwnGraph(data, graph.ids, graph.encoding, graph.summary, name="trees")
    run_own(BiGCNClassifier(search=False, max_epochs=3, seed=2).fit(other), other, store, ("mlp",))
    found = stored_comparisons(list(store.rows()))
    assert len(found) == 2
    for result in found:
        assert len({spec.dataset_fingerprint for spec, _ in result.pairs}) == 1
        assert {spec.model for spec, _ in result.pairs} == {"bigcn", "mlp", "majority"}


def test_another_split_is_another_graph(fitted, graph):
    other = BiGCNClassifier(search=False, max_epochs=1, seed=3).fit(graph)
    assert other.fingerprint_ != fitted.fingerprint_


def test_links(graph, store):
    fitted = BiGCNLinkPredictor(search=False, max_epochs=5).fit(graph)
    result = run_own(fitted, graph, store, ("gcn", "mlp"))
    assert {spec.model for spec, _ in result.pairs} == {"bigcn", "gcn", "mlp"}
    assert all({"roc_auc", "average_precision"} <= set(run.metrics) for _, run in result.pairs)
    assert "ROC-AUC" in result.verdict()


def test_feature_edges_have_the_names_of_columns(graph):
    spectral = {"feature_graph": "spectral", "feature_graph_kwargs": {"rank": 2}}
    fitted = BiGCNClassifier(search=False, max_epochs=2, settings=spectral).fit(graph)
    edges = feature_edges(fitted.model_, graph.feature_names, count=3)
    assert len(edges) == 3
    weights = fitted.model_.convs[0].feature_graph.adjacency().abs().fill_diagonal_(0)
    first, second, weight = edges[0]
    place = [graph.feature_names.index(name) for name in (first, second)]
    assert abs(weight) == pytest.approx(float(weights.max()))
    assert float(weights[place[0], place[1]]) == pytest.approx(abs(weight))
    none = BiGCNClassifier(search=False, max_epochs=1).fit(graph)
    assert feature_edges(none.model_, graph.feature_names) == []


def test_only_what_was_trained_to_its_end(graph, store):
    stopped = BiGCNClassifier(search=False).fit(graph, on_epoch=lambda *_: True)
    with pytest.raises(ValueError, match="not been trained to its end"):
        run_own(stopped, graph, store)


def test_no_bigcn_no_verdict(fitted, graph, store):
    pairs = [pair for pair in run_own(fitted, graph, store, ()).pairs if pair[0].model != "bigcn"]
    result = own_result(pairs)
    assert result.about == {}
    assert result.verdict() == "No BiGCN was trained on trees."


def test_gpu_is_named_as_the_store_wants_it(fitted, graph, store):
    assert {spec.device for spec, _ in run_own(fitted, graph, store, ()).pairs} == {torch.device("cpu").type}
