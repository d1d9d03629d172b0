import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from bigcn.links import LinkScorer
from bigcn.links import scoring as scoring_module


def is_wrong(scorer: LinkScorer, wrong: np.ndarray) -> np.ndarray:
    return np.isin(scorer.edges[0] * 1000 + scorer.edges[1], wrong[0] * 1000 + wrong[1])


@pytest.fixture(scope="module")
def scorer(towns):
    return LinkScorer(towns[0].x, towns[0].edge_index)


def test_wrong_edges_score_low(towns, scorer):
    assert scorer.edges.shape == (2, 1000)
    assert ((scorer.scores > 0) & (scorer.scores < 1)).all()
    assert roc_auc_score(~is_wrong(scorer, towns[1]), scorer.scores) > 0.9


def test_links_that_were_left_out_score_above_random_pairs(towns, scorer):
    town = np.arange(240) % 4
    generator = np.random.default_rng(5)
    pairs = generator.integers(240, size=(2, 4000))
    known = set(map(tuple, scorer.edges.T.tolist()))
    keep = [i != j and (min(i, j), max(i, j)) not in known for i, j in pairs.T]
    pairs = pairs[:, keep]
    alike = town[pairs[0]] == town[pairs[1]]
    scores = scorer.score(pairs)
    assert roc_auc_score(alike, scores) > 0.9
    np.testing.assert_allclose(scores, scorer.score(pairs[::-1]), atol=1e-4)
    assert scorer.score(np.empty((2, 0), dtype=np.int64)).shape == (0,)


def test_features_may_be_sparse(towns, scorer):
    sparse = LinkScorer(towns[0].x.to_sparse(), towns[0].edge_index)
    np.testing.assert_allclose(sparse.scores, scorer.scores, atol=1e-5)


def test_the_same_seed_gives_the_same_scores(towns, scorer):
    again = LinkScorer(towns[0].x, towns[0].edge_index)
    np.testing.assert_array_equal(again.scores, scorer.scores)
    assert np.abs(LinkScorer(towns[0].x, towns[0].edge_index, seed=1).scores - scorer.scores).max() > 0


def test_the_order_of_edges_does_not_matter(towns, scorer):
    order = torch.from_numpy(np.random.default_rng(0).permutation(towns[0].edge_index.size(1)))
    shuffled = LinkScorer(towns[0].x, towns[0].edge_index[:, order])
    np.testing.assert_allclose(shuffled.scores, scorer.scores, atol=1e-5)


def test_a_model_never_sees_the_edge_it_is_asked_about(towns):
    seen: list[set[tuple[int, int]]] = []

    def embed(edge_index, edge_weight):
        assert edge_weight is None
        pairs = set(zip(*edge_index.tolist(), strict=True))
        assert all((j, i) in pairs for i, j in pairs)
        seen.append({pair for pair in pairs if pair[0] < pair[1]})
        return torch.randn(240, 3, generator=torch.Generator().manual_seed(len(seen)))

    scorer = LinkScorer(towns[0].x, towns[0].edge_index, embed=embed, folds=4)
    edges = set(map(tuple, scorer.edges.T.tolist()))
    left_out = [edges - part for part in seen]
    assert len(seen) == 4
    assert set.union(*left_out) == edges
    assert sum(map(len, left_out)) == len(edges)
    assert len(scorer.alike()) == 2
    assert seen[-1] == edges  # all of them when pairs without an edge are scored


def test_a_model_that_knows_helps(towns, scorer):
    town = torch.eye(4)[torch.arange(240) % 4]
    helped = LinkScorer(towns[0].x, towns[0].edge_index, embed=lambda edges, weight: town)
    wrong = is_wrong(scorer, towns[1])
    assert roc_auc_score(~wrong, helped.scores) > max(0.99, roc_auc_score(~wrong, scorer.scores))


def test_an_edge_does_not_vouch_for_itself_through_a_model(towns):
    # A model whose embedding is the row of the adjacency itself: with the edge in place, it would give it away.
    def embed(edge_index, edge_weight):
        out = torch.eye(240)
        out[edge_index[0], edge_index[1]] = 1.0
        return out

    scorer = LinkScorer(towns[0].x, towns[0].edge_index, embed=embed)
    assert roc_auc_score(~is_wrong(scorer, towns[1]), scorer.scores) > 0.9


def test_an_edge_is_scored_by_a_regression_that_did_not_learn_from_it(towns, monkeypatch):
    # A learner that remembers everything would give every edge that it has seen the score of one.
    monkeypatch.setattr(scoring_module, "LogisticRegression", lambda **options: KNeighborsClassifier(1))
    scores = LinkScorer(towns[0].x, towns[0].edge_index, rounds=0).scores
    assert 0.1 < (scores == 0).mean() < 0.9


def test_doubtful_edges_count_for_less_the_second_time(towns, scorer):
    first, second = (graph.adjacency for graph in scorer._graphs)
    before = LinkScorer(towns[0].x, towns[0].edge_index, rounds=0)
    np.testing.assert_allclose(first[tuple(scorer.edges)], 1)
    np.testing.assert_allclose(second[tuple(scorer.edges)], before.scores, rtol=1e-5)


def test_weights_count_and_add_up(towns):
    data = towns[0]
    weight = torch.ones(data.edge_index.size(1))
    twice = torch.cat([data.edge_index, data.edge_index], dim=1)
    repeated = LinkScorer(data.x, twice, torch.cat([weight, weight]) / 2)
    np.testing.assert_allclose(repeated.scores, LinkScorer(data.x, data.edge_index).scores, atol=1e-5)
    low = data.edge_index.max(dim=0).values < 120
    other = LinkScorer(data.x, data.edge_index, torch.where(low, 0.01, 1.0))
    assert np.abs(other.scores - repeated.scores).max() > 0.01


def test_large_graphs_learn_from_a_part(towns, monkeypatch, scorer):
    monkeypatch.setattr(scoring_module, "LEARN_FROM", 300)
    part = LinkScorer(towns[0].x, towns[0].edge_index)
    assert roc_auc_score(~is_wrong(part, towns[1]), part.scores) > 0.85
    assert not np.array_equal(part.scores, scorer.scores)
    # Edges stand in the order of their nodes: the first are those of the first nodes, and no sample.
    learned = part.edges[0, part._learned_from]
    assert len(learned) == 300
    assert abs(np.median(learned) - np.median(part.edges[0])) < 0.1 * towns[0].num_nodes


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"x": torch.ones(3)}, "'x'"),
        ({"x": torch.ones(12, 3).index_fill(1, torch.tensor([1]), torch.nan)}, "row 0, column 1"),
        ({"edge_index": torch.tensor([[0, 1], [1, 0]])}, "1 edges, too few"),
        ({"edge_index": torch.tensor([[0], [1]])}, "undirected"),
        ({"edge_index": torch.tensor([[0], [99]])}, "names node 99"),
        ({"folds": 1}, "'folds'"),
        ({"rounds": -1}, "'rounds'"),
        ({"embed": lambda edges, weight: torch.full((12, 2), torch.nan)}, "'embed'"),
        ({"embed": lambda edges, weight: torch.ones(3, 2)}, "'embed'"),
        ({"edge_index": torch.combinations(torch.arange(12)).t().repeat(1, 2)}, "undirected"),
    ],
)
def test_bad_input_is_named(options, named):
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    usual = {"x": torch.randn(12, 3), "edge_index": torch.cat([ring, ring.flip(0)], dim=1)}
    with pytest.raises(ValueError, match=named):
        LinkScorer(**{**usual, **options})


def test_a_complete_graph_has_nothing_to_compare_with():
    pairs = torch.combinations(torch.arange(12)).t()
    with pytest.raises(ValueError, match="no pair is left"):
        LinkScorer(torch.randn(12, 3), torch.cat([pairs, pairs.flip(0)], dim=1))
