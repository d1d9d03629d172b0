"""A training step of BiGCN against the same network written as the paper writes it.

Run:  BIGCN_DATA=... python benchmarks/step_time.py [--graph cora]

The direct version filters the n×d features by the recursion, round after round, and multiplies with the weights last;
autograd does the rest. Both have two layers, 16 hidden units, a learnable feature graph per layer and its penalty.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor

from bigcn import BiGCN
from bigcn.datasets import load_dataset, make_split
from bigcn.node_graphs import edges_of, symmetric_normalization
from common import interleaved, ratio, store


class DirectLayer(torch.nn.Module):
    """The layer as the released code has it: ADMM on the features, then the weights."""

    def __init__(self, in_channels: int, out_channels: int, p: float, strength: float, iterations: int) -> None:
        super().__init__()
        self.p, self.strength, self.iterations = p, strength, iterations
        self.logits = torch.nn.Parameter(torch.empty(in_channels, in_channels))
        self.weight = torch.nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = torch.nn.Parameter(torch.empty(out_channels))

    def normalized(self) -> Tensor:
        upper = self.logits.sigmoid().triu(1)
        adjacency = upper + upper.t() + torch.eye(upper.size(0))
        scale = adjacency.sum(dim=1).rsqrt()
        return scale.unsqueeze(1) * adjacency * scale

    def forward(self, x: Tensor, laplacian: Tensor) -> Tensor:
        right = torch.eye(x.size(1)) - self.strength * self.normalized()
        y2, z = x, torch.zeros_like(x)
        for _ in range(self.iterations):
            target = x + self.p * y2 + z
            y1 = (target - self.strength * torch.sparse.mm(laplacian, target)) / (1 + self.p)
            y2 = (x + self.p * y1 - z) @ right / (1 + self.p)
            z = z + self.p * (y2 - y1)
        return (y1 + y2) / 2 @ self.weight + self.bias


class DirectBiGCN(torch.nn.Module):
    """Two direct layers with the parameters of a :class:`bigcn.BiGCN`."""

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
        layer = self.layers[0]
        assert isinstance(layer, DirectLayer)
        return layer.normalized().abs().sum()


def node_laplacian(edge_index: Tensor, num_nodes: int) -> Tensor:
    edges, _ = edges_of(edge_index)
    weight, isolated = symmetric_normalization(edges, None, num_nodes, torch.float32)
    diagonal = torch.arange(num_nodes).expand(2, -1)
    indices, values = torch.cat([edges.flip(0), diagonal], 1), torch.cat([-weight, 1 - isolated.view(-1)])
    return torch.sparse_coo_tensor(indices, values, (num_nodes, num_nodes), check_invariants=False).coalesce()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    data = load_dataset(options.graph)
    train = make_split(data, options.graph).train
    settings = BiGCN.published(options.graph)
    fast = BiGCN(data.num_features, out_channels=int(data.y.max()) + 1, cached=True, **settings)
    direct = DirectBiGCN(fast)
    laplacian = node_laplacian(data.edge_index, data.num_nodes)

    fast.eval(), direct.eval()
    with torch.no_grad():
        gap = (fast(data.x, data.edge_index) - direct(data.x, laplacian)).abs().max()
    print(f"largest difference between the two outputs: {float(gap):.1e}")
    fast.train(), direct.train()

    def step(model: torch.nn.Module, graph: Tensor) -> object:
        optimizer = optimizers[model]
        optimizer.zero_grad()
        out = model(data.x, graph)
        loss = F.cross_entropy(out[train], data.y[train]) + model.penalty()  # type: ignore[operator]
        loss.backward()
        return optimizer.step()

    models: tuple[torch.nn.Module, ...] = (fast, direct)
    optimizers = {model: torch.optim.Adam(model.parameters(), lr=0.01, fused=True) for model in models}
    contenders = {"bigcn": lambda: step(fast, data.edge_index), "direct": lambda: step(direct, laplacian)}
    times = interleaved(contenders, options.rounds)
    speedup, (low, high) = ratio(times, "bigcn", "direct")
    print(f"{options.graph}: {speedup:.1f} times faster than the direct recursion (quartiles {low:.1f} to {high:.1f})")
    row = {"bench": "training step", "graph": options.graph, "contender": "bigcn", "against": "direct recursion"}
    command = f"python benchmarks/step_time.py --graph {options.graph}"
    path = store(f"step-time-{options.graph}", command, [row | {"ratio": speedup, "spread": [low, high]}])
    print(f"stored in results/{path.name}")


if __name__ == "__main__":
    main()
