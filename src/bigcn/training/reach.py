"""The part of a graph that answers depend on: the nodes that are asked about, and as many hops around them as a model
has layers that pass messages.

Of a model that trains on a few nodes, a layer needs to be computed where the next one looks alone. The model is given
what it keeps of that part (its features, the entries of the normalised graph, products with the input), and takes it
for the graph: the numbers that are asked for are the same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn.models.basic_gnn import BasicGNN

from bigcn.nn.attention import AttentionGraph, sorted_by_target
from bigcn.nn.baselines import GAT, GCN, GDC, GIN, MLP, GraphSAGE
from bigcn.sparse import SparseMatrix, sparse_from_edges
from bigcn.sparse_diagonal import row_numbers
from bigcn.tasks.base import Task
from bigcn.training.stacking import Stack

#: A part pays if it has at most this share of the nodes, or that of the entries of the graph.
FEWER_NODES, FEWER_ENTRIES = 0.9, 0.75


class Part(NamedTuple):
    """A part of a graph.

    Args:
        nodes (torch.Tensor): Its nodes; those that are asked about come first, in their order.
        inner (torch.Tensor): Of all nodes, whether messages to them are needed.
        place (torch.Tensor): Of all nodes, where they stand in the part.
    """

    nodes: Tensor
    inner: Tensor
    place: Tensor

    def of_stack(self, stack: Stack) -> Stack:
        """Returns what a model keeps of the part, from what it keeps of the graph."""
        values, dims = stack
        if isinstance(values, SparseMatrix):
            return Stack(self._of_matrix(values), dims)
        if isinstance(values, AttentionGraph):
            return Stack(self._of_attention(values), dims)
        return Stack(values.index_select(0 if dims is None else 1, self.nodes), dims)

    def of_features(self, x: Tensor) -> Tensor:
        """Returns the features of its nodes."""
        return x.index_select(0, self.nodes)

    def _of_matrix(self, graph: SparseMatrix) -> SparseMatrix:
        row = row_numbers(graph.crow)
        entries = self.inner[row].nonzero().view(-1)
        row, col = (self.place[ends[entries]] for ends in (row, graph.col))
        return sparse_from_edges(row, col, graph.value[entries], (self.nodes.numel(),) * 2)

    def _of_attention(self, graph: AttentionGraph) -> AttentionGraph:
        target = row_numbers(graph.crow)
        # A node that needs no messages has its loop left, so that its shares have a sum.
        loops = (graph.source == target) & (self.place[target] >= 0)
        entries = (self.inner[target] | loops).nonzero().view(-1)
        ends = torch.stack([self.place[ends[entries]] for ends in (graph.source, target)])
        source, target = ends[:, ends[1].argsort(stable=True)]
        return sorted_by_target(source, target, self.nodes.numel())


def parts_reached(
    model: torch.nn.Module, kept: dict[str, Stack], tasks: Sequence[Task]
) -> tuple[Part | None, Part | None]:
    """Returns the parts of the graph that a training step and an evaluation need; nothing where that is all of it, or
    where members have graphs or nodes of their own.

    Args:
        model (torch.nn.Module): The model that the members share; of others than the baselines nothing is known.
        kept (dict): What they keep.
        tasks (Sequence[Task]): Their tasks.
    """
    if not is_local(model) or not tasks[0].by_rows:
        return None, None
    graph = next((kept[name] for name in ("._caches.graph", "._caches.attention") if name in kept), None)
    if type(model) is not MLP and (graph is None or any(dim is not None for dim in graph.dims)):
        return None, None
    hops = 0 if isinstance(model, MLP) else _hops(model, kept)
    found = []
    for rows in ([task.questions()[0] for task in tasks], [task.scored()[0] for task in tasks]):
        same = all(other is rows[0] or torch.equal(other, rows[0]) for other in rows[1:])
        found.append(_reached(rows[0], None if graph is None else graph.values, hops, tasks[0]) if same else None)
    return found[0], found[1]


def is_local(model: torch.nn.Module) -> bool:
    """Tells whether a node's answer depends on those within as many hops as there are layers, and on no others, as it
    would where layers normalise over all nodes.

    Args:
        model (torch.nn.Module): Any model.
    """
    if type(model) is MLP:
        return True
    if type(model) not in (GCN, GDC, GraphSAGE, GIN, GAT) or hasattr(model, "jk"):
        return False
    assert isinstance(model, BasicGNN)
    return bool(model.by_product) and all(isinstance(norm, torch.nn.Identity) for norm in model.norms or ())


def _hops(model: torch.nn.Module, kept: dict[str, Stack]) -> int:
    """Returns how many layers still look at neighbours: not a first one whose product with the input is kept."""
    assert isinstance(model, BasicGNN)
    layers: int = model.num_layers
    return layers - 1 if "convs.0.products" in kept else layers


def _reached(asked: Tensor, graph: Any, hops: int, task: Task) -> Part | None:
    nodes = task.x.size(0)
    inner = torch.zeros(nodes, dtype=torch.bool, device=asked.device)
    if asked.unique().numel() < asked.numel():
        return None
    reached = inner.index_fill(0, asked, True)
    share = 0.0
    if hops:
        row, col = row_numbers(graph[0]), graph[1]
        for _ in range(hops):
            inner = reached
            reached = inner.index_fill(0, col[inner[row]].long(), True)  # int32 edges have int32 columns
        share = int(inner[row].sum()) / max(1, row.numel())
    others = reached.index_fill(0, asked, False).nonzero().view(-1)
    found = torch.cat([asked, others])
    if found.numel() > FEWER_NODES * nodes and share > FEWER_ENTRIES:
        return None
    place = torch.full((nodes,), -1, device=asked.device)
    place[found] = torch.arange(found.numel(), device=asked.device)
    return Part(found, inner, place)
