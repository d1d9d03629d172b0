r"""Noise for graphs whose features or edges cannot be trusted, as PyTorch Geometric transforms.

Each transform draws from a generator of its own on the CPU, so that a seed means the same noise on every device, leaves
its input as it was, and can name what it changes. Noise on features makes a sparse :obj:`x` dense and an integer one
floating point; with one seed, a higher value adds to the noise of a lower one instead of replacing it.

>>> from torch_geometric.datasets import KarateClub
>>> mistakes, clean = StructureMistakes(0.01, seed=1), KarateClub()[0]
>>> clean.num_edges, mistakes(clean).num_edges, mistakes.changes(clean).removed.tolist()
(156, 158, [[20], [32]])
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from bigcn.checks import is_finite, is_whole


@dataclass(frozen=True, eq=False)
class NoiseRecord:
    """What a transform changes in one graph, in ascending order; :obj:`None` for what it never touches."""

    nodes: Tensor | None = None  # given noise
    columns: Tensor | None = None  # given noise (ColumnNoise) or kept (FeatureRate)
    added: Tensor | None = None  # pairs i < j, of shape [2, k], that became edges
    removed: Tensor | None = None  # pairs i < j, of shape [2, k], that were edges


class Noise(BaseTransform):
    """The base class of all noise: a seed, any non-negative integer, and the stream of this class that it starts."""

    def __init__(self, seed: int = 0) -> None:
        if not is_whole(seed) or seed < 0:
            raise ValueError(f"seed must be a non-negative integer, got {seed!r}.")
        self.seed: int = int(seed)

    @abstractmethod
    def changes(self, data: Data) -> NoiseRecord:
        r"""Names what this transform changes in :obj:`data`, the graph before the noise, by drawing it once more."""

    def _generator(self) -> np.random.Generator:
        # NumPy, since torch's normals depend on the vector instructions of the machine and its seeds have a limit.
        stream = tuple(type(self).__name__.encode())
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=stream)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value}' for key, value in vars(self).items())})"


class NoiseLevel(Noise):
    r"""Adds Gaussian noise of one standard deviation to the features of every node

    .. math::
        \mathbf{X}^{\prime} = \mathbf{X} + \sigma \mathbf{E}, \qquad \mathbf{E}_{ij} \sim \mathcal{N}(0, 1).

    Args:
        level (float): The standard deviation :math:`\sigma \geq 0`.
        seed (int, optional): The seed of the noise. (default: :obj:`0`)

    """

    def __init__(self, level: float, seed: int = 0) -> None:
        self.level = _number("level", level)
        super().__init__(seed)

    def forward(self, data: Data) -> Data:
        x = _features(data, dense=True)
        data.x = _add(x, self.level * self._generator().standard_normal(x.shape, dtype=np.float32))
        return data

    def changes(self, data: Data) -> NoiseRecord:
        x = _features(data)
        return NoiseRecord(nodes=torch.arange(x.size(0) if self.level > 0 else 0, device=x.device))


class NoiseRate(Noise):
    r"""Adds Gaussian noise to exactly :obj:`round(rate * num_nodes)` nodes, each with a standard deviation of its own

    .. math::
        \mathbf{x}^{\prime}_i = \mathbf{x}_i + \sigma_i \mathbf{e}_i, \qquad
        \mathbf{e}_i \sim \mathcal{N}(0, 1), \quad \sigma_i \sim \mathcal{U}(0, 1).

    Args:
        rate (float): The share of nodes, from 0 to 1.
        seed (int, optional): The seed of the noise. (default: :obj:`0`)

    """

    def __init__(self, rate: float, seed: int = 0) -> None:
        self.rate = _number("rate", rate, high=1)
        super().__init__(seed)

    def forward(self, data: Data) -> Data:
        x, generator = _features(data, dense=True), self._generator()
        nodes = _draw(generator, x.size(0), self.rate)
        # One deviation for every node, used or not, so that what is drawn next does not depend on the rate.
        deviation = generator.random((x.size(0), 1), dtype=np.float32)[: nodes.numel()]
        noise = deviation * generator.standard_normal((nodes.numel(), x.size(1)), dtype=np.float32)
        data.x = x.index_copy(0, nodes.to(x.device), _add(x[nodes.to(x.device)], noise))
        return data

    def changes(self, data: Data) -> NoiseRecord:
        x = _features(data)
        return NoiseRecord(nodes=_draw(self._generator(), x.size(0), self.rate).sort().values.to(x.device))


class ColumnNoise(Noise):
    r"""Adds Gaussian noise to exactly :obj:`round(rate * num_features)` feature columns, at every node

    .. math::
        \mathbf{X}^{\prime}_{:j} = \mathbf{X}_{:j} + \sigma \mathbf{e}_j, \qquad \mathbf{e}_j \sim \mathcal{N}(0, 1).

    Args:
        rate (float): The share of columns, from 0 to 1.
        level (float, optional): The standard deviation :math:`\sigma \geq 0`. (default: :obj:`1.0`)
        seed (int, optional): The seed of the noise. (default: :obj:`0`)

    """

    def __init__(self, rate: float, level: float = 1.0, seed: int = 0) -> None:
        self.rate = _number("rate", rate, high=1)
        self.level = _number("level", level)
        super().__init__(seed)

    def forward(self, data: Data) -> Data:
        x, generator = _features(data, dense=True), self._generator()
        columns = _draw(generator, x.size(1), self.rate)
        noise = self.level * generator.standard_normal((columns.numel(), x.size(0)), dtype=np.float32).T
        data.x = x.index_copy(1, columns.to(x.device), _add(x[:, columns.to(x.device)], noise))
        return data

    def changes(self, data: Data) -> NoiseRecord:
        x = _features(data)
        columns = _draw(self._generator(), x.size(1), self.rate if self.level > 0 else 0)
        return NoiseRecord(columns=columns.sort().values.to(x.device))


class FeatureRate(Noise):
    r"""Keeps :obj:`round(rate * num_features)` feature columns, and at least one, and drops the others.

    Columns stay in their order and a sparse :obj:`x` in its layout; :meth:`changes` names the columns that are kept.

    Args:
        rate (float): The share of columns to keep, from 0 to 1.
        seed (int, optional): The seed of the draw. (default: :obj:`0`)

    """

    def __init__(self, rate: float, seed: int = 0) -> None:
        self.rate = _number("rate", rate, high=1)
        super().__init__(seed)

    def forward(self, data: Data) -> Data:
        columns, x = self.changes(data).columns, data.x
        if x.layout == torch.strided:
            data.x = x.index_select(1, columns)
        else:  # Of the sparse layouts, only COO can select columns.
            data.x = x.to_sparse_coo().index_select(1, columns).coalesce().to_sparse(layout=x.layout)
        return data

    def changes(self, data: Data) -> NoiseRecord:
        x = _features(data)
        return NoiseRecord(columns=_draw(self._generator(), x.size(1), self.rate, 1).sort().values.to(x.device))


class StructureMistakes(Noise):
    r"""Flips each unordered pair of distinct nodes with one probability: an edge is lost, a non-edge becomes an edge

    .. math::
        \mathbf{A}^{\prime}_{ij} = \mathbf{A}^{\prime}_{ji} = \mathbf{A}_{ij} \oplus \mathbf{M}_{ij}, \qquad
        \mathbf{M}_{ij} \sim \mathrm{Bernoulli}(r), \quad i < j.

    Time and memory grow with the edges and the flips, not with the square of the number of nodes. The graph must be
    undirected, without duplicate edges; self-loops stay as they are. The result is sorted. Edges keep their
    :obj:`edge_weight`, new ones have weight 1; other attributes of edges are refused, since new ones would have none.

    Args:
        ratio (float): The probability :math:`r` of a flip, from 0 to 1.
        seed (int, optional): The seed of the flips. (default: :obj:`0`)

    """

    def __init__(self, ratio: float, seed: int = 0) -> None:
        self.ratio = _number("ratio", ratio, high=1)
        super().__init__(seed)

    def forward(self, data: Data) -> Data:
        n, key, order, keep, new = self._flip(data)
        key, position = torch.cat([key[keep], new]).sort()
        if data.x is None:
            data.num_nodes = data.num_nodes  # One inferred from the edges could shrink with them.
        if (weight := data.edge_weight) is not None:
            ones = weight.new_ones(new.numel(), *weight.shape[1:])
            data.edge_weight = torch.cat([weight[order[keep]], ones])[position]
        edges, data.edge_index = data.edge_index, torch.stack([key // n, key % n]).to(data.edge_index.dtype)
        if isinstance(edges, EdgeIndex):
            data.edge_index = EdgeIndex(data.edge_index, sparse_size=(n, n), sort_order="row", is_undirected=True)
        return data

    def changes(self, data: Data) -> NoiseRecord:
        n, key, _, keep, new = self._flip(data)
        added, removed = (torch.stack([k // n, k % n]) for k in (new, key[~keep]))
        return NoiseRecord(added=added[:, added[0] < added[1]], removed=removed[:, removed[0] < removed[1]])

    def _flip(self, data: Data) -> tuple[int, Tensor, Tensor, Tensor, Tensor]:
        r"""Returns n, the edges as sorted keys :math:`in + j`, their order in :obj:`data`, which stay, and new keys."""
        row, col = _edges(data)
        n = max(data.num_nodes, 1)  # No node has no pairs, as one node has.
        key, order = (row * n + col).sort()
        if bool((key[1:] == key[:-1]).any()) or not torch.equal((col * n + row).sort().values, key):
            raise ValueError("data.edge_index must hold each edge once in both directions; apply ToUndirected first.")
        i, j = self._pairs(n).to(key.device)
        flipped = torch.cat([i * n + j, j * n + i]).sort().values
        position = torch.searchsorted(key, flipped)
        # The last entry, which no pair equals, stands for a position beyond the end.
        present = torch.cat([key, key.new_tensor([-1])])[position] == flipped
        keep = torch.ones_like(key, dtype=torch.bool)
        keep[position[present]] = False
        return n, key, order, keep, flipped[~present]

    def _pairs(self, n: int) -> Tensor:
        generator, total = self._generator(), n * (n - 1) // 2
        drawn = generator.choice(total, generator.binomial(total, self.ratio), replace=False, shuffle=False)
        # Pairs are numbered by their distance around a ring of n nodes, then by where they begin: every number below
        # n(n-1)/2 is one pair, without the square root, inexact for large n, that rows of a triangle would need.
        begin = drawn % n
        return torch.from_numpy(np.stack([begin, (begin + drawn // n + 1) % n])).long()


def _number(name: str, value: float, high: float = math.inf) -> float:
    if isinstance(value, bool) or not is_finite(value) or not 0 <= value <= high:
        wanted = "a finite number, not negative" if math.isinf(high) else f"a number from 0 to {high:g}"
        raise ValueError(f"{name} must be {wanted}, got {value!r}.")
    return float(value)


def _features(data: Data, dense: bool = False) -> Tensor:
    x = getattr(data, "x", None)
    if not isinstance(x, Tensor) or x.dim() != 2 or x.size(1) == 0 or x.is_complex():
        raise ValueError("data.x must be a matrix of real numbers with a row for each node and at least one column.")
    values = x if x.layout == torch.strided else x.to_sparse_coo().coalesce().values()
    if not bool(torch.isfinite(values).all()):
        raise ValueError("data.x must not hold NaN or infinite values.")
    return x.to_dense().to(x.dtype if x.is_floating_point() else torch.get_default_dtype()) if dense else x


def _draw(generator: np.random.Generator, size: int, share: float, at_least: int = 0) -> Tensor:
    # The head of one permutation, so that a larger share holds every smaller one.
    return torch.from_numpy(generator.permutation(size)[: max(at_least, round(size * share))]).long()


def _add(x: Tensor, noise: np.ndarray) -> Tensor:
    # The noise comes scaled: a fused multiply and add on the GPU would round differently.
    noisy = x + torch.from_numpy(noise).to(x.dtype).to(x.device)
    if not bool(torch.isfinite(noisy).all()):
        raise ValueError(f"level is too large: the noise overflows data.x of type {x.dtype}.")
    return noisy


def _edges(data: Data) -> Tensor:
    if isinstance(data, Batch):
        raise ValueError("data must be a single graph: a flipped pair could join two graphs of a batch.")
    edges = getattr(data, "edge_index", None)
    if not isinstance(edges, Tensor) or edges.shape[:-1] != (2,) or edges.dtype not in (torch.int32, torch.int64):
        raise ValueError("data.edge_index must be a tensor of integers of shape [2, num_edges].")
    for key, _ in data:
        # Lists of edges of their own (splits, labels) are not aligned with edge_index, so they stay right.
        kept = key == "edge_weight" or key.endswith("index") or "edge_label" in key
        if key in ("adj", "adj_t") or ("edge" in key and not kept):
            raise ValueError(f"data.{key} is unknown for the edges that are added; remove it first.")
    if edges.numel() > 0 and not 0 <= int(edges.min()) <= int(edges.max()) < data.num_nodes:
        raise ValueError(f"data.edge_index must name nodes from 0 to {data.num_nodes - 1}.")
    weight = data.edge_weight
    if weight is not None and (not isinstance(weight, Tensor) or weight.shape[:1] != edges.shape[1:]):
        raise ValueError("data.edge_weight must have one entry for each edge.")
    return edges.as_tensor().long() if isinstance(edges, EdgeIndex) else edges.long()


CASES: dict[str, type] = {
    "noise-level": NoiseLevel,
    "noise-rate": NoiseRate,
    "column-noise": ColumnNoise,
    "structure-mistakes": StructureMistakes,
    "feature-rate": FeatureRate,
}


def make_noise(case: str, value: float, seed: int = 0) -> Noise | None:
    r"""Returns the noise of a named case at one value, and :obj:`None` for the case :obj:`"clean"`."""
    if case not in ("clean", *CASES):
        raise ValueError(f"case must be one of clean, {', '.join(CASES)}, got {case!r}.")
    return None if case == "clean" else CASES[case](value, seed=seed)
