r"""Baselines that keep weights and messages apart: APPNP, SGC, and a perceptron that passes none."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.typing import Adj, OptTensor

from bigcn.nn.cache import TensorCache, may_keep
from bigcn.nn.product_layers import APPNPConv, KeepsGraph, SGConv, symmetric_entries
from bigcn.sparse import SparseMatrix


class _Perceptron(KeepsGraph, torch.nn.Module):
    r"""What models with a perceptron share.

    Args:
        in_channels, hidden_channels, num_layers, out_channels, dropout: See :class:`torch_geometric.nn.MLP`.
        scales_rows (bool, optional): See :class:`~bigcn.nn.baselines.GCN`. (default: :obj:`False`)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        dropout: float = 0.0,
        scales_rows: bool = False,
    ) -> None:
        super().__init__()
        self.scales_rows, self.dropout = scales_rows, dropout
        channels = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.mlp = pyg.MLP(channels, dropout=dropout, norm=None)

    def reset_parameters(self) -> None:
        """Resets all learnable parameters of the module."""
        self.mlp.reset_parameters()


class MLP(_Perceptron):
    r"""A perceptron that does not look at the graph; see :class:`_Perceptron` for the arguments."""

    def forward(self, x: Tensor, edge_index: Adj | None = None, edge_weight: OptTensor = None) -> Tensor:
        """Runs the forward pass."""
        out: Tensor = self.mlp(self.scaled(x))
        return out


class APPNP(_Perceptron):
    r"""A perceptron whose predictions are propagated by personalised PageRank
    (`Gasteiger et al., 2019 <https://arxiv.org/abs/1810.05997>`_), with dropout on the input of every layer as in its
    paper, and none on the edges.

    Args:
        *args, **kwargs: See :class:`_Perceptron`.
        K (int, optional): The number of propagation steps. (default: :obj:`10`)
        alpha (float, optional): The teleport probability. (default: :obj:`0.1`)
    """

    def __init__(self, *args: Any, K: int = 10, alpha: float = 0.1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.propagation = APPNPConv(K, alpha)
        #: In a population, the rows of the propagation that are asked for.
        self.propagation.asked = TensorCache(1)

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        """Runs the forward pass."""
        graph, weight = self.graph_matrix(x, edge_index, edge_weight, symmetric_entries)
        hidden = self.mlp(self.drop_input(self.scaled(x), self.dropout, self.training))
        out: Tensor = self.propagation(hidden, graph, weight)
        return out


class SGC(KeepsGraph, torch.nn.Module):
    r"""Logistic regression on features propagated :obj:`num_layers` times
    (`Wu et al., 2019 <https://arxiv.org/abs/1902.07153>`_).

    Args:
        in_channels, out_channels: See :class:`torch_geometric.nn.SGConv`.
        num_layers (int, optional): The number of propagation steps. (default: :obj:`2`)
    """

    def __init__(self, in_channels: int, out_channels: int, num_layers: int = 2) -> None:
        super().__init__()
        self.conv = SGConv(in_channels, out_channels, K=num_layers)

    def reset_parameters(self) -> None:
        """Resets all learnable parameters of the module."""
        self.conv.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        """Runs the forward pass."""
        graph, weight = self.graph_matrix(x, edge_index, edge_weight, symmetric_entries)
        if not isinstance(graph, SparseMatrix) or not (self.is_given("features") or may_keep(x)):
            out: Tensor = self.conv(x, graph, weight)
            return out

        def propagated() -> Tensor:
            out = x
            for _ in range(self.conv.K):
                out = graph.matmul(out)
            return out

        out = self.conv.lin(self.keep("features", (x, graph.value), None, propagated))
        return out
