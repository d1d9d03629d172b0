"""Filling missing values of a table by smoothing it along its rows and its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor
from torch_geometric.utils import subgraph

from bigcn.feature_graphs import FeatureGraph, NoGraph
from bigcn.filters import Hop
from bigcn.node_graphs import edges_of, normalized_graph
from bigcn.smoothing.covariance import covariance_graph
from bigcn.smoothing.functional import check_features, check_graph, check_grids, check_precision, solve_along
from bigcn.smoothing.hiding import CHOOSE_ON, column_groups, connected_rows, hidden_mask
from bigcn.smoothing.neighbours import nearest_edges

NodeGraph = Literal["given", "nearest"]
#: What is tried, from weak to strong.
LAMBDA1 = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
LAMBDA2 = (0.0, 0.3, 1.0, 3.0, 10.0)
#: How many nearest rows a row is linked with.
NEIGHBOURS = 5
#: The relative error of each solution.
TOLERANCE = 1e-3


class ImputationChoice(NamedTuple):
    """One way to fill gaps, and how well it filled hidden ones.

    Args:
        nodes (str): The graph of the rows: the one :obj:`"given"`, or the :obj:`"nearest"` rows of the filled table.
        lambda1, lambda2 (float): The strengths along rows and columns, zero for a direction left out.
        error (float, optional): The mean squared error on hidden entries, in units of the columns' variances.
    """

    nodes: NodeGraph
    lambda1: float
    lambda2: float
    error: float = float("nan")


@dataclass(frozen=True, eq=False)
class Imputation:
    """A filled table.

    Args:
        x (torch.Tensor): The table, its known values as they were.
        choice (ImputationChoice): How its gaps were filled.
        tried (tuple[ImputationChoice, ...]): What else was tried, best first.
    """

    x: Tensor
    choice: ImputationChoice
    tried: tuple[ImputationChoice, ...] = ()


def fill_missing(
    x: Tensor,
    missing: Tensor,
    edge_index: Adj | None,
    edge_weight: OptTensor = None,
    groups: Sequence[int] | None = None,
) -> Tensor:
    """Returns the table with its gaps filled by two-way smoothing; see :func:`impute`.

    Args:
        x (torch.Tensor): The table; what it holds where values are missing does not matter.
        missing (torch.Tensor): True where a value is missing.
        edge_index (torch.Tensor or EdgeIndex): The undirected graph of the rows, or :obj:`None`.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        groups (Sequence[int], optional): See :func:`impute`. (default: :obj:`None`)

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 0.0], [4.0, 8.0]])
        >>> missing = torch.tensor([[False, False], [False, False], [False, True], [False, False]])
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> bool(5 < fill_missing(x, missing, edge_index)[2, 1] < 7)
        True
    """
    return impute(x, missing, edge_index, edge_weight, groups=groups).x


def impute(
    x: Tensor,
    missing: Tensor,
    edge_index: Adj | None,
    edge_weight: OptTensor = None,
    *,
    nodes: Sequence[NodeGraph] = ("given", "nearest"),
    lambda1: Sequence[float] = LAMBDA1,
    lambda2: Sequence[float] = LAMBDA2,
    standardize: bool = True,
    hidden: float = 0.1,
    groups: Sequence[int] | None = None,
    rounds: int = 6,
    seed: int = 0,
) -> Imputation:
    r"""Fills missing values from the rows that are linked and from the columns that go together.

    Columns are brought to mean zero and, unless told otherwise, to variance one. Each round smooths the known values
    along a graph of the rows and along :func:`~bigcn.smoothing.covariance.covariance_graph` of the columns, by the
    objective of :func:`~bigcn.smoothing.smooth` restricted to known entries, and computes both graphs anew from what
    was filled. Which graph of the rows, and the strengths, are those that best fill a share of the known values hidden
    for the purpose; a strength of zero leaves its direction out, and zero in both stands for column means. Time and
    memory grow linearly with the table and its graph.

    Args:
        x (torch.Tensor): The table; what it holds where values are missing does not matter.
        missing (torch.Tensor): True where a value is missing; NaN in the table counts as missing, too.
        edge_index (torch.Tensor or EdgeIndex): The undirected graph of the rows, or :obj:`None`.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        nodes (Sequence[str], optional): The graphs of the rows to try: the one :obj:`"given"`, and the
            :obj:`"nearest"` rows of the filled table. (default: both)
        lambda1, lambda2 (Sequence[float], optional): The strengths to try along rows and columns.
        standardize (bool, optional): If set to :obj:`False`, takes the columns as they are, for tables in one unit:
            what varies more then counts for more. (default: :obj:`True`)
        hidden (float, optional): The share of the known values to hide. (default: :obj:`0.1`)
        groups (Sequence[int], optional): A number for each column; columns of the same number are hidden together, as
            those that one category became must be. (default: each on its own)
        rounds (int, optional): How often the graphs are computed anew, at most. (default: :obj:`6`)
        seed (int, optional): What decides which values are hidden. (default: :obj:`0`)
    """
    observed = _check(x, missing, hidden, rounds)
    check_grids(lambda1, lambda2)
    if not nodes or not set(nodes) <= {"given", "nearest"}:
        raise ValueError(f"'nodes' must be 'given', 'nearest' or both (got {nodes!r})")
    edges = None
    if edge_index is not None:
        check_graph(edge_index, edge_weight, x.size(0))
        edges, edge_weight = edges_of(edge_index, edge_weight)
    if bool(observed.all()):
        return Imputation(x, ImputationChoice(nodes[0], 0.0, 0.0))
    known = torch.where(observed, x, torch.nan)
    mean = torch.nanmean(known, dim=0).nan_to_num()
    deviation = torch.nanmean((known - mean).square(), dim=0).nan_to_num().sqrt()
    constant = deviation <= 10 * torch.finfo(x.dtype).eps * mean.abs()  # but for rounding
    deviation = torch.where(constant, 0, deviation)
    if not standardize:  # one scale for all, so that strengths mean the same
        deviation = deviation.square().mean().sqrt().expand_as(deviation)
    scale = torch.where(deviation > 0, deviation, 1)
    z = torch.where(observed & ~constant, (x - mean) / scale, 0)

    kinds = [kind for kind in nodes if kind == "nearest" or edges is not None] or ["nearest"]
    tried = _search(
        _Part.of(z, observed, edges, edge_weight, hidden, column_groups(groups, x.size(1)), seed),
        kinds,
        lambda1,
        lambda2,
    )
    hop = None if edges is None else normalized_graph(edges, edge_weight, x.size(0), z.dtype)
    filled = _fill(z, observed, hop, tried[0], rounds)
    return Imputation(torch.where(observed, x, torch.where(constant, mean, filled * scale + mean)), tried[0], tried)


@dataclass(frozen=True, eq=False)
class _Part:
    """The rows that strengths are chosen on, some of their known values hidden."""

    z: Tensor
    visible: Tensor
    hidden: Tensor
    hop: Hop | None

    @classmethod
    def of(
        cls,
        z: Tensor,
        observed: Tensor,
        edges: Tensor | None,
        weight: OptTensor,
        share: float,
        groups: np.ndarray,
        seed: int,
    ) -> "_Part":
        # A stream of its own: what a caller drew from the same seed, gaps for instance, must not be drawn again.
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(b"impute"))))
        if z.size(0) > CHOOSE_ON:
            rows = connected_rows(edges, z.size(0), CHOOSE_ON, generator)
            if edges is not None:
                edges, weight = subgraph(rows, edges, weight, relabel_nodes=True, num_nodes=z.size(0))
            z, observed = z[rows], observed[rows]
        hidden = observed & hidden_mask(z.size(0), groups, share, generator)
        hop = None if edges is None else normalized_graph(edges, weight, z.size(0), z.dtype)
        return cls(z, observed & ~hidden, hidden, hop)

    def error(self, choice: ImputationChoice) -> float:
        filled = _fill(self.z, self.visible, self.hop, choice, rounds=3)
        # Nothing to hide in a table with hardly a value: then column means are as good as anything.
        return float((filled - self.z)[self.hidden].square().sum() / max(int(self.hidden.sum()), 1))


def _search(
    part: _Part, nodes: Sequence[NodeGraph], lambda1: Sequence[float], lambda2: Sequence[float]
) -> tuple[ImputationChoice, ...]:
    """Tries strengths along one direction at a time, beginning with column means and the middle of the grid."""
    tried: dict[ImputationChoice, float] = {}

    def best_of(candidates: list[ImputationChoice]) -> ImputationChoice:
        for candidate in candidates:
            if candidate not in tried:
                tried[candidate] = part.error(candidate)
        return min(tried, key=lambda choice: tried[choice])

    first, second = (sorted(grid)[len(grid) // 2] for grid in (lambda1, lambda2))
    means = [ImputationChoice(nodes[0], 0.0, 0.0)] if 0.0 in lambda1 and 0.0 in lambda2 else []
    best = best_of(means + [ImputationChoice(kind, first, second) for kind in nodes])
    for _ in range(2):
        best = best_of([best._replace(lambda2=value) for value in lambda2])
        best = best_of([best._replace(lambda1=value) for value in lambda1])
    return tuple(choice._replace(error=tried[choice]) for choice in sorted(tried, key=lambda choice: tried[choice]))


def _fill(z: Tensor, observed: Tensor, given: Hop | None, choice: ImputationChoice, rounds: int) -> Tensor:
    """Smooths, keeps the known values, computes the graphs anew, and again, until what is filled hardly moves."""
    filled = torch.where(observed, z, 0)
    if choice.lambda1 == 0 and choice.lambda2 == 0:
        return filled
    fixed = choice.lambda2 == 0 and (choice.nodes == "given" or choice.lambda1 == 0)
    for _ in range(1 if fixed else rounds):
        hop = given
        if choice.nodes == "nearest" and choice.lambda1 > 0:
            hop = normalized_graph(nearest_edges(filled, NEIGHBOURS), None, z.size(0), z.dtype)
        graph: FeatureGraph = covariance_graph(filled) if choice.lambda2 > 0 else NoGraph(z.size(1))
        solved = solve_along(z, observed, hop, graph, choice.lambda1, choice.lambda2, TOLERANCE, start=filled)
        moved, filled = filled, torch.where(observed, z, solved)
        if float((filled - moved).norm()) <= TOLERANCE * float(filled.norm()):
            break
    return filled


def _check(x: Tensor, missing: Tensor, hidden: float, rounds: int) -> Tensor:
    """Refuses what cannot be filled; returns which entries are known."""
    if not isinstance(missing, Tensor) or missing.dtype != torch.bool or missing.shape != getattr(x, "shape", None):
        raise ValueError("'missing' must be a mask of the shape of 'x'")
    if not 0 < hidden < 1:
        raise ValueError(f"'hidden' must lie between 0 and 1 (got {hidden})")
    if rounds < 1:
        raise ValueError(f"'rounds' must be at least 1 (got {rounds})")
    check_precision(x)
    observed = check_features(torch.where(missing, torch.nan, x), missing="fill")
    return torch.ones_like(missing) if observed is None else observed
