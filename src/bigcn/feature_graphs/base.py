r"""What every feature graph can do."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bigcn.filters import FeatureOperator, FilterForm, Hop

Operand = tuple[Tensor, ...]


class FeatureFilter(NamedTuple):
    r"""The one-sided filter :math:`\mathbf{B}` to apply along a feature graph.

    Args:
        iterations (int): The highest power of :math:`\mathbf{B}` that is needed.
        form (str): :obj:`"taylor"` or :obj:`"exact"`.
        operator (str): :obj:`"laplacian"` or :obj:`"adjacency"`.
        strength (torch.Tensor): The strength, a scalar.
        chebyshev (torch.Tensor, optional): For the exact form, the coefficients of
            :func:`bigcn.filters.resolvent_coefficients`.
    """

    iterations: int
    form: FilterForm
    operator: FeatureOperator
    strength: Tensor
    chebyshev: Tensor | None = None

    def response(self, nu: Tensor) -> Tensor:
        r"""Returns what :math:`\mathbf{B}` does to an eigenvalue :math:`\nu` of the normalised adjacency."""
        if self.operator == "adjacency":
            return 1 - self.strength * nu
        if self.form == "taylor":
            return 1 - self.strength * (1 - nu)
        return 1 / (1 + self.strength * (1 - nu))

    def response_powers(self, nu: Tensor) -> Tensor:
        r"""Returns all powers of :meth:`response`, stacked in the first dimension."""
        base = self.response(nu)
        return torch.stack([base**b for b in range(self.iterations + 1)])


class Powers(NamedTuple):
    r"""The blocks :math:`\mathbf{B}^b \mathbf{W}` for all powers :math:`b`, possibly in fewer blocks than powers.

    Args:
        blocks (list[torch.Tensor]): Blocks that span the powers.
        weights (torch.Tensor, optional): Row :math:`b` says how the blocks add up to the :math:`b`-th power. If
            :obj:`None`, the blocks are the powers. (default: :obj:`None`)
    """

    blocks: list[Tensor]
    weights: Tensor | None = None


def general_powers(product: Callable[[Tensor], Tensor], block: Tensor, filter: FeatureFilter) -> Powers:
    r"""Returns all powers of :math:`\mathbf{B}` times a block, for any graph.

    Args:
        product (Callable): Multiplies by :math:`\mathbf{N}_2`.
        block (torch.Tensor): The block.
        filter (FeatureFilter): The filter.
    """
    blocks = [block]
    if filter.form == "taylor":
        for _ in range(filter.iterations):
            hopped = product(blocks[-1]).to(block.dtype)  # autocast may have lowered it
            if filter.operator == "adjacency":
                blocks.append(blocks[-1] - filter.strength * hopped)
            else:
                blocks.append(torch.lerp(blocks[-1], hopped, filter.strength))
        return Powers(blocks)
    # One recursion over Chebyshev polynomials gives all powers of the resolvent.
    assert filter.chebyshev is not None
    coefficients, older, newer = filter.chebyshev, block, block
    sums = [coefficients[0, b] * block for b in range(1, filter.iterations + 1)]
    for j in range(1, coefficients.size(0)):
        older, newer = newer, product(block) if j == 1 else 2 * product(newer) - older
        sums = [torch.addcmul(total, coefficients[j, b], newer) for b, total in enumerate(sums, start=1)]
    return Powers([block, *sums])


class FeatureGraph(torch.nn.Module):
    r"""A graph over feature columns with normalised adjacency :math:`\mathbf{N}_2` and Laplacian
    :math:`\mathbf{L}_2 = \mathbf{I} - \mathbf{N}_2`.

    A new feature graph is one class with :meth:`operand` and :meth:`product`, and one line in the registry of
    :mod:`bigcn.feature_graphs`.

    Args:
        num_features (int): The number of features :math:`d`, or :obj:`-1` to take it from the first input.
    """

    #: Whether the graph is computed from the input of the layer (and its node graph) in each forward pass.
    from_input: bool = False
    #: Whether the strength of the feature direction has any effect.
    filters: bool = True
    #: The highest frequency, the largest eigenvalue that its Laplacian may have.
    highest_frequency: float = 2.0
    #: Whether :meth:`operand` can be part of a CUDA graph: it never waits for the GPU.
    capturable: bool = True

    def __init__(self, num_features: int) -> None:
        super().__init__()
        if num_features < 1 and num_features != -1:
            raise ValueError(f"'num_features' must be positive, or -1 to be inferred (got {num_features})")
        self.num_features = num_features

    def reset_parameters(self) -> None:
        """Resets all learnable parameters of the module."""

    def initialize(self, num_features: int) -> None:
        """Fixes the number of features of a lazily made graph, or checks it against the known one."""
        if self.num_features == -1:
            self.num_features = num_features
        elif self.num_features != num_features:
            raise ValueError(f"'feature_graph' has {self.num_features} features, but the layer has {num_features}")

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # A graph that was computed once and kept can be restored into one made by name.
        for name, buffer in self._buffers.items():
            if buffer is None and prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def operand(self, x: Tensor | None = None, hop: Hop | None = None) -> Operand:
        r"""Returns the tensors that :meth:`product` works with.

        Args:
            x (torch.Tensor, optional): The input of the layer, for graphs computed from it. (default: :obj:`None`)
            hop (Callable, optional): Multiplies by the normalised node adjacency. (default: :obj:`None`)
        """
        return ()

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{N}_2` times a :math:`d \times h` block."""
        raise NotImplementedError

    def diagonal(self, operand: Operand) -> Tensor:
        r"""Returns the diagonal of :math:`\mathbf{N}_2`."""
        raise NotImplementedError

    def product_cost(self) -> float:
        """Returns the multiplications that one product takes per column of the block."""
        return float(self.num_features**2)

    def num_blocks(self, iterations: int) -> int:
        """Returns how many blocks :meth:`powers` will give."""
        return iterations + 1

    def powers(self, operand: Operand, block: Tensor, filter: FeatureFilter) -> Powers:
        r"""Returns :math:`\mathbf{B}^b` times a :math:`d \times h` block for all powers up to the number of rounds."""
        return general_powers(lambda narrow: self.product(operand, narrow), block, filter)

    def adjacency(self, x: Tensor | None = None, hop: Hop | None = None) -> Tensor:
        r"""Returns the normalised adjacency :math:`\mathbf{N}_2` as a dense matrix."""
        operand = self.operand(x, hop)
        like = operand[0] if operand else torch.empty(())
        eye = torch.eye(self.num_features, dtype=like.dtype, device=like.device)
        return self.product(operand, eye)

    def laplacian(self, x: Tensor | None = None, hop: Hop | None = None) -> Tensor:
        r"""Returns the normalised Laplacian :math:`\mathbf{L}_2` as a dense matrix."""
        adjacency = self.adjacency(x, hop)
        return torch.eye(adjacency.size(0), dtype=adjacency.dtype, device=adjacency.device) - adjacency

    def l1_norm(self, operator: FeatureOperator = "laplacian", operand: Operand | None = None) -> Tensor:
        r"""Returns the entrywise L1 norm of :math:`\mathbf{L}_2` or :math:`\mathbf{N}_2` without forming either.

        The entries of :math:`\mathbf{N}_2` are not negative and its diagonal is at most one, so the norms are
        :math:`\mathbf{1}^{\top} \mathbf{N}_2 \mathbf{1}` and
        :math:`\mathbf{1}^{\top} \mathbf{N}_2 \mathbf{1} + d - 2 \, \mathrm{tr} \, \mathbf{N}_2`.

        Args:
            operator (str, optional): :obj:`"laplacian"` or :obj:`"adjacency"`. (default: :obj:`"laplacian"`)
            operand (tuple, optional): What :meth:`operand` returned, to save computing it again.
                (default: :obj:`None`)
        """
        operand = self.operand() if operand is None else operand
        diagonal = self.diagonal(operand)
        total = self.product(operand, torch.ones_like(diagonal).unsqueeze(-1)).sum()
        return total if operator == "adjacency" else total + (1 - 2 * diagonal).sum()

    @torch.no_grad()
    def top_edges(
        self, k: int = 10, names: Sequence[str] | None = None, x: Tensor | None = None, hop: Hop | None = None
    ) -> list[tuple[str, str, float]]:
        r"""Returns the strongest feature-feature edges, without self-loops, as (name, name, weight), strongest first.

        Args:
            k (int, optional): How many. (default: :obj:`10`)
            names (Sequence[str], optional): The names of the features. (default: their numbers)
            x (torch.Tensor, optional): The features, for a graph computed from its input. (default: :obj:`None`)
            hop (Callable, optional): The node graph, likewise. (default: :obj:`None`)
        """
        if names is not None and len(names) != self.num_features:
            raise ValueError(f"'names' must have one name per feature ({self.num_features}, got {len(names)})")
        operand = self.operand(x, hop)
        like = operand[0] if operand else torch.empty(())
        found: list[tuple[float, int, int]] = []
        # A few columns at a time, so that a graph of many thousand features is never dense.
        for start in range(0, self.num_features, 1024):
            columns = torch.arange(start, min(start + 1024, self.num_features))
            block = torch.zeros(self.num_features, len(columns), dtype=like.dtype, device=like.device)
            block[columns, torch.arange(len(columns))] = 1
            weights = self.product(operand, block).cpu()
            above = torch.arange(self.num_features).unsqueeze(1) < columns
            strongest = torch.where(above, weights.abs(), 0).flatten().topk(min(k, weights.numel())).indices
            for i, j in zip(*(index.tolist() for index in torch.unravel_index(strongest, weights.shape)), strict=True):
                if weights[i, j] != 0 and i < start + j:
                    found.append((float(weights[i, j]), i, start + j))
        found.sort(key=lambda edge: (-abs(edge[0]), edge[1:]))
        label = (lambda i: str(names[i])) if names is not None else str
        return [(label(i), label(j), weight) for weight, i, j in found[:k]]

    def extra_repr(self) -> str:
        return f"{self.num_features}"
