r"""The feature graph that is learned with the weights."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.parameter import UninitializedParameter

from bigcn.feature_graphs.base import FeatureFilter, FeatureGraph, Operand, Powers, general_powers
from bigcn.feature_graphs.correlation import cosine_similarity
from bigcn.feature_graphs.learnable_ops import inverse_root, taylor_powers
from bigcn.feature_graphs.learnable_packing import pack, packed_numel, packed_size, unpack
from bigcn.filters import FeatureOperator


class LearnableGraph(FeatureGraph):
    r"""A dense feature graph whose weights are the sigmoid of logits above the diagonal.

    With :math:`\mathbf{S}` the strict upper triangle of :math:`\sigma(\mathbf{\Omega})`, the adjacency is
    :math:`\mathbf{S} + \mathbf{S}^{\top} + \mathbf{I}`. Only the logits above the diagonal matter, and only they are
    parameters: :obj:`packed_logits` holds them in the layout of :mod:`bigcn.feature_graphs.learnable_packing`, and
    :attr:`logits` shows them as a square.

    Args:
        num_features (int): The number of features, or :obj:`-1` to take it from the first input.
        init (str or torch.Tensor, optional): The initial logits: :obj:`"random"` draws each from :math:`\{0, 1\}` as
            the released code does, :obj:`"constant"` sets them to zero (all weights one half), and a
            :math:`d \times d` tensor is taken as it is; see also :meth:`from_features`. (default: :obj:`"random"`)
        self_loops (bool, optional): If set to :obj:`False`, leaves the identity out. (default: :obj:`True`)
    """

    #: Graphs that take more memory than this to train are refused.
    max_bytes = 2 * 2**30

    def __init__(
        self, num_features: int, init: Literal["random", "constant"] | Tensor = "random", self_loops: bool = True
    ) -> None:
        if isinstance(init, Tensor) and num_features == -1:
            num_features = init.size(0)
        super().__init__(num_features)
        self._refuse_too_wide(num_features)
        if isinstance(init, Tensor):
            if init.shape != (num_features, num_features):
                raise ValueError(f"'init' must have shape [{num_features}, {num_features}] (got {list(init.shape)})")
        elif init not in ("random", "constant"):
            raise ValueError(f"'init' must be 'random', 'constant' or a tensor of logits (got {init!r})")
        self.init = init
        self.self_loops = self_loops
        self._sums = _Sums()
        self.packed_logits: Parameter | UninitializedParameter
        if num_features == -1:
            self.packed_logits = UninitializedParameter()
        else:
            self.packed_logits = Parameter(torch.empty(packed_numel(num_features)))
            self.reset_parameters()

    @classmethod
    def from_features(cls, x: Tensor, self_loops: bool = True) -> "LearnableGraph":
        """Starts from the data: each weight begins at the absolute cosine similarity of its two features.

        Args:
            x (torch.Tensor): The features, dense or sparse.
            self_loops (bool, optional): See :class:`LearnableGraph`. (default: :obj:`True`)
        """
        # Weights of exactly zero or one would sit where the sigmoid has no gradient.
        weights = cosine_similarity(x.detach()).abs().clamp(0.01, 0.99)
        return cls(weights.size(0), init=weights.logit(), self_loops=self_loops)

    def initialize(self, num_features: int) -> None:
        super().initialize(num_features)
        self._refuse_too_wide(num_features)
        if isinstance(self.packed_logits, UninitializedParameter):
            self.packed_logits.materialize((packed_numel(num_features),))
            self.reset_parameters()

    @property
    def logits(self) -> Tensor:
        r"""The logits as a :math:`d \times d` matrix, zero except above the diagonal.

        It is computed from the parameter, with gradient; to change the parameter, assign a matrix.
        """
        if isinstance(self.packed_logits, UninitializedParameter):
            raise ValueError("a learnable graph has no logits before its number of features is known")
        return unpack(self.packed_logits, self.num_features)

    @logits.setter
    @torch.no_grad()
    def logits(self, square: Tensor) -> None:
        if square.shape != (self.num_features, self.num_features):
            shape = [self.num_features, self.num_features]
            raise ValueError(f"'logits' must have shape {shape} (got {list(square.shape)})")
        self.packed_logits.copy_(pack(square))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        if prefix + "logits" in state_dict:  # a model that was stored with all of the square
            state_dict[prefix + "packed_logits"] = pack(state_dict.pop(prefix + "logits"))
        saved = state_dict.get(prefix + "packed_logits")
        lazy = isinstance(self.packed_logits, UninitializedParameter)
        if lazy and saved is not None and not isinstance(saved, UninitializedParameter):
            self.initialize(packed_size(saved.numel()))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # An uninitialised parameter cannot be detached, as it otherwise would be.
        lazy = isinstance(self.packed_logits, UninitializedParameter)
        super()._save_to_state_dict(destination, prefix, keep_vars or lazy)

    @classmethod
    def _refuse_too_wide(cls, num_features: int) -> None:
        # Logits, their sigmoid, their gradient and the two moments of Adam, in single precision.
        needed = 5 * 4 * packed_numel(max(num_features, 0))
        if needed > cls.max_bytes:
            raise ValueError(
                f"'feature_graph': a learnable graph of {num_features:,} features takes {needed / 2**30:.1f} GiB to "
                f"train; 'correlation', 'spectral' and 'uniform' do without, 'LearnableGraph.max_bytes' allows more"
            )

    @torch.no_grad()
    def reset_parameters(self) -> None:
        if isinstance(self.packed_logits, UninitializedParameter):
            return
        if isinstance(self.init, Tensor):
            self.logits = self.init
        elif self.init == "constant":
            self.packed_logits.zero_()
        else:
            # Drawn as a square, so that what a seed means does not depend on how logits are packed.
            self.logits = self.packed_logits.new_empty(self.num_features, self.num_features).bernoulli_(0.5)

    def operand(self, x: Tensor | None = None, hop: object = None) -> Operand:
        return (self.packed_logits,)

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return self._product(*self._triangle_and_scale(operand[0]), block)

    def diagonal(self, operand: Operand) -> Tensor:
        return self._diagonal(self._triangle_and_scale(operand[0])[1]).squeeze(-1)

    def powers(self, operand: Operand, block: Tensor, filter: FeatureFilter) -> Powers:
        if filter.form == "exact" or not self._has_edges or block.dim() > 2:
            # One triangle for all the products.
            parts = self._triangle_and_scale(operand[0])
            return general_powers(lambda narrow: self._product(*parts, narrow), block, filter)
        # Neither form hands out more than B = alpha I + beta N.
        alpha, beta = 1 - filter.strength, filter.strength
        if filter.operator == "adjacency":
            alpha, beta = torch.ones_like(beta), -beta
        powers, total, trace = taylor_powers(operand[0], block.mT, alpha, beta, filter.iterations, self.self_loops)
        self._sums.keep(self.packed_logits, powers, total, trace)
        return Powers(list(powers.mT.unbind(0)))

    def l1_norm(self, operator: FeatureOperator = "laplacian", operand: Operand | None = None) -> Tensor:
        sums = self._sums.take(self.packed_logits)
        if sums is None:
            return super().l1_norm(operator, operand)
        total, trace = sums
        return total if operator == "adjacency" else total + self.num_features - 2 * trace

    @property
    def _has_edges(self) -> bool:
        return self.self_loops or self.num_features > 1

    def _triangle_and_scale(self, packed: Tensor) -> tuple[Tensor, Tensor]:
        upper = unpack(packed, self.num_features).sigmoid().triu(1)
        degree = upper.sum(dim=-2) + upper.sum(dim=-1)
        if not self._has_edges:  # a scale of zero marks the lone feature, whose row of the Laplacian is zero
            return upper, torch.zeros_like(degree).unsqueeze(-1)
        return upper, inverse_root(degree, self.self_loops).unsqueeze(-1)

    def _product(self, upper: Tensor, scale: Tensor, block: Tensor) -> Tensor:
        if not self._has_edges:
            return block
        scaled = scale * block
        out = upper @ scaled + upper.mT @ scaled
        return scale * (out + scaled if self.self_loops else out)

    def _diagonal(self, scale: Tensor) -> Tensor:
        if not self._has_edges:
            return torch.ones_like(scale)
        return scale**2 if self.self_loops else torch.zeros_like(scale)

    def extra_repr(self) -> str:
        return f"{self.num_features}, self_loops={self.self_loops}"


class _Sums:
    """Hands the sums of a forward pass to the penalty that follows it, so that the logits are not read again."""

    def __init__(self) -> None:
        self._kept: tuple[Tensor, int, Tensor, Tensor] | None = None
        self._asked = False

    def keep(self, logits: Tensor, powers: Tensor, total: Tensor, trace: Tensor) -> None:
        self._kept = None
        # A graph whose penalty nobody asks for keeps nothing alive.
        if torch.compiler.is_compiling() or not self._asked:
            return
        mapped = torch._C._functorch.is_functorch_wrapped_tensor(total)
        if not (mapped or total.requires_grad):
            return
        self._kept = (logits, logits._version, total, trace)
        if not mapped:  # inside of vmap the penalty follows at once, or the logits will be others
            powers.register_hook(self._forget)  # a backward pass frees the graph that the sums belong to

    def take(self, logits: Tensor) -> tuple[Tensor, Tensor] | None:
        """Returns the sums once, and only while they are those of these very logits and gradients are wanted."""
        if torch.compiler.is_compiling():
            return None
        self._asked = True
        kept, self._kept = self._kept, None
        if kept is None or not torch.is_grad_enabled():
            return None
        known, version, *sums = kept
        same = known is logits and version == logits._version and sums[0].dtype == logits.dtype
        return (sums[0], sums[1]) if same else None

    def _forget(self, grad: Tensor) -> None:
        self._kept = None

    # They belong to one autograd graph, which no copy shares.
    def __deepcopy__(self, memo: dict[int, Any]) -> "_Sums":
        return _Sums()

    def __getstate__(self) -> dict[str, Any]:
        return {"_kept": None, "_asked": False}
