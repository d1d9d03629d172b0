"""BiGCN as the paper writes it: the recursion on the features, round after round, then the weights.

This is what the factored layer is measured against, and nothing else: autograd keeps every intermediate as large as the
features, and every product with the feature graph is one of the features.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bigcn.nn import BiGCN
from bigcn.node_graphs import edges_of, symmetric_normalization


class DirectLayer(torch.nn.Module):
    """A layer in the form of the released code, with a learnable feature graph.

    Args:
        in_channels, out_channels (int): The sizes.
        p, strength (float): The penalty of ADMM, and the strength of both directions.
        iterations (int): The rounds of ADMM.
    """

    def __init__(self, in_channels: int, out_channels: int, p: float, strength: float, iterations: int) -> None:
        super().__init__()
        self.p, self.strength, self.iterations = p, strength, iterations
        self.logits = torch.nn.Parameter(torch.empty(in_channels, in_channels))
        self.weight = torch.nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = torch.nn.Parameter(torch.empty(out_channels))

    def normalized(self) -> Tensor:
        """Returns the normalised adjacency of the feature graph."""
        upper = self.logits.sigmoid().triu(1)
        adjacency = upper + upper.t() + torch.eye(upper.size(0), device=upper.device)
        scale = adjacency.sum(dim=1).rsqrt()
        return scale.unsqueeze(1) * adjacency * scale

    def forward(self, x: Tensor, laplacian: Tensor) -> Tensor:
        right = torch.eye(x.size(1), device=x.device) - self.strength * self.normalized()
        y2, z = x, torch.zeros_like(x)
        for _ in range(self.iterations):
            target = x + self.p * y2 + z
            y1 = (target - self.strength * torch.sparse.mm(laplacian, target)) / (1 + self.p)
            y2 = (x + self.p * y1 - z) @ right / (1 + self.p)
            z = z + self.p * (y2 - y1)
        return (y1 + y2) / 2 @ self.weight + self.bias


class DirectBiGCN(torch.nn.Module):
    """Two direct layers with the parameters of a :class:`bigcn.BiGCN` in its published form."""

    def __init__(self, like: BiGCN) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for conv in like.convs:
            filter = conv.filter
            layer = DirectLayer(conv.in_channels, conv.out_channels, filter.p, filter.node_strength, filter.iterations)
            layer.logits.data.copy_(conv.feature_graph.logits)
            layer.weight.data.copy_(conv.lin.weight.t())
            layer.bias.data.copy_(conv.bias)
            self.layers.append(layer)

    def forward(self, x: Tensor, laplacian: Tensor) -> Tensor:
        first, second = self.layers
        hidden = F.dropout(first(x, laplacian).relu(), 0.5, self.training)
        out: Tensor = second(hidden, laplacian)
        return out

    def penalty(self) -> Tensor:
        """Returns the L1 norm of the first feature graph."""
        layer = self.layers[0]
        assert isinstance(layer, DirectLayer)
        return layer.normalized().abs().sum()


def node_laplacian(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Returns the normalised Laplacian of a node graph as a sparse matrix."""
    edges, _ = edges_of(edge_index)
    weight, isolated = symmetric_normalization(edges, None, num_nodes, torch.float32)
    diagonal = torch.arange(num_nodes, device=edges.device).expand(2, -1)
    indices, values = torch.cat([edges.flip(0), diagonal], 1), torch.cat([-weight, 1 - isolated.view(-1)])
    return torch.sparse_coo_tensor(indices, values, (num_nodes, num_nodes), check_invariants=False).coalesce()
