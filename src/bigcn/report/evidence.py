"""What a report shows of the data themselves: the noisy graph, its feature graph, and how well it can be smoothed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets import DatasetCorrupt, DatasetUnavailable, fingerprint
from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.graphs import noisy_graph
from bigcn.feature_graphs import SpectralGraph
from bigcn.noise import make_noise
from bigcn.report.words import dataset_of
from bigcn.smoothing import BiSmoother, SmoothingChoice, rank_smoothing
from bigcn.sparse import is_sparse

#: The strengths that are tried for the pictures, along the nodes and along the features.
NODE_STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
FEATURE_STRENGTHS = (3.0, 10.0, 30.0)
#: The kinds of noise that change features and leave their number alone.
FEATURE_NOISE = ("noise-level", "noise-rate", "column-noise")
#: The side of the pictures that the digits are.
SIDE = 8


class NoEvidence(ValueError):
    """The data cannot be shown; the message says why, in one sentence."""


@dataclass(frozen=True)
class Smoothed:
    """A smoothed table and how far it is from the clean one.

    Args:
        table (numpy.ndarray): The smoothed features.
        error (float): The mean squared error.
        lambda1, lambda2 (float): The strengths; zero for a direction that was left out.
    """

    table: NDArray[np.floating]
    error: float
    lambda1: float
    lambda2: float


@dataclass(frozen=True)
class Evidence:
    """The graph that the runs of one seed saw, at one amount of noise.

    Args:
        dataset (str): The name of the graph.
        case (str): The kind of noise.
        value (float, optional): The amount of it.
        seed (int): The seed.
        clean, noisy (Data): The graph before and after.
        rank (int): The rank of the feature graph that is shown.
    """

    dataset: str
    case: str
    value: float | None
    seed: int
    clean: Data
    noisy: Data
    rank: int

    @property
    def is_digits(self) -> bool:
        """Whether features are the pixels of a small picture."""
        return self.dataset.lower() == "digits"

    @cached_property
    def columns(self) -> list[int]:
        """The number of each feature that is left, as the clean graph counts them."""
        if self.case == "feature-rate" and self.value is not None:
            noise = make_noise(self.case, self.value, self.seed)
            kept = None if noise is None else noise.changes(self.clean).columns
            return [] if kept is None else [int(column) for column in kept]
        return list(range(self.clean.x.size(1)))

    @cached_property
    def feature_graph(self) -> SpectralGraph:
        """The spectral feature graph of the noisy features."""
        return SpectralGraph.from_data(_dense(self.noisy.x), self.noisy.edge_index, rank=self.rank)

    def strongest_edges(self, count: int = 12) -> list[tuple[str, str, float]]:
        """Returns the strongest edges of the feature graph, by the names of the features."""
        spec = dataset_of(self.dataset)
        named = spec.feature_names if spec is not None else ()
        names = [named[column] if named else f"feature {column}" for column in self.columns]
        return self.feature_graph.top_edges(count, names)

    def listening(self) -> NDArray[np.floating]:
        """Returns the weights of the feature graph between all features, zero for those that are missing."""
        weights = np.zeros((self.clean.x.size(1),) * 2)
        weights[np.ix_(self.columns, self.columns)] = self.feature_graph.adjacency().numpy()
        return weights

    @property
    def error(self) -> float:
        """The mean squared error of the noisy features."""
        return float((_dense(self.noisy.x) - _dense(self.clean.x)).square().mean())

    @cached_property
    def _ranked(self) -> list[SmoothingChoice]:
        return rank_smoothing(
            _dense(self.noisy.x),
            self.noisy.edge_index,
            lambda1=NODE_STRENGTHS,
            lambda2=(0.0, *FEATURE_STRENGTHS),
            feature_graphs=(self.feature_graph,),
            seed=self.seed,
        )

    def smoothed(self, two_way: bool) -> Smoothed:
        """Smooths the noisy features along the nodes, or both ways, with the strengths that best fill in hidden pixels
        of the noisy images; the clean ones only judge the result.

        Args:
            two_way (bool): If set to :obj:`True`, smooths along the feature graph too.
        """
        choice = next(choice for choice in self._ranked if (choice.lambda2 > 0) == two_way)
        smoother = BiSmoother(choice.lambda1, choice.lambda2, self.feature_graph if two_way else "none")
        table = smoother.fit_transform(_dense(self.noisy.x).numpy(), graph=self.noisy)
        error = float(np.square(table - _dense(self.clean.x).numpy()).mean())
        return Smoothed(table, error, choice.lambda1, choice.lambda2)


def evidence(result: ComparisonResult, value: float | None) -> Evidence:
    """Brings back the graph that the runs of the first seed saw.

    Args:
        result (ComparisonResult): What the comparison found.
        value (float, optional): The amount of noise.
    """
    specs = [spec for spec, _ in result.pairs]
    if not specs:
        raise NoEvidence("there are no runs")
    spec = specs[0]
    if dataset_of(spec.dataset) is None:
        raise NoEvidence("the graph is not one that bigcn can load by name")
    if fingerprint(spec.dataset) != spec.dataset_fingerprint:
        raise NoEvidence("the runs saw another version of the graph than the one that is known here")
    try:
        clean = noisy_graph(spec.dataset, "clean", None, spec.seed)
        noisy = noisy_graph(spec.dataset, spec.case, value, spec.seed)
    except (DatasetUnavailable, DatasetCorrupt):
        raise NoEvidence("the graph is not on this machine") from None
    asked = [(spec.settings.get("model") or {}).get("feature_graph_kwargs") or {} for spec in specs]
    # A graph of full rank links nothing to anything, and tells nothing.
    ranks = [kwargs["rank"] for kwargs in asked if kwargs.get("rank", noisy.x.size(1)) < noisy.x.size(1)]
    rank = ranks[0] if ranks else max(1, min(64, noisy.x.size(1) // 4))
    return Evidence(spec.dataset, spec.case, value, spec.seed, clean, noisy, rank)


def examples(evidence: Evidence, count: int = 10) -> Tensor:
    """Returns the first node of each class, so that nobody can be said to have picked them.

    Args:
        evidence (Evidence): The graph.
        count (int, optional): How many at most. (default: :obj:`10`)
    """
    labels = evidence.clean.y
    return torch.tensor([int((labels == label).nonzero()[0]) for label in labels.unique()[:count]])


def _dense(x: Tensor) -> Tensor:
    return x.to_dense() if is_sparse(x) else x
