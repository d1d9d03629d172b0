r"""The feature graph that is learned with the weights."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.parameter import UninitializedParameter

from bigcn.feature_graphs.base import FeatureGraph, Operand
from bigcn.feature_graphs.correlation import cosine_similarity


class LearnableGraph(FeatureGraph):
    r"""A dense feature graph whose weights are the sigmoid of logits above the diagonal.

    With :math:`\mathbf{S}` the strict upper triangle of :math:`\sigma(\mathbf{\Omega})`, the adjacency is
    :math:`\mathbf{S} + \mathbf{S}^{\top} + \mathbf{I}`. Only the logits above the diagonal matter; the parameter is
    square because products with a square matrix are fast.

    Args:
        num_features (int): The number of features, or :obj:`-1` to take it from the first input.
        init (str or torch.Tensor, optional): The initial logits: :obj:`"random"` draws each from :math:`\{0, 1\}` as
            the released code does, :obj:`"constant"` sets them to zero (all weights one half), and a
            :math:`d \times d` tensor is taken as it is; see also :meth:`from_features`. (default: :obj:`"random"`)
        self_loops (bool, optional): If set to :obj:`False`, leaves the identity out. (default: :obj:`True`)
    """

    def __init__(
        self, num_features: int, init: Literal["random", "constant"] | Tensor = "random", self_loops: bool = True
    ) -> None:
        if isinstance(init, Tensor) and num_features == -1:
            num_features = init.size(0)
        super().__init__(num_features)
        if isinstance(init, Tensor):
            if init.shape != (num_features, num_features):
                raise ValueError(f"'init' must have shape [{num_features}, {num_features}] (got {list(init.shape)})")
        elif init not in ("random", "constant"):
            raise ValueError(f"'init' must be 'random', 'constant' or a tensor of logits (got {init!r})")
        self.init = init
        self.self_loops = self_loops
        self.logits: Parameter | UninitializedParameter
        if num_features == -1:
            self.logits = UninitializedParameter()
        else:
            self.logits = Parameter(torch.empty(num_features, num_features))
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
        if isinstance(self.logits, UninitializedParameter):
            self.logits.materialize((num_features, num_features))
            self.reset_parameters()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        saved = state_dict.get(prefix + "logits")
        lazy = isinstance(self.logits, UninitializedParameter)
        if lazy and saved is not None and not isinstance(saved, UninitializedParameter):
            self.initialize(saved.size(0))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # An uninitialised parameter cannot be detached, as it otherwise would be.
        super()._save_to_state_dict(destination, prefix, keep_vars or isinstance(self.logits, UninitializedParameter))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        if isinstance(self.logits, UninitializedParameter):
            return
        if isinstance(self.init, Tensor):
            self.logits.copy_(self.init)
        elif self.init == "constant":
            self.logits.zero_()
        else:
            self.logits.bernoulli_(0.5)

    def operand(self, x: Tensor | None = None, hop: object = None) -> Operand:
        upper = self.logits.sigmoid().triu(1)
        degree = upper.sum(dim=0) + upper.sum(dim=1)
        if self.self_loops:
            return upper, (degree + 1).rsqrt()
        # Without self-loops a single feature has no edge at all, which its Laplacian row of zeros must show.
        connected = degree > 0
        return upper, torch.where(connected, torch.where(connected, degree, 1).rsqrt(), 0)

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        upper, scale = operand
        scale = scale.unsqueeze(-1)
        scaled = scale * block
        hopped = scale * (upper @ scaled + upper.t() @ scaled)
        return hopped + self._diagonal(operand).unsqueeze(-1) * block

    def diagonal(self, operand: Operand) -> Tensor:
        return self._diagonal(operand)

    def _diagonal(self, operand: Operand) -> Tensor:
        scale = operand[1]
        return scale**2 if self.self_loops else (scale == 0).to(scale.dtype)

    def extra_repr(self) -> str:
        return f"{self.num_features}, self_loops={self.self_loops}"
