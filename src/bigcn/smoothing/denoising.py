"""Cleaning a table by smoothing it along its rows and its columns, as strongly as the table itself calls for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor
from torch_geometric.utils import subgraph

from bigcn.feature_graphs import FeatureGraph, NoGraph, SpectralGraph
from bigcn.filters import Hop, check_strength
from bigcn.node_graphs import edges_of, normalized_graph
from bigcn.smoothing.covariance import covariance_graph, noise_floor
from bigcn.smoothing.functional import check_features, check_graph, check_grids, check_precision, solve_along
from bigcn.smoothing.hiding import CHOOSE_ON, column_groups, connected_rows, hidden_mask
from bigcn.smoothing.search import BLOCKS, Judge, search_strengths
from bigcn.smoothing.selection import SmoothingChoice

LAMBDA1 = (0.0, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0)
LAMBDA2 = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
RANKS = (2, 4, 8, 12, 16, 24, 32)
#: The share of the mean variance below which a direction of the covariance counts as noise.
RIDGE = 0.05
#: So many entries are hidden in all, a share at a time, before a choice is trusted, in so many turns at most.
ENTRIES, TURNS = 50_000, 8
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Denoised:
    """A cleaned table, and how it was cleaned.

    Args:
        x (torch.Tensor): The table; what was missing is filled.
        choice (SmoothingChoice): The strengths and the feature graph.
        tried (tuple[SmoothingChoice, ...]): All that was tried, best first.
        feature_graph (FeatureGraph): The feature graph, over the columns in their order.
        criterion (str): What :obj:`error` of the choices means: the mean squared error on hidden entries
            (:obj:`"hidden"`), or the estimated error of the result (:obj:`"noise"`).
        explained (numpy.ndarray, optional): For each column, how much of the variance of its hidden entries was
            restored, one for all, nothing or less where column means do as well; columns that are hidden together
            share a number. Where it is about zero, what was taken for noise may as well be data that neither the graph
            nor the other columns know about. :obj:`None` if nothing was hidden. (default: :obj:`None`)
    """

    x: Tensor
    choice: SmoothingChoice
    tried: tuple[SmoothingChoice, ...]
    feature_graph: FeatureGraph
    criterion: Literal["hidden", "noise"]
    explained: np.ndarray | None = None

    @property
    def directions(self) -> Literal["both", "nodes", "features", "none"]:
        """Which directions the table was smoothed along."""
        nodes, features = self.choice.lambda1 > 0, self.choice.lambda2 > 0
        return "both" if nodes and features else "nodes" if nodes else "features" if features else "none"

    def best(self, directions: Literal["both", "nodes", "features", "none"]) -> SmoothingChoice | None:
        """Returns the best of what was tried along these directions alone."""
        wanted = (directions in ("both", "nodes"), directions in ("both", "features"))
        return next((c for c in self.tried if (c.lambda1 > 0, c.lambda2 > 0) == wanted), None)


def denoise(
    x: Tensor,
    edge_index: Adj | None,
    edge_weight: OptTensor = None,
    *,
    noise: float | None = None,
    lambda1: Sequence[float] = LAMBDA1,
    lambda2: Sequence[float] = LAMBDA2,
    ranks: Sequence[int] = RANKS,
    hidden: float = 0.1,
    groups: Sequence[int] | None = None,
    seed: int = 0,
) -> Denoised:
    r"""Cleans a table along the graph of its rows and a graph of its columns.

    Strengths and the graph of the columns (the leading directions of :class:`~bigcn.feature_graphs.SpectralGraph` at
    one of several ranks, or :func:`~bigcn.smoothing.covariance.covariance_graph`) are those that best restore a share
    of the known entries hidden for the purpose; a strength of zero leaves its direction out, and zero in both leaves
    the table as it is. A direction that does not clearly help is left out.

    What hidden entries cannot tell is how much of what no neighbour explains is noise. Where the noise is known, say
    from how the table was measured, :obj:`noise` makes the estimate of the result's error exact (Stein's unbiased
    risk estimate, its divergence probed through the whole computation, the graph of the columns included).

    Args:
        x (torch.Tensor): The table, with NaN where values are missing, its columns in comparable units.
        edge_index (torch.Tensor or EdgeIndex): The undirected graph of the rows, or :obj:`None`.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        noise (float, optional): The standard deviation of the noise, the same in all columns. (default: :obj:`None`)
        lambda1, lambda2 (Sequence[float], optional): The strengths to try along rows and columns.
        ranks (Sequence[int], optional): The ranks of spectral graphs to try, those below the number of columns.
        hidden (float, optional): The share of the known entries to hide. (default: :obj:`0.1`)
        groups (Sequence[int], optional): A number for each column; columns of the same number are hidden together, as
            those that one category became must be. (default: each on its own)
        seed (int, optional): What decides which are hidden. (default: :obj:`0`)

    Example:
        >>> from bigcn.datasets import digits
        >>> from bigcn.noise import NoiseLevel
        >>> clean = digits()
        >>> noisy = NoiseLevel(0.5, seed=1)(clean)
        >>> result = denoise(noisy.x, noisy.edge_index)
        >>> errors = [float((x - clean.x).square().mean()) for x in (noisy.x, result.x)]
        >>> errors[1] < errors[0] / 5, result.directions
        (True, 'both')
    """
    observed = check_features(x, missing="fill")
    check_precision(x)
    x = x.detach()
    known = torch.ones_like(x, dtype=torch.bool) if observed is None else observed
    check_grids(lambda1, lambda2)
    if noise is not None:
        check_strength("noise", noise)
    if not 0 < hidden < 1:
        raise ValueError(f"'hidden' must lie between 0 and 1 (got {hidden})")
    edges = None
    if edge_index is not None:
        check_graph(edge_index, edge_weight, x.size(0))
        edges, edge_weight = edges_of(edge_index, edge_weight)
    if edges is None or edges.numel() == 0:
        lambda1 = (0.0,)
    mean = torch.nanmean(x, dim=0).nan_to_num()
    z = torch.where(known, x - mean, 0)

    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(b"denoise"))))
    sample = _Sample.of(z, known, edges, edge_weight, generator)
    by_hiding: _Hiding | None = None
    if noise is None:
        judge: Judge = (by_hiding := _Hiding(sample, hidden, column_groups(groups, x.size(1)), generator))
    else:
        judge = sample.by_noise(noise, generator)
    choice, tried = search_strengths(judge, x.size(1), lambda1, lambda2, ranks)
    hop = None if edges is None else normalized_graph(edges, edge_weight, x.size(0), x.dtype)
    graph = feature_graph_of(choice, z, hop)
    out = x
    if choice.lambda1 > 0 or choice.lambda2 > 0:
        cleaned = solve_along(z, observed, hop, graph, choice.lambda1, choice.lambda2, TOLERANCE / 100)
        out = cleaned + mean
    elif observed is not None:
        out = torch.where(known, x, mean)
    explained = None if by_hiding is None else by_hiding.explained(choice)
    return Denoised(out, choice, tried, graph, "hidden" if noise is None else "noise", explained)


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows that strengths are chosen on: all of a small table, a connected part of a large one."""

    z: Tensor
    known: Tensor
    hop: Hop | None

    @classmethod
    def of(
        cls, z: Tensor, known: Tensor, edges: Tensor | None, weight: OptTensor, generator: np.random.Generator
    ) -> "_Sample":
        if z.size(0) > CHOOSE_ON:
            rows = connected_rows(edges, z.size(0), CHOOSE_ON, generator)
            if edges is not None:
                edges, weight = subgraph(rows, edges, weight, relabel_nodes=True, num_nodes=z.size(0))
            z, known = z[rows], known[rows]
        hop = None if edges is None else normalized_graph(edges, weight, z.size(0), z.dtype)
        return cls(z, known, hop)

    def by_noise(self, noise: float, generator: np.random.Generator) -> Judge:
        """Judges by Stein's estimate of the mean squared error of the result, for noise that is known."""
        probe = torch.from_numpy(generator.choice([-1.0, 1.0], self.z.shape)).to(self.z.dtype) * self.known
        # Small beside the noise, large beside the errors of the solver.
        step = max(0.1 * noise, 1e-3 * float(self.z.std())) or 1.0  # a constant table without noise can have any
        moved = self.z + step * probe
        count = int(self.known.sum())

        def judge(choice: SmoothingChoice) -> np.ndarray:
            smoothed, shifted = (
                self.solve(table, self.known, feature_graph_of(choice, table, self.hop), choice, TOLERANCE / 100)
                for table in (self.z, moved)
            )
            residual = float((smoothed - self.z)[self.known].square().sum()) / count
            freedom = float((probe * (shifted - smoothed)).sum()) / step / count
            return np.array([residual - noise**2 + 2 * noise**2 * freedom])

        return judge

    def solve(
        self, z: Tensor, seen: Tensor, graph: FeatureGraph, choice: SmoothingChoice, tolerance: float = TOLERANCE
    ) -> Tensor:
        """Smooths the part, of which some entries are seen."""
        observed = None if bool(seen.all()) else seen
        if choice.lambda1 == 0 and choice.lambda2 == 0:
            return z
        return solve_along(z, observed, self.hop, graph, choice.lambda1, choice.lambda2, tolerance)


class _Hiding:
    """Judges by the mean squared error on entries that were hidden.

    Args:
        sample (_Sample): The rows.
        share (float): The share of the known entries that is hidden at a time.
        groups (numpy.ndarray): A number for each column; those of the same number are hidden together.
        generator (numpy.random.Generator): What decides which are hidden.
    """

    def __init__(self, sample: _Sample, share: float, groups: np.ndarray, generator: np.random.Generator) -> None:
        turns = int(np.clip(np.ceil(ENTRIES / max(share * int(sample.known.sum()), 1)), 1, TURNS))
        rows = sample.z.size(0)
        self.sample, self.groups = sample, groups
        self.masks = [sample.known & hidden_mask(rows, groups, share, generator) for _ in range(turns)]
        self.count = sum(int(mask.sum()) for mask in self.masks)
        if self.count == 0:
            raise ValueError("'x' has too few known entries to hide some of them")
        self._graphs: dict[tuple[int, object, int], FeatureGraph] = {}

    def __call__(self, choice: SmoothingChoice) -> np.ndarray:
        total = np.zeros(BLOCKS)
        for errors in self._errors(choice):
            by_row = errors.sum(dim=1).double().numpy()
            total += np.bincount(np.arange(len(by_row)) % BLOCKS, weights=by_row, minlength=BLOCKS)
        return total / self.count

    def explained(self, choice: SmoothingChoice) -> np.ndarray:
        """Returns for each column how much of the variance of its hidden entries a choice restores."""
        left = sum(errors.sum(dim=0).double().numpy() for errors in self._errors(choice))
        there = sum(torch.where(mask, self.sample.z, 0).square().sum(dim=0).double().numpy() for mask in self.masks)
        left, there = (np.bincount(self.groups, weights=sums)[self.groups] for sums in (left, there))
        return 1 - np.divide(left, there, out=np.ones_like(left), where=there > 0)

    def _errors(self, choice: SmoothingChoice) -> Iterator[Tensor]:
        """Gives the squared errors on hidden entries, and zero elsewhere, for each turn."""
        z, known = self.sample.z, self.sample.known
        for turn, mask in enumerate(self.masks):
            visible = torch.where(mask, 0, z)
            key = turn, choice.feature_graph, choice.rank
            if key not in self._graphs:  # a graph is computed once and serves all strengths
                self._graphs[key] = feature_graph_of(choice, visible, self.sample.hop)
            filled = self.sample.solve(visible, known & ~mask, self._graphs[key], choice)
            yield torch.where(mask, filled - z, 0).square()


def feature_graph_of(choice: SmoothingChoice, z: Tensor, hop: Hop | None) -> FeatureGraph:
    """Returns the graph of the columns that a choice names, for a centred and complete table."""
    if choice.lambda2 == 0:
        return NoGraph(z.size(1))
    if choice.feature_graph == "covariance":
        return covariance_graph(z, noise_floor(z), RIDGE)
    graph = SpectralGraph(z.size(1), rank=choice.rank)
    graph.vectors, graph.weights = graph.operand(z, hop)
    return graph
