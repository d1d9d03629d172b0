import numpy as np
import pytest

from bigcn.datasets.own import InputError, read_graph
from bigcn.estimators import BiGCNLinkPredictor
from bigcn.tasks import LinkPrediction

QUICK = {"search": False, "max_epochs": 20, "seed": 1}


@pytest.fixture(scope="module")
def fitted(graph) -> BiGCNLinkPredictor:
    return BiGCNLinkPredictor(**QUICK).fit(graph)


def test_embeds(fitted, graph, tmp_path):
    embeddings = fitted.embed(graph)
    assert np.allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    pairs = np.array([[0, 1], [5, 7]])
    expected = [embeddings[0] @ embeddings[5], embeddings[1] @ embeddings[7]]
    assert np.allclose(fitted.score_pairs(graph, pairs), expected)
    fitted.save(tmp_path / "model")
    loaded = BiGCNLinkPredictor.load(tmp_path / "model")
    assert (loaded.embed(graph) == embeddings).all()
    assert loaded.report_ == fitted.report_


def test_scores_are_those_of_the_task(fitted):
    task = LinkPrediction(fitted._ordered.data, seed=1)
    assert fitted.report_["scores"] == task.evaluate(fitted.model_)["test"]
    assert fitted.report_["scores"]["roc_auc"] > 0.6
    assert fitted.protocol_ == "links-80-10-10"


def test_no_labels_are_needed(make_tables):
    nodes, edges = make_tables()
    BiGCNLinkPredictor(search=False, max_epochs=2).fit(read_graph(nodes.drop(columns="kind"), edges))


def test_too_few_edges(make_tables):
    nodes, edges = make_tables()
    with pytest.raises(InputError, match="fewer than ten edges"):
        BiGCNLinkPredictor(**QUICK).fit(read_graph(nodes, edges.head(3), label="kind"))
