import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from bigcn.datasets import load_dataset
from bigcn.links import LinkScorer, missing_links, suspicious_edges
from bigcn.noise import StructureMistakes


def numbers(pairs, nodes: int) -> np.ndarray:
    pairs = np.asarray(pairs)
    return pairs.min(axis=0) * nodes + pairs.max(axis=0)


def test_suspects_come_first(towns):
    data, wrong = towns
    found = suspicious_edges(data.x, data.edge_index)
    assert found.pairs.shape == (2, 1000)
    assert bool((found.scores.diff() <= 0).all())
    assert np.isin(numbers(found.pairs, 240), numbers(wrong, 240))[:50].mean() > 0.6
    first = suspicious_edges(data.x, data.edge_index, k=7)
    assert torch.equal(first.pairs, found.pairs[:, :7])
    assert suspicious_edges(data.x, data.edge_index, k=0).pairs.shape == (2, 0)


@pytest.mark.parametrize("exact_nodes", [1000, 10])
def test_missing_links_join_the_same_town_and_are_new(towns, exact_nodes):
    data, _ = towns
    scorer = LinkScorer(data.x, data.edge_index)
    found = missing_links(data.x, data.edge_index, k=60, exact_nodes=exact_nodes, scorer=scorer)
    assert found.pairs.shape == (2, 60)
    assert bool((found.scores.diff() <= 0).all())
    assert (found.pairs[0] % 4 == found.pairs[1] % 4).float().mean() > 0.9
    assert not np.isin(numbers(found.pairs, 240), numbers(data.edge_index, 240)).any()
    assert len(set(numbers(found.pairs, 240).tolist())) == 60
    np.testing.assert_allclose(found.scores.numpy(), scorer.score(found.pairs.numpy()), atol=1e-6)


def test_every_pair_of_a_small_graph_is_looked_at(towns):
    data, _ = towns
    scorer = LinkScorer(data.x, data.edge_index)
    pairs = np.array([(i, j) for i in range(240) for j in range(i + 1, 240)]).T
    pairs = pairs[:, ~np.isin(numbers(pairs, 240), numbers(data.edge_index, 240))]
    best = np.sort(scorer.score(pairs))[::-1][:20]
    np.testing.assert_allclose(missing_links(data.x, data.edge_index, k=20, scorer=scorer).scores, best, atol=1e-6)


@pytest.mark.parametrize("k", [-1, 1.5, True])
def test_bad_counts_are_named(towns, k):
    for function in (suspicious_edges, missing_links):
        with pytest.raises(ValueError, match="'k'"):
            function(towns[0].x, towns[0].edge_index, k=k)


def test_mistakes_in_cora_are_found(benchmark_data, monkeypatch, tmp_path):
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    clean = load_dataset("cora")
    mistakes = StructureMistakes(0.001, seed=7)
    noisy = mistakes(clean)
    found = suspicious_edges(noisy.x, noisy.edge_index)
    n = clean.num_nodes
    wrong = np.isin(numbers(found.pairs, n), numbers(mistakes.changes(clean).added, n))
    assert roc_auc_score(wrong, found.scores) > 0.92
