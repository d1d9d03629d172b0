r"""Solvers of the smoothing problem: Sylvester's equation in full, on observed entries alone, and by ADMM.

All of them work on products with the two normalised adjacencies; a dense matrix is formed on the smaller side at most.
"""

import math

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from bigcn.filters import Hop, admm
from bigcn.sparse import chebyshev_filter
from bigcn.user_warnings import warn_user

#: After how many rounds ADMM gives up. It needs about 50 at p = 3 and over 1,000 at p = 0.1.
MAX_ROUNDS = 5_000


def resolvent(hop: Hop, block: Tensor, strength: Tensor, tolerance: float) -> Tensor:
    r"""Solves :math:`(\mathbf{I} + s_j \mathbf{L}) \mathbf{y}_j = \mathbf{f}_j` for every column at its own strength.

    The Chebyshev coefficients of :math:`(1 + s - s\nu)^{-1}` are :math:`2 q^i / \sqrt{1 + 2s}` (half of that for
    :math:`i = 0`) with :math:`q = s / (1 + s + \sqrt{1 + 2s})`, so that one recursion serves all columns.

    Args:
        hop (Callable): Multiplies by :math:`\mathbf{N} = \mathbf{I} - \mathbf{L}`.
        block (torch.Tensor): The right-hand sides, one a column.
        strength (torch.Tensor): The strength of each column, or one for all.
        tolerance (float): The error allowed, relative to the largest entry.
    """
    root = (1 + 2 * strength).sqrt()
    ratio = strength / (1 + strength + root)
    worst, scale = float(ratio.max()), float(root.max())
    if worst == 0:
        return block
    degree = max(0, math.ceil(math.log(tolerance * (1 - worst) * scale / 2) / math.log(worst)))
    powers = torch.arange(degree + 1, dtype=block.dtype, device=block.device).view(-1, 1)
    coefficients = 2 * ratio.view(1, -1) ** powers / root.view(1, -1)
    coefficients[0] /= 2
    return chebyshev_filter(hop, coefficients.unsqueeze(1), [block])


def solve_complete(
    x: Tensor, node_hop: Hop, feature_hop: Hop, lambda1: float, lambda2: float, tolerance: float
) -> Tensor:
    r"""Solves Sylvester's equation :math:`(\mathbf{I} + \lambda_1 \mathbf{L}_1) \mathbf{Y}
    + \lambda_2 \mathbf{Y} \mathbf{L}_2 = \mathbf{F}`.

    The Laplacian of the smaller side is decomposed; in its eigenbasis the equation falls apart into one-sided ones on
    the larger side, which a single recursion solves together.

    Args:
        x (torch.Tensor): The matrix :math:`\mathbf{F}`.
        node_hop (Callable): Multiplies a block with one row per node by :math:`\mathbf{N}_1`.
        feature_hop (Callable): Multiplies a block with one row per feature by :math:`\mathbf{N}_2`.
        lambda1, lambda2 (float): The strengths of the objective.
        tolerance (float): The error allowed, relative to the largest entry.
    """
    if lambda2 == 0:
        return resolvent(node_hop, x, x.new_tensor(lambda1), tolerance)
    if lambda1 == 0:
        return resolvent(feature_hop, x.t(), x.new_tensor(lambda2), tolerance).t()
    if x.size(1) > x.size(0):
        return solve_complete(x.t(), feature_hop, node_hop, lambda2, lambda1, tolerance).t()
    eye = torch.eye(x.size(1), dtype=x.dtype, device=x.device)
    mu, basis = torch.linalg.eigh(eye - feature_hop(eye))
    damping = 1 + lambda2 * mu.clamp(min=0)
    return resolvent(node_hop, x @ basis / damping, lambda1 / damping, tolerance) @ basis.t()


def solve_admm(
    x: Tensor,
    node_hop: Hop,
    feature_hop: Hop,
    lambda1: float,
    lambda2: float,
    p: float,
    iterations: int | None,
    tolerance: float,
) -> Tensor:
    """Solves the same equation by ADMM with exact one-sided filters.

    Args:
        x, node_hop, feature_hop, lambda1, lambda2, tolerance: See :func:`solve_complete`.
        p (float): The penalty of ADMM.
        iterations (int, optional): Stops after this many rounds, as the paper does; if :obj:`None`, runs until the
            result no longer moves.
    """
    if x.numel() == 0:
        return x
    node_strength, feature_strength = x.new_tensor([2 * lambda1 / (1 + p), 2 * lambda2 / (1 + p)])
    scale = float(x.abs().max()) or 1.0
    # The filters are solved more finely than the rounds, or these would never agree to the tolerance.
    inner = max(tolerance / 100, torch.finfo(x.dtype).eps)
    rounds = 0

    def along_nodes(y: Tensor) -> Tensor:
        nonlocal rounds
        rounds += 1
        return resolvent(node_hop, y, node_strength, inner)

    result = admm(
        x,
        along_nodes,
        lambda y: resolvent(feature_hop, y.t(), feature_strength, inner).t(),
        p,
        iterations or MAX_ROUNDS,
        tolerance=0.0 if iterations else tolerance * scale,
    )
    if iterations is None and rounds == MAX_ROUNDS:
        warn_user(f"ADMM did not converge in {rounds} rounds; try a larger p", ConvergenceWarning)
    return result


def solve_observed(
    x: Tensor,
    observed: Tensor,
    node_hop: Hop,
    feature_hop: Hop,
    lambda1: float,
    lambda2: float,
    tolerance: float,
    max_iterations: int = 2000,
    start: Tensor | None = None,
) -> Tensor:
    r"""Smooths a matrix of which only some entries are known, and so fills the others.

    The fidelity term of the objective counts the observed entries alone; conjugate gradients solve
    :math:`\mathbf{M} \odot \mathbf{Y} + \lambda_1 \mathbf{L}_1 \mathbf{Y} + \lambda_2 \mathbf{Y} \mathbf{L}_2
    = \mathbf{M} \odot \mathbf{F}`. Where nothing is known at all, in a component without observations, the result is
    zero.

    Args:
        x, node_hop, feature_hop, lambda1, lambda2, tolerance: See :func:`solve_complete`.
        observed (torch.Tensor): True where an entry is known.
        max_iterations (int, optional): The most steps that are taken. (default: :obj:`2000`)
        start (torch.Tensor, optional): Where to begin, close to the solution. (default: zero)
    """
    mask = observed.to(x.dtype)
    target = torch.where(observed, x, 0)

    def apply(y: Tensor) -> Tensor:
        out = mask * y
        if lambda1:
            out = out + lambda1 * (y - node_hop(y))
        if lambda2:
            out = out + lambda2 * (y - feature_hop(y.t()).t())
        return out

    # Jacobi's preconditioner; the diagonals of normalised Laplacians are close to one.
    inverse = 1 / (mask + lambda1 + lambda2).clamp(min=1e-12)
    solution = torch.zeros_like(x) if start is None else start
    residual = target if start is None else target - apply(start)
    direction = inverse * residual
    energy = (residual * direction).sum()
    goal = tolerance * float(target.norm())
    for _ in range(max_iterations):
        if float(residual.norm()) <= goal:
            return solution
        image = apply(direction)
        step = energy / (direction * image).sum()
        solution = solution + step * direction
        residual = residual - step * image
        scaled = inverse * residual
        energy, previous = (residual * scaled).sum(), energy
        direction = scaled + energy / previous * direction
    warn_user(f"filling did not converge in {max_iterations} steps", ConvergenceWarning)
    return solution
