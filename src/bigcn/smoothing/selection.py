"""Choosing how strongly to smooth, from the noisy data alone."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.feature_graphs import FeatureGraph, NoGraph
from bigcn.filters import check_strength
from bigcn.smoothing.functional import check_features, checked_hop, resolve_feature_graph, solve_along


class SmoothingChoice(NamedTuple):
    """One way to smooth, and how well it restored hidden entries.

    Args:
        lambda1, lambda2 (float): The strengths.
        feature_graph (str): The feature graph; :obj:`"none"` if its strength is zero.
        rank (int): The rank of a spectral graph.
        error (float): The mean squared error on the hidden entries.
    """

    lambda1: float
    lambda2: float
    feature_graph: str | Tensor | FeatureGraph
    rank: int
    error: float


def rank_smoothing(
    x: Tensor,
    edge_index: Adj | None,
    *,
    lambda1: Sequence[float] = (0.0, 0.3, 1.0, 3.0, 10.0),
    lambda2: Sequence[float] = (0.0, 1.0, 3.0, 10.0, 30.0),
    feature_graphs: Sequence[str | Tensor | FeatureGraph] = ("spectral",),
    ranks: Sequence[int] = (16,),
    edge_weight: OptTensor = None,
    hidden: float = 0.1,
    seed: int = 0,
) -> list[SmoothingChoice]:
    """Hides a share of the known entries, fills them in every way asked for, and ranks the ways by what they missed.

    Entries are noisy, so the error counts their noise too; that adds the same to every choice. Columns are centred
    first, so that a strength of zero in both directions stands for filling with the column mean.

    Args:
        x (torch.Tensor): The features, with NaN where unknown.
        edge_index (torch.Tensor): The node graph, or :obj:`None`.
        lambda1, lambda2 (Sequence[float], optional): The strengths to try, zero for a direction left out.
        feature_graphs (Sequence, optional): The feature graphs to try. (default: :obj:`("spectral",)`)
        ranks (Sequence[int], optional): The ranks of spectral graphs to try. (default: :obj:`(16,)`)
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        hidden (float, optional): The share of the known entries to hide. (default: :obj:`0.1`)
        seed (int, optional): What decides which are hidden. (default: :obj:`0`)
    """
    if not 0 < hidden < 1:
        raise ValueError(f"'hidden' must lie between 0 and 1 (got {hidden})")
    generator = torch.Generator().manual_seed(seed)
    known = ~torch.isnan(x)
    held_out = known & (torch.rand(x.shape, generator=generator, dtype=torch.float64).to(x.device) < hidden)
    if not bool(held_out.any()):
        raise ValueError("'x' has too few known entries to hide some of them")
    visible = torch.where(held_out, torch.nan, x)
    mean = torch.nanmean(visible, dim=0).nan_to_num()
    observed = check_features(visible, missing="fill")
    for name, strengths in (("lambda1", lambda1), ("lambda2", lambda2)):
        for strength in strengths:
            check_strength(name, strength)
    # The node graph is checked and normalised once, too.
    hop = checked_hop(edge_index, edge_weight, x)
    filled_in = torch.where(torch.isnan(visible), mean, visible)
    # Each graph is computed once and serves all strengths.
    candidates = [
        (graph, rank, resolve_feature_graph(graph, filled_in, hop, rank))
        for graph in feature_graphs
        for rank in (ranks if isinstance(graph, str) and graph == "spectral" else ranks[:1])
    ]
    without: list[tuple[str | Tensor | FeatureGraph, int, FeatureGraph]] = [("none", ranks[0], NoGraph(x.size(1)))]
    choices = []
    for first in lambda1:
        for second in lambda2:
            for spec, rank, graph in candidates if second > 0 else without:
                filled = solve_along(visible - mean, observed, hop, graph, first, second, tolerance=1e-3)
                error = (filled + mean - x)[held_out].square().mean()
                choices.append(SmoothingChoice(first, second, spec, rank, float(error)))
    return sorted(choices, key=lambda choice: choice.error)
