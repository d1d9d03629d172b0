import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

import bigcn
from bigcn.datasets import digits
from bigcn.datasets.own import InputError, OwnGraph, read_graph
from bigcn.estimators import BiGCNClassifier
from bigcn.training.checkpoint import CheckpointError, load_checkpoint

QUICK = {"search": False, "max_epochs": 60, "seed": 1}


@pytest.fixture(scope="module")
def fitted(graph) -> BiGCNClassifier:
    return BiGCNClassifier(**QUICK).fit(graph)


def test_is_an_estimator(fitted, graph):
    assert bigcn.BiGCNClassifier is BiGCNClassifier
    assert is_classifier(fitted)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(graph)
    assert list(fitted.classes_) == ["beech", "fir", "oak"]
    assert fitted.n_features_in_ == graph.data.x.size(1) == 8


def test_learns(fitted, graph):
    assert fitted.report_["scores"]["accuracy"] > 0.8
    probabilities = fitted.predict_proba(graph)
    assert probabilities.shape == (75, 3)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert (fitted.predict(graph) == fitted.classes_[probabilities.argmax(axis=1)]).all()


def test_reports_the_test_nodes_and_those_alone(fitted, graph):
    place = fitted._ordered.order[fitted.split_.test].numpy()
    truth = np.array(graph.classes, dtype=object)[graph.data.y.numpy()[place]]
    assert fitted.report_["nodes"] == len(place)
    assert fitted.report_["scores"]["accuracy"] == pytest.approx(accuracy_score(truth, fitted.predict(graph)[place]))
    known = graph.labelled.numpy()
    truth = np.array(graph.classes, dtype=object)[graph.data.y.numpy()[known]]
    assert fitted.score(graph) == pytest.approx(accuracy_score(truth, fitted.predict(graph)[known]))
    assert fitted.score(graph, fitted.predict(graph)) == 1


def test_hidden_labels_and_test_labels_are_never_seen(fitted, graph):
    """Other labels on the test nodes give the same model, and another score."""
    place = fitted._ordered.order[fitted.split_.test]
    y = graph.data.y.clone()
    y[place] = (y[place] + 1) % 3
    data = graph.data.clone()
    data.y = y
    split = bigcn.datasets.Split(
        "column",
        *(fitted._ordered.order[part] for part in (fitted.split_.train, fitted.split_.val, fitted.split_.test)),
    )
    other = BiGCNClassifier(**QUICK).fit(OwnGraph(data, graph.ids, graph.encoding, graph.summary, split=split))
    for name, tensor in fitted.model_.state_dict().items():
        assert torch.equal(tensor, other.model_.state_dict()[name])
    assert other.report_["scores"]["accuracy"] < fitted.report_["scores"]["accuracy"]
    assert other.protocol_ == "column"


def test_the_order_of_rows_does_not_matter(fitted, make_graph, graph):
    shuffled = make_graph(shuffle=4)
    other = BiGCNClassifier(**QUICK).fit(shuffled)
    assert other.report_ == fitted.report_
    place = {name: row for row, name in enumerate(graph.ids)}
    rows = [place[name] for name in shuffled.ids]
    assert (other.predict_proba(shuffled) == fitted.predict_proba(graph)[rows]).all()
    assert (fitted.predict_proba(shuffled) == fitted.predict_proba(graph)[rows]).all()


def test_saves_and_loads(fitted, graph, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = BiGCNClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba(graph) == fitted.predict_proba(graph)).all()
    assert loaded.report_ == fitted.report_
    assert loaded.get_params() == fitted.get_params()
    assert torch.equal(loaded.split_.test, fitted.split_.test)
    checkpoint = load_checkpoint(tmp_path / "model")
    assert (checkpoint.task, checkpoint.classes) == ("node", ("beech", "fir", "oak"))
    assert set(checkpoint.arrays) == {"split"}
    with pytest.raises(CheckpointError, match="labels of nodes"):
        bigcn.estimators.BiGCNLinkPredictor.load(tmp_path / "model")


def test_a_model_alone_is_no_classifier(fitted, tmp_path):
    fitted.model_.save_pretrained(tmp_path / "model")
    with pytest.raises(CheckpointError, match="trained for no table"):
        BiGCNClassifier.load(tmp_path / "model")


def test_a_new_graph_with_the_same_columns(make_tables, tmp_path):
    graph = read_graph(*make_tables(), label="kind")
    fitted = BiGCNClassifier(**QUICK).fit(graph)
    nodes, edges = make_tables(nodes=60, seed=8, labelled=1.0)
    fresh = read_graph(nodes, edges, label="kind")  # with units of its own
    like = read_graph(nodes, edges, like=graph.encoding)
    assert (fitted.predict(fresh) == fitted.predict(like)).all()
    assert fitted.score(fresh) > 0.6
    with pytest.raises(InputError, match="column 'soil' is missing"):
        fitted.predict(read_graph(nodes.drop(columns="soil"), edges, label="kind"))


def test_fitting_again_forgets_the_first_graph(graph, make_tables):
    nodes, edges = make_tables()
    other = read_graph(nodes.drop(columns=["soil", "noise"]), edges, label="kind")
    model = BiGCNClassifier(search=False, max_epochs=2).fit(graph).fit(other)
    assert model.n_features_in_ == 4
    assert model.predict(other).shape == (75,)


def test_a_pyg_graph():
    data = digits()
    model = BiGCNClassifier(search=False, max_epochs=15).fit(data)
    assert model.classes_.tolist() == list(range(10))
    predicted = model.predict(data)
    assert (predicted == data.y.numpy()).mean() == pytest.approx(model.score(data))
    assert model.score(data) > 0.85


def test_scores_with_labels_of_one_s_own(make_tables):
    data = digits()
    model = BiGCNClassifier(search=False, max_epochs=15).fit(data)
    for y in (data.y, data.y.view(-1, 1), data.y.double(), data.y.numpy().astype(str), data.y.tolist()):
        assert model.score(data, y) == pytest.approx(model.score(data))
    for y in (data.y[:-1], data.y[None], 3):
        with pytest.raises(ValueError, match="one class for each of 1797 nodes"):
            model.score(data, y)
    data.y = data.y > 4
    model = BiGCNClassifier(search=False, max_epochs=15).fit(data)
    assert model.score(data, data.y) == pytest.approx(model.score(data))
    nodes, edges = make_tables()
    nodes["kind"] = np.arange(len(nodes)) % 2  # numbers, which a table calls by their names
    graph = read_graph(nodes, edges, label="kind")
    model = BiGCNClassifier(search=False, max_epochs=15).fit(graph)
    for y in (nodes["kind"], nodes["kind"].astype(float), nodes["kind"].astype(str)):
        assert model.score(graph, y) == pytest.approx(model.score(graph))


def test_what_is_asked_too_early_or_wrongly(graph):
    for ask in ("plan", "make_task"):
        with pytest.raises(NotFittedError):
            getattr(BiGCNClassifier(), ask)()
    with pytest.raises(ValueError, match="'training' names 'epochs', which TrainConfig does not have: curves,"):
        BiGCNClassifier(training={"epochs": 3}).fit(graph)


def test_refuses_what_cannot_be_learned(graph):
    empty = graph.data.clone()
    empty.y = torch.full_like(empty.y, -1)
    with pytest.raises(InputError, match="has a label"):
        BiGCNClassifier(**QUICK).fit(OwnGraph(empty, graph.ids, graph.encoding, graph.summary))
