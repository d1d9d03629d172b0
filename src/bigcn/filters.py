r"""The two-way low-pass filter of BiGCN, as mathematics.

A feature matrix :math:`\mathbf{F}` is smoothed along a node graph with Laplacian :math:`\mathbf{L}_1` and along a
feature graph with Laplacian :math:`\mathbf{L}_2` by

.. math::
    \min_{\mathbf{Y}} {\Vert \mathbf{Y} - \mathbf{F} \Vert}^2_F
    + \lambda_1 \, \mathrm{tr}(\mathbf{Y}^{\top} \mathbf{L}_1 \mathbf{Y})
    + \lambda_2 \, \mathrm{tr}(\mathbf{Y} \mathbf{L}_2 \mathbf{Y}^{\top}),

and the paper solves it approximately by a few rounds of ADMM with penalty :math:`p`. With the two one-sided filters

.. math::
    \mathbf{A} = {\left( \mathbf{I} + \tfrac{2\lambda_1}{1+p} \mathbf{L}_1 \right)}^{-1}
    \quad \text{and} \quad
    \mathbf{B} = {\left( \mathbf{I} + \tfrac{2\lambda_2}{1+p} \mathbf{L}_2 \right)}^{-1},

or their first-order Taylor forms :math:`\mathbf{I} - \tfrac{2\lambda}{1+p} \mathbf{L}`, every iterate is a bivariate
polynomial :math:`\sum_{ab} c_{ab} \mathbf{A}^a \mathbf{F} \mathbf{B}^b` whose coefficients depend on :math:`p` and on
the number of rounds only. :func:`admm` is the recursion, :func:`admm_coefficients` the polynomial.

Throughout the library a *strength* is :math:`2\lambda/(1+p)`, the quantity the paper calls :math:`\lambda`.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from bigcn.checks import is_finite, is_whole

FilterForm = Literal["taylor", "exact"]
FeatureOperator = Literal["laplacian", "adjacency"]


#: The largest strength of a filter.
STRONGEST = 1e7
#: What still counts as a ripple of a low-pass filter.
RIPPLE = 0.065


class Hop(Protocol):
    r"""Multiplies a block by a normalised adjacency :math:`\mathbf{N} = \mathbf{I} - \mathbf{L}`."""

    def __call__(self, block: Tensor, /) -> Tensor: ...


class NotLowPassWarning(UserWarning):
    """The chosen strengths do not make a low-pass filter. Silence it with :func:`warnings.filterwarnings`."""


def admm(
    features: Tensor,
    node_filter: Callable[[Tensor], Tensor],
    feature_filter: Callable[[Tensor], Tensor],
    p: float,
    iterations: int,
    tolerance: float = 0.0,
) -> Tensor:
    r"""Runs the ADMM recursion itself, for any number of rounds.

    .. math::
        \mathbf{Y}_1 &\leftarrow \tfrac{1}{1+p} \mathbf{A} (\mathbf{F} + p \mathbf{Y}_2 + \mathbf{Z}) \\
        \mathbf{Y}_2 &\leftarrow \tfrac{1}{1+p} (\mathbf{F} + p \mathbf{Y}_1 - \mathbf{Z}) \mathbf{B} \\
        \mathbf{Z} &\leftarrow \mathbf{Z} + p (\mathbf{Y}_2 - \mathbf{Y}_1)

    from :math:`\mathbf{Y}_1 = \mathbf{Y}_2 = \mathbf{F}`, :math:`\mathbf{Z} = \mathbf{0}`; the result is
    :math:`(\mathbf{Y}_1 + \mathbf{Y}_2) / 2`.

    Args:
        features (torch.Tensor): The matrix :math:`\mathbf{F}`.
        node_filter (Callable): Multiplies by :math:`\mathbf{A}` from the left.
        feature_filter (Callable): Multiplies by :math:`\mathbf{B}` from the right.
        p (float): The penalty of ADMM, greater than :math:`-1`.
        iterations (int): The number of rounds, or the most of them when :obj:`tolerance` is given.
        tolerance (float, optional): If positive, stops once no entry of the result moves by more than this and the
            two halves agree to it. (default: :obj:`0.0`)
    """
    check_rounds(p, iterations)
    y1 = y2 = features
    z = torch.zeros_like(features)
    for _ in range(iterations):
        before = y1
        y1 = node_filter(features + p * y2 + z) / (1 + p)
        y2 = feature_filter(features + p * y1 - z) / (1 + p)
        z = z + p * (y2 - y1)
        if tolerance > 0 and max((y1 - before).abs().max(), (y1 - y2).abs().max()) <= tolerance:
            break
    return (y1 + y2) / 2


def admm_coefficients(p: float, iterations: int) -> Tensor:
    r"""Returns the coefficients :math:`c_{ab}` of :math:`\sum_{ab} c_{ab} \mathbf{A}^a \mathbf{F} \mathbf{B}^b`.

    They always sum to one. Meant for few rounds: the polynomial is the recursion written out, and for many rounds its
    terms grow large and cancel, so anything that runs to convergence should use :func:`admm`.

    Args:
        p (float): The penalty of ADMM, greater than :math:`-1`.
        iterations (int): The number of rounds :math:`k`.

    :rtype: :class:`torch.Tensor` of shape :math:`(k+1, k+1)` in double precision; rows are powers of
        :math:`\mathbf{A}`, columns are powers of :math:`\mathbf{B}`.

    Example:
        >>> admm_coefficients(p=3, iterations=1)
        tensor([[0.0000, 0.1250],
                [0.5000, 0.3750]], dtype=torch.float64)
    """
    check_rounds(p, iterations)
    one = torch.zeros(iterations + 1, iterations + 1, dtype=torch.float64, device="cpu")
    one[0, 0] = 1.0
    # On coefficients, a product with A (or B) moves every row (or column) up by one power.
    return admm(one, lambda c: c.roll(1, 0), lambda c: c.roll(1, 1), p, iterations)


def one_sided_response(mu: Tensor, strength: float, form: FilterForm) -> Tensor:
    r"""Returns what :math:`\mathbf{A}` or :math:`\mathbf{B}` does to a Laplacian eigenvalue :math:`\mu`.

    Args:
        mu (torch.Tensor): Frequencies, the eigenvalues of a normalised Laplacian, in :math:`[0, 2]`.
        strength (float): The strength :math:`s`.
        form (str): :obj:`"taylor"` for :math:`1 - s\mu`, :obj:`"exact"` for :math:`1 / (1 + s\mu)`.
    """
    return 1 / (1 + strength * mu) if form == "exact" else 1 - strength * mu


def frequency_response(
    mu_node: Any,
    mu_feature: Any,
    p: float,
    node_strength: float,
    feature_strength: float,
    iterations: int = 2,
    node_filter: FilterForm = "exact",
    feature_filter: FilterForm = "exact",
    feature_operator: FeatureOperator = "laplacian",
) -> Tensor:
    r"""Returns the factor by which the filter scales a component of node frequency :math:`\mu_1` and feature
    frequency :math:`\mu_2`.

    Args:
        mu_node (array_like): Eigenvalues of the node Laplacian, in :math:`[0, 2]`.
        mu_feature (array_like): Eigenvalues of the feature Laplacian; broadcast against :obj:`mu_node`.
        p (float): The penalty of ADMM.
        node_strength (float): :math:`2\lambda_1/(1+p)`.
        feature_strength (float): :math:`2\lambda_2/(1+p)`.
        iterations (int, optional): The rounds of ADMM. (default: :obj:`2`)
        node_filter (str, optional): :obj:`"exact"` or :obj:`"taylor"`. (default: :obj:`"exact"`)
        feature_filter (str, optional): :obj:`"exact"` or :obj:`"taylor"`. (default: :obj:`"exact"`)
        feature_operator (str, optional): :obj:`"laplacian"` for the paper's text, :obj:`"adjacency"` for the released
            code, which puts the normalised adjacency where the Laplacian should stand. (default: :obj:`"laplacian"`)

    Example:
        >>> frequency_response([0.0, 2.0], 0.0, p=1, node_strength=5, feature_strength=0)
        tensor([1.0000, 0.2045], dtype=torch.float64)
    """
    check_rounds(p, iterations)
    check_strength("node_strength", node_strength)
    check_strength("feature_strength", feature_strength)
    check_forms(node_filter, feature_filter, feature_operator)
    mu_node = torch.as_tensor(mu_node, dtype=torch.float64, device="cpu")
    mu_feature = torch.as_tensor(mu_feature, dtype=torch.float64, device="cpu")
    operator = mu_feature if feature_operator == "laplacian" else 1 - mu_feature
    a = one_sided_response(mu_node, node_strength, node_filter)
    b = one_sided_response(operator, feature_strength, feature_filter)
    powers_a = torch.stack([a**i for i in range(iterations + 1)], dim=-1)
    powers_b = torch.stack([b**i for i in range(iterations + 1)], dim=-1)
    c = admm_coefficients(p, iterations)
    return ((powers_a @ c) * powers_b).sum(dim=-1)


def is_low_pass(
    p: float,
    node_strength: float,
    feature_strength: float,
    iterations: int = 2,
    node_filter: FilterForm = "exact",
    feature_filter: FilterForm = "exact",
    feature_operator: FeatureOperator = "laplacian",
    tolerance: float = RIPPLE,
    resolution: int = 41,
    highest_feature: float = 2.0,
) -> bool:
    r"""Answers whether the filter is low-pass on all frequencies, those of nodes up to :math:`2`.

    A low-pass filter lets nothing through with its sign flipped, amplifies nothing, and never lets a higher frequency
    through better than a lower one, in either direction, each up to :obj:`tolerance`. The tolerance is there because
    two rounds of ADMM ripple by a few percent where both frequencies are high, even with exact resolvents: by
    :math:`1/16` with :math:`p = 1` and a feature filter that lets nothing through.

    Args:
        p, node_strength, feature_strength, iterations, node_filter, feature_filter, feature_operator: The filter, as
            in :func:`frequency_response`.
        tolerance (float, optional): What still counts as a ripple. (default: :obj:`0.065`)
        resolution (int, optional): Points per direction of the grid that is looked at. (default: :obj:`41`)
        highest_feature (float, optional): The highest frequency of the feature graph, see
            :attr:`~bigcn.feature_graphs.FeatureGraph.highest_frequency`. (default: :obj:`2.0`)

    Example:
        >>> is_low_pass(p=3, node_strength=1.8, feature_strength=1.8, node_filter="taylor", feature_filter="taylor")
        False
        >>> is_low_pass(p=1, node_strength=5, feature_strength=1)
        True
    """
    mu = torch.linspace(0, 2, resolution, dtype=torch.float64, device="cpu")
    response = frequency_response(
        mu.view(-1, 1),
        mu.view(1, -1) * (highest_feature / 2),
        p,
        node_strength,
        feature_strength,
        iterations,
        node_filter,
        feature_filter,
        feature_operator,
    )
    # How far each value lies above the smallest one at a lower frequency.
    rise_node = (response - response.cummin(dim=0).values).max()
    rise_feature = (response - response.cummin(dim=1).values).max()
    return bool(
        response.min() >= -tolerance
        and response.max() <= 1 + tolerance
        and rise_node <= tolerance
        and rise_feature <= tolerance
    )


def resolvent_coefficients(strength: float, max_power: int = 1, tolerance: float = 1e-6) -> Tensor:
    r"""Expands the exact filter and its powers in Chebyshev polynomials of the normalised adjacency.

    With :math:`\mathbf{N} = \mathbf{I} - \mathbf{L}` and eigenvalues :math:`\nu \in [-1, 1]`, the exact filter is
    :math:`(1 + s - s\nu)^{-1}`, whose Chebyshev coefficients fall like :math:`q^j` with
    :math:`q = (1 + s - \sqrt{1 + 2s}) / s`. All powers share one recursion over :math:`\mathbf{N}`, so
    :math:`k` powers cost little more than one.

    Args:
        strength (float): The strength :math:`s`.
        max_power (int, optional): The highest power :math:`k`. (default: :obj:`1`)
        tolerance (float, optional): The largest error in any eigenvalue of any power. (default: :obj:`1e-6`)

    :rtype: :class:`torch.Tensor` of shape :math:`(K+1, k+1)` in double precision: column :math:`a` holds the
        coefficients of the :math:`a`-th power. The degree :math:`K` depends on strength and tolerance only.
    """
    check_strength("strength", strength)
    check_tolerance(tolerance)
    q = 0.0 if strength == 0 else (1 + strength - math.sqrt(1 + 2 * strength)) / strength
    # Sampled finely enough that the aliased tail is far below double precision for every power.
    points = 64 if q == 0 else 64 + math.ceil(80 * max_power / -math.log(q))
    angle = (torch.arange(points, dtype=torch.float64, device="cpu") + 0.5) * math.pi / points
    response = one_sided_response(2 * (angle / 2).sin() ** 2, strength, "exact")
    samples = torch.stack([response**a for a in range(max_power + 1)], dim=1)
    # The cosine transform by way of the Fourier transform: a large strength needs too many points for a matrix of them.
    # Only the part that can matter is kept: the rest has fallen below 1e-17.
    degrees = torch.arange(points // 2, dtype=torch.float64, device="cpu")
    spectrum = torch.fft.rfft(torch.cat([samples, samples.flip(0)]), dim=0)[: points // 2]
    shift = torch.polar(torch.ones_like(degrees), -math.pi / (2 * points) * degrees)
    coefficients = (spectrum * shift.unsqueeze(1)).real / points
    coefficients[0] /= 2
    coefficients[coefficients.abs() < 1e-15] = 0  # rounding, which would otherwise pass for a long tail
    tail = coefficients.abs().flip(0).cumsum(0).flip(0).amax(dim=1)
    degree = int((tail > tolerance).sum()) - 1
    return coefficients[: max(degree, 0) + 1].clone()


def chebyshev_sum(hop: Hop, term: Callable[[int], Tensor], degree: int) -> Tensor:
    r"""Returns :math:`\sum_{j \le K} T_j(\mathbf{N}) \, \mathbf{D}_j` by Clenshaw's recursion, one hop a degree.

    Args:
        hop (Hop): Multiplies by :math:`\mathbf{N}`.
        term (Callable): Returns the block :math:`\mathbf{D}_j`, coefficient included; called once for each, so that
            no more than three blocks live at a time.
        degree (int): The degree :math:`K`.
    """
    if degree == 0:
        return term(0)
    older, newer = None, term(degree)
    for j in range(degree - 1, 0, -1):
        step = term(j) + 2 * hop(newer)
        older, newer = newer, step if older is None else step - older
    result = term(0) + hop(newer)
    return result if older is None else result - older


def check_rounds(p: float, iterations: int) -> None:
    """Refuses a penalty or a number of rounds for which the recursion has no meaning."""
    if not (is_finite(p) and p > -1):
        raise ValueError(f"'p' must be a finite number greater than -1 (got {p})")
    if not is_whole(iterations) or iterations < 1:
        raise ValueError(f"'iterations' must be a whole number of at least 1 (got {iterations})")


def check_strength(name: str, strength: float) -> None:
    """Refuses a negative or infinite strength, and one whose exact filter would take many thousand hops."""
    if not (is_finite(strength) and strength >= 0):
        raise ValueError(f"'{name}' must be a finite number of at least 0 (got {strength})")
    if strength > STRONGEST:
        raise ValueError(
            f"'{name}' must not exceed {STRONGEST:g} (got {strength:g}): an exact filter would take many thousand hops"
        )


def check_tolerance(tolerance: float) -> None:
    """Refuses an error that no filter could keep to, or that allows everything."""
    if not (is_finite(tolerance) and 0 < tolerance < 1):
        raise ValueError(f"'tolerance' must lie between 0 and 1 (got {tolerance})")


def check_forms(node_filter: str, feature_filter: str, feature_operator: str) -> None:
    """Refuses unknown filter forms and the one combination that can be singular."""
    for name, form in (("node_filter", node_filter), ("feature_filter", feature_filter)):
        if form not in ("taylor", "exact"):
            raise ValueError(f"'{name}' must be 'taylor' or 'exact' (got {form!r})")
    if feature_operator not in ("laplacian", "adjacency"):
        raise ValueError(f"'feature_operator' must be 'laplacian' or 'adjacency' (got {feature_operator!r})")
    if feature_operator == "adjacency" and feature_filter == "exact":
        raise ValueError("'feature_operator=\"adjacency\"' needs 'feature_filter=\"taylor\"': I + sN can be singular")
