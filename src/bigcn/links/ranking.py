"""The edges least, and the missing links most, supported by features and structure."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.checks import is_whole
from bigcn.links.candidates import EXACT_NODES, candidates
from bigcn.links.scoring import Embed, LinkScorer


class ScoredPairs(NamedTuple):
    """Pairs of nodes, best first.

    Args:
        pairs (torch.Tensor): The pairs :math:`i < j`, of shape :obj:`[2, k]`.
        scores (torch.Tensor): Their scores, between 0 and 1, falling.
    """

    pairs: Tensor
    scores: Tensor


def suspicious_edges(
    x: Tensor,
    edge_index: Adj,
    edge_weight: OptTensor = None,
    k: int | None = None,
    *,
    embed: Embed | None = None,
    seed: int = 0,
    scorer: LinkScorer | None = None,
) -> ScoredPairs:
    """Ranks the edges by how little speaks for them; probably mistakes come first.

    Args:
        x (torch.Tensor): The features.
        edge_index (torch.Tensor or EdgeIndex): The undirected graph.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        k (int, optional): How many to return. (default: all)
        embed (Callable, optional): A model, see :class:`~bigcn.links.LinkScorer`. (default: :obj:`None`)
        seed (int, optional): The seed of folds and random pairs. (default: :obj:`0`)
        scorer (LinkScorer, optional): One that was made before for this graph. (default: :obj:`None`)

    Example:
        >>> from bigcn.datasets import digits
        >>> data = digits()
        >>> pairs, scores = suspicious_edges(data.x, data.edge_index, k=100)
        >>> wrong = data.y[pairs[0]] != data.y[pairs[1]]  # of all links, one in five joins different digits
        >>> bool(wrong.float().mean() > 0.9)
        True
    """
    _check_count(k)
    scorer = scorer or LinkScorer(x, edge_index, edge_weight, embed=embed, seed=seed)
    order = np.argsort(scorer.scores, kind="stable")[:k]
    return ScoredPairs(torch.from_numpy(scorer.edges[:, order]), torch.from_numpy(1 - scorer.scores[order]))


def missing_links(
    x: Tensor,
    edge_index: Adj,
    edge_weight: OptTensor = None,
    k: int = 100,
    *,
    embed: Embed | None = None,
    seed: int = 0,
    exact_nodes: int = EXACT_NODES,
    scorer: LinkScorer | None = None,
) -> ScoredPairs:
    """Returns the pairs without an edge that look most like links.

    Of a graph of more than :obj:`exact_nodes` nodes, friends of friends are looked at and nodes that lie near each
    other by their own and their neighbours' features, or in the embedding of the model; not every pair.

    Args:
        x, edge_index, edge_weight, embed, seed, scorer: See :func:`suspicious_edges`.
        k (int, optional): How many to return. (default: :obj:`100`)
        exact_nodes (int, optional): Up to how many nodes every pair is looked at. (default: :obj:`1000`)
    """
    _check_count(k)
    scorer = scorer or LinkScorer(x, edge_index, edge_weight, embed=embed, seed=seed)
    linked = scorer.edges[0] * scorer.num_nodes + scorer.edges[1]
    best, scores = np.empty(0, dtype=np.int64), np.empty(0)
    for pairs in candidates(scorer.adjacency, scorer.alike(), exact_nodes):
        numbers = np.setdiff1d(pairs[0] * scorer.num_nodes + pairs[1], np.concatenate([linked, best]))
        found = scorer.score(np.stack([numbers // scorer.num_nodes, numbers % scorer.num_nodes]))
        best, scores = np.concatenate([best, numbers]), np.concatenate([scores, found])
        order = np.lexsort((best, -scores))[:k]
        best, scores = best[order], scores[order]
    return ScoredPairs(
        torch.from_numpy(np.stack([best // scorer.num_nodes, best % scorer.num_nodes])), torch.from_numpy(scores)
    )


def _check_count(k: int | None) -> None:
    if k is not None and (not is_whole(k) or k < 0):
        raise ValueError(f"'k' must be a whole number of at least 0 (got {k!r})")
