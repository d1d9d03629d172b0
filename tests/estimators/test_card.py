import re

import pytest

from bigcn.datasets.own import read_graph
from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor
from bigcn.estimators.card import plain

NASTY = "<script>alert(1)</script> | **bold** [link](http://x)\n# heading"


@pytest.fixture(scope="module")
def card(make_tables, tmp_path_factory) -> str:
    nodes, edges = make_tables()
    nodes["kind"] = nodes["kind"].replace("oak", NASTY)
    folder = tmp_path_factory.mktemp("card") / "model"
    fitted = BiGCNClassifier(search=False, max_epochs=5).fit(read_graph(nodes, edges, label="kind", name=NASTY))
    beside = {"gcn": {"accuracy": 0.25, "macro_f1": 0.5}, "majority": {"accuracy": 0.125, "macro_f1": 0.1, "ece": 0.2}}
    fitted.save(folder, notes={"beside": beside})
    return (folder / "README.md").read_text()


def test_says_what_matters(card):
    for part in ("75 nodes", "beech", "15 nodes without a label", "stratified-60-20-20", "## Limits"):
        assert part in card
    assert re.search(r"\| GCN \| 25\.0 % \| 50\.0 % \| – \|", card)
    assert "| majority class | 12.5 % | 10.0 % | 20.0 % |" in card


def test_counts_have_their_nouns(graph, tmp_path):
    fitted = BiGCNClassifier(search=False, max_epochs=1).fit(graph)
    kinds = {"number": 13, "category": 1, "boolean": 0}
    fitted.data_ |= {"features": kinds, "isolated": 1, "unlabelled": 1, "weighted": True, "edges": 1}
    fitted.save(tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text()
    assert ", 1 weighted edge, 1 isolated node; 13 number columns, 1 category column; 0.0 % of the values" in text
    assert "; 1 node without a label." in text


def test_names_of_users_are_not_markup(card):
    assert "<script>" not in card
    assert "**bold**" not in card.replace("\\*", "")
    assert len(re.findall(r"^# ", card, flags=re.MULTILINE)) == 1


def test_links(graph, tmp_path):
    fitted = BiGCNLinkPredictor(search=False, max_epochs=5, seed=7).fit(graph)
    fitted.save(tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text()
    assert "links-80-10-10, drawn from seed 7" in text
    assert "ROC-AUC" in text


def test_interrupted(graph, tmp_path):
    stopped = BiGCNClassifier(search=False).fit(graph, on_epoch=lambda candidate, progress: True)
    stopped.save(tmp_path / "model")
    assert "has not been looked at" in (tmp_path / "model" / "README.md").read_text()


def test_plain():
    assert plain("a|b\nc") == "a\\|b c"
