"""A feature graph that says how columns go together in the table at hand."""

import math

import numpy as np
import torch
from torch import Tensor

from bigcn.feature_graphs import SpectralGraph

#: The share of the mean variance that is added to every direction before the covariance is inverted.
RIDGE = 0.01
#: Beyond this many columns only the leading directions are told apart.
WIDEST, DIRECTIONS = 512, 128


def covariance_graph(x: Tensor, noise: float = 0.0, ridge: float = RIDGE) -> SpectralGraph:
    r"""Returns the feature graph whose Laplacian is, up to scale, the inverse covariance of the columns

    .. math::
        \mathbf{L}_2 = \epsilon {\left( \mathbf{\Sigma} + \epsilon \mathbf{I} \right)}^{-1},

    so that smoothing along it is what a Gaussian model of the rows would do: directions in which the columns vary
    together are left alone, others are damped. Its links are signed and proportional to partial covariances.

    Args:
        x (torch.Tensor): The features, centred and complete.
        noise (float, optional): The variance of noise in every entry, taken off the variances; see
            :func:`noise_floor`. (default: :obj:`0.0`)
        ridge (float, optional): :math:`\epsilon` as a share of the mean variance. (default: :obj:`0.01`)
    """
    num_rows, num_features = x.shape
    if num_features <= WIDEST:
        values, vectors = torch.linalg.eigh(x.t() @ x / max(num_rows, 1))
    else:
        rank = min(DIRECTIONS, num_features)
        vectors = SpectralGraph(num_features, rank=rank, smoothing=0.0).operand(x)[0]
        values = (x @ vectors).square().mean(dim=0)
    values = (values - noise).clamp(min=0)
    epsilon = ridge * float(x.square().mean()) or 1.0
    graph = SpectralGraph(num_features, rank=vectors.size(1), weighting="soft", smoothing=0.0)
    graph.vectors, graph.weights = vectors, values / (values + epsilon)
    return graph


def noise_floor(x: Tensor) -> float:
    r"""Estimates the variance of noise that is equally large in all columns, from the directions that vary least.

    The mean of the lowest quarter of the eigenvalues of the covariance, over what that mean would be for noise of
    variance one by the law of Marchenko and Pastur. Where the columns are not redundant, what they hold counts as
    noise, so it is an upper bound; of tables with fewer than twice as many rows as columns, or very wide ones, nothing
    is said and zero returned.

    Args:
        x (torch.Tensor): The features, centred and complete.
    """
    num_rows, num_features = x.shape
    if num_features > WIDEST or num_rows < 2 * num_features:
        return 0.0
    values = torch.linalg.eigvalsh((x.t() @ x / num_rows).double())
    lowest = float(values[: max(1, num_features // 4)].clamp(min=0).mean())
    return lowest / _lowest_quarter(num_features / num_rows)


def _lowest_quarter(ratio: float, points: int = 4096) -> float:
    """Returns the mean of the lowest quarter of Marchenko and Pastur's law for a ratio of columns to rows."""
    low, high = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    value = low + (high - low) * (np.arange(points) + 0.5) / points
    density = np.sqrt((high - value) * (value - low)) / value
    share = density.cumsum() / density.sum()
    lowest = share <= 0.25
    return float((value * density)[lowest].sum() / density[lowest].sum())
