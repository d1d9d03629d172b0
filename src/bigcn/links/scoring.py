"""A score for any pair of nodes: how much more it looks like a link than like two nodes taken at random."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.checks import check_finite
from bigcn.links.evidence import FeatureEvidence, GraphEvidence, blocks, dots, unit_rows
from bigcn.node_graphs import edges_of
from bigcn.smoothing.functional import check_graph
from bigcn.tasks.pairs import PairSampler, pair_numbers, pairs_of

#: Returns an embedding of every node from the edges, one in both directions, and their weights.
Embed = Callable[[Tensor, OptTensor], Tensor]
#: How many links, and as many random pairs times three, the scorer learns from at most.
LEARN_FROM = 100_000
NEGATIVES = 3


class LinkScorer:
    r"""Learns from a graph what its links look like, in spite of mistakes among them, without labels.

    A logistic regression tells the edges from pairs drawn at random by the evidence of :mod:`bigcn.links.evidence`:
    how alike the features of the two ends are, those of their neighbourhoods, and how many neighbours they share. An
    edge is scored by a regression that did not learn from it, with evidence from a graph that does not contain it.
    What was found doubtful counts for less when the neighbourhoods are computed once more. If mistakes are pairs like
    any other, a regression that learns from right and wrong edges alike still ranks them correctly.

    Degrees are no evidence: a hub's edges are neither safe nor suspect for being a hub's.

    Args:
        x (torch.Tensor): The features.
        edge_index (torch.Tensor or EdgeIndex): The undirected graph.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        embed (Callable, optional): A model: returns embeddings of all nodes from edges and weights. Its evidence, the
            cosine of two embeddings, is computed on a graph without the edges in question, a fold at a time.
            (default: :obj:`None`)
        rounds (int, optional): How often edges are weighed by their scores. (default: :obj:`1`)
        folds (int, optional): In how many parts the edges are divided. (default: :obj:`5`)
        seed (int, optional): The seed of folds and random pairs. (default: :obj:`0`)

    Attributes:
        edges (numpy.ndarray): The undirected edges :math:`i < j`, of shape :obj:`[2, num_edges]`, without self-loops.
        scores (numpy.ndarray): The score of each edge, between 0 and 1: the probability of a link where links and
            random pairs are equally many.
    """

    def __init__(
        self,
        x: Tensor,
        edge_index: Adj,
        edge_weight: OptTensor = None,
        *,
        embed: Embed | None = None,
        rounds: int = 1,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        if not isinstance(x, Tensor) or x.dim() != 2:
            raise ValueError("'x' must be a matrix of features, one row per node")
        if rounds < 0 or folds < 2:
            raise ValueError(f"'rounds' must be at least 0 and 'folds' at least 2 (got {rounds} and {folds})")
        check_finite(x)
        check_graph(edge_index, edge_weight, x.size(0))
        self.num_nodes, self._embed, self._folds = x.size(0), embed, folds
        self.edges, self.weights = _undirected(*edges_of(edge_index, edge_weight), self.num_nodes)
        if self.edges.shape[1] < 2 * folds:
            raise ValueError(f"the graph has {self.edges.shape[1]} edges, too few to learn what links look like")
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(b"links"))))
        self._edge_fold = generator.permutation(np.arange(self.edges.shape[1]) % folds)
        self._negatives = self._draw_negatives(generator)
        self._learned_from = self._draw_positives(generator)
        self._negative_fold = np.arange(self._negatives.shape[1]) % folds
        self._features = FeatureEvidence(x)
        self._graphs: list[GraphEvidence] = []
        self._embedding: np.ndarray | None = None
        self._fit(rounds)

    def score(self, pairs: np.ndarray) -> np.ndarray:
        """Returns the scores of pairs that are no edges; those of edges are in :obj:`scores`.

        Args:
            pairs (numpy.ndarray): The pairs, of shape :obj:`[2, num_pairs]`.
        """
        parts = [np.empty(0)]
        for block in blocks(pairs):
            columns = [self._features(block), *([] if self._embed is None else [self._alike(self._embedded(), block)])]
            evidence = np.hstack([*columns, *(graph(block) for graph in self._graphs)])
            parts.append(np.mean([model.predict_proba(evidence)[:, 1] for model in self._regressions], axis=0))
        return np.concatenate(parts)

    def alike(self) -> list[np.ndarray]:
        """Returns tables in which nodes that may be linked are near each other."""
        return [self._graphs[-1].mixed(), *([] if self._embed is None else [unit_rows(self._embedded())])]

    @property
    def adjacency(self) -> sp.csr_array:
        """The graph as it was given."""
        return self._adjacency(self.weights)

    def _fit(self, rounds: int) -> None:
        known = [_stacked(self._features, pairs) for pairs in (self.edges, self._negatives)]
        if self._embed is not None:
            known = [np.hstack(both) for both in zip(known, self._model_evidence(self._embed), strict=True)]
        weights = self.weights
        for _ in range(rounds + 1):
            graph = GraphEvidence(self._adjacency(weights), self._features.directions)
            self._graphs.append(graph)
            found = [_stacked(graph, pairs) for pairs in (self.edges, self._negatives)]
            known = [np.hstack(both) for both in zip(known, found, strict=True)]
            self._regressions, self.scores = self._cross_fit(*known)
            weights = self.weights * self.scores

    def _cross_fit(self, linked: np.ndarray, unlinked: np.ndarray) -> tuple[list[Pipeline], np.ndarray]:
        """Returns a regression for each fold, which has not seen it, and the scores they give to the edges."""
        regressions, scores = [], np.empty(len(linked))
        for fold in range(self._folds):
            positive = linked[self._learned_from & (self._edge_fold != fold)]
            negative = unlinked[self._negative_fold != fold]
            regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced"))
            regression.fit(np.vstack([positive, negative]), np.arange(len(positive) + len(negative)) < len(positive))
            scores[self._edge_fold == fold] = regression.predict_proba(linked[self._edge_fold == fold])[:, 1]
            regressions.append(regression)
        return regressions, scores

    def _model_evidence(self, embed: Embed) -> tuple[np.ndarray, np.ndarray]:
        """Returns how alike a model finds the ends of edges and of random pairs, without the edges it is asked for."""
        linked, unlinked = (np.empty((len(fold), 1), np.float32) for fold in (self._edge_fold, self._negative_fold))
        for fold in range(self._folds):
            embedding = self._embedding_of(embed, self._edge_fold != fold)
            for out, folds, pairs in (
                (linked, self._edge_fold, self.edges),
                (unlinked, self._negative_fold, self._negatives),
            ):
                out[folds == fold] = _stacked(partial(self._alike, embedding), pairs[:, folds == fold])
        return linked, unlinked

    def _embedded(self) -> np.ndarray:
        if self._embedding is None:
            assert self._embed is not None
            self._embedding = self._embedding_of(self._embed, np.ones(len(self.weights), dtype=bool))
        return self._embedding

    def _embedding_of(self, embed: Embed, kept: np.ndarray) -> np.ndarray:
        pairs = np.hstack([self.edges[:, kept], self.edges[::-1, kept]])
        weight = None if self._unweighted else torch.from_numpy(np.tile(self.weights[kept], 2))
        with torch.no_grad():
            embedding = embed(torch.from_numpy(pairs), weight).detach().cpu().float().numpy()
        if embedding.shape[0] != self.num_nodes or not np.isfinite(embedding).all():
            raise ValueError("'embed' must return one finite row per node")
        return embedding

    @staticmethod
    def _alike(embedding: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        return dots(unit_rows(embedding[pairs[0]]), unit_rows(embedding[pairs[1]])).reshape(-1, 1)

    @property
    def _unweighted(self) -> bool:
        return bool((self.weights == 1).all())

    def _adjacency(self, weights: np.ndarray) -> sp.csr_array:
        scaled = np.tile(weights / max(float(self.weights.mean()), 1e-12), 2).astype(np.float32)
        coordinates = (np.hstack([self.edges[0], self.edges[1]]), np.hstack([self.edges[1], self.edges[0]]))
        return sp.csr_array((scaled, coordinates), shape=(self.num_nodes, self.num_nodes))

    def _draw_positives(self, generator: np.random.Generator) -> np.ndarray:
        """Returns which edges are learned from. Edges stand in the order of their nodes, so that the first of many
        would be those of the first nodes.
        """
        count = self.edges.shape[1]
        chosen = np.zeros(count, dtype=bool)
        chosen[generator.permutation(count)[:LEARN_FROM] if count > LEARN_FROM else slice(None)] = True
        return chosen

    def _draw_negatives(self, generator: np.random.Generator) -> np.ndarray:
        wanted = NEGATIVES * min(self.edges.shape[1], LEARN_FROM)
        sampler = PairSampler(self.num_nodes, pair_numbers(self.edges[0], self.edges[1], self.num_nodes))
        if sampler.available < self._folds:
            raise ValueError("the graph links every node with every other: no pair is left to compare its edges with")
        return pairs_of(sampler.draw(min(wanted, sampler.available), generator), self.num_nodes)


def _stacked(evidence: Callable[[np.ndarray], np.ndarray], pairs: np.ndarray) -> np.ndarray:
    return np.vstack([evidence(block) for block in blocks(pairs)])


def _undirected(edges: Tensor, weight: OptTensor, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns each edge once, the smaller node first and sorted, with its weight; repeated ones add up."""
    source, target = edges.cpu().numpy().astype(np.int64)
    value = np.ones(len(source)) if weight is None else weight.detach().cpu().double().numpy()
    upper = source < target
    numbers, position = np.unique(source[upper] * num_nodes + target[upper], return_inverse=True)
    total = np.bincount(position, weights=value[upper], minlength=len(numbers))
    return np.stack([numbers // num_nodes, numbers % num_nodes]), total.astype(np.float32)
