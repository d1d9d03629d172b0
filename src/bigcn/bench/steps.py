"""Training steps: BiGCN against the direct recursion, and against PyG's GCN."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from bigcn.bench.direct import DirectBiGCN, node_laplacian
from bigcn.bench.timing import compare_times, interleaved, row
from bigcn.nn import BiGCN

#: The feature graphs that are measured, the learnable one with its penalty.
FEATURE_GRAPHS = ("learnable", "correlation", "spectral", "uniform", "identity", "none")
HIDDEN = 16


class PeerGCN(torch.nn.Module):
    """Two of PyG's own layers, its cache on."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = GCNConv(in_channels, HIDDEN, cached=True)
        self.second = GCNConv(HIDDEN, out_channels, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        out: Tensor = self.second(hidden, edge_index)
        return out


def against_direct(name: str, data: Data, rounds: int, device: str = "cpu") -> Iterator[dict[str, Any]]:
    """Measures a training step with a learnable graph against the same network written as the recursion.

    Args:
        name (str): The name of the graph.
        data (Data): The graph.
        rounds (int): How often each is timed.
        device (str, optional): The device. (default: :obj:`"cpu"`)
    """
    fast = bigcn_for(name, data, "learnable").to(device)
    slow = DirectBiGCN(fast).to(device)
    laplacian = node_laplacian(data.edge_index, data.num_nodes)
    _check_same(fast.eval()(data.x, data.edge_index), slow.eval()(data.x, laplacian))
    contenders = {"bigcn": training_step(fast, data, data.edge_index), "direct": training_step(slow, data, laplacian)}
    times = interleaved(contenders, rounds, device)
    yield row("training step", name, "bigcn:published", "direct recursion", compare_times(times, "bigcn", "direct"))


def against_peer(name: str, data: Data, rounds: int, device: str = "cpu") -> Iterator[dict[str, Any]]:
    """Measures training steps of all feature graphs against PyG's GCN.

    Args:
        name, data, rounds, device: See :func:`against_direct`.
    """
    models: dict[str, torch.nn.Module] = {"GCNConv": PeerGCN(data.num_features, _classes(data))}
    models |= {graph: bigcn_for(name, data, graph) for graph in FEATURE_GRAPHS}
    contenders = {key: training_step(model.to(device), data, data.edge_index) for key, model in models.items()}
    times = interleaved(contenders, rounds, device)
    for graph in FEATURE_GRAPHS:
        yield row("training step", name, f"bigcn:taylor+{graph}", "GCNConv", compare_times(times, graph, "GCNConv"))


def bigcn_for(name: str, data: Data, graph: str, **changes: Any) -> BiGCN:
    """Returns the published network for a graph, with another feature graph or other settings."""
    settings = BiGCN.published(name) | {"feature_graph": graph, "hidden_channels": HIDDEN, "cached": True} | changes
    if graph == "spectral":
        settings["feature_operator"] = "laplacian"
    return BiGCN(data.num_features, out_channels=_classes(data), **settings)


def _classes(data: Data) -> int:
    return int(data.y.max()) + 1


def training_step(model: torch.nn.Module, data: Data, graph: Tensor) -> Callable[[], object]:
    """Returns a training step: forward, backward, Adam."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
    nodes = torch.arange(min(140, data.num_nodes), device=data.x.device)
    labels = data.y[nodes]
    learns_graph = any("logits" in key for key, _ in model.named_parameters())

    def step() -> object:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, graph)[nodes], labels)
        if learns_graph:
            loss = loss + model.penalty()  # type: ignore[operator]
        loss.backward()
        return optimizer.step()

    return step


def _check_same(found: Tensor, expected: Tensor) -> None:
    """A faster step is only worth anything if it computes the same."""
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
