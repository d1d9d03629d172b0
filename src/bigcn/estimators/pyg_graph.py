"""A PyG graph as one that was read from files."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bigcn.checks import check_edges, check_finite
from bigcn.datasets.own import Column, Encoding, GraphSummary, OwnGraph
from bigcn.datasets.splits import Split
from bigcn.node_graphs import adjacency_of, edges_of

PARTS = ("train", "val", "test")


def as_own_graph(graph: OwnGraph | Data, learns_labels: bool = False) -> OwnGraph:
    """Returns a PyG graph as one that was read from files; its features and classes are called by their numbers.

    Args:
        graph (OwnGraph or Data): The graph, with its edges in :obj:`edge_index` or :obj:`adj_t`; labels below zero
            mean none.
        learns_labels (bool, optional): If set to :obj:`True`, refuses labels that cannot be learned, and its three
            masks become the split. Otherwise such labels count as none, and masks do not count.
            (default: :obj:`False`)
    """
    if isinstance(graph, OwnGraph):
        return graph
    if not isinstance(graph, Data) or not isinstance(graph.x, Tensor) or graph.x.dim() != 2:
        raise ValueError("'graph' must be what read_graph returns, or a PyG Data with x and edge_index")
    data = copy.copy(graph).cpu()  # which would move the graph itself
    adjacency = adjacency_of(data)
    if not isinstance(adjacency, Tensor):
        raise ValueError("'graph' must have its edges in edge_index, or in adj_t as a sparse tensor")
    num_nodes = data.x.size(0)
    x = data.x.to_dense() if data.x.layout != torch.strided else data.x
    check_finite(x)
    edges, weight = edges_of(adjacency, data.edge_weight)
    check_edges(edges, weight, num_nodes)
    label, classes = _labels(data, learns_labels)
    columns = tuple(Column(f"feature {place}", "number") for place in range(data.x.size(1)))
    counts = [] if label is None else torch.bincount(label[label >= 0], minlength=len(classes)).tolist()
    summary = GraphSummary(
        nodes=num_nodes,
        edges=edges.size(1) // 2,
        features={"number": len(columns)},
        labels=dict(zip(classes, counts, strict=True)),
        unlabelled=num_nodes - sum(counts),
        weighted=weight is not None,
    )
    own = Data(x=x.to(torch.get_default_dtype()), edge_index=edges, edge_weight=weight, y=label)
    split = _split(data, label) if learns_labels and label is not None else None
    return OwnGraph(own, np.arange(num_nodes), Encoding(columns, classes, standardize=False), summary, split=split)


def _labels(data: Data, required: bool) -> tuple[Tensor | None, tuple[str, ...]]:
    """Returns the place of each label among the classes, and these: the labels that there are, in their order."""
    label: Any = data.y
    if isinstance(label, Tensor) and label.dim() == 2 and label.size(1) == 1:
        label = label.view(-1)
    if label is None:
        return None, ()
    if not isinstance(label, Tensor) or label.shape != (data.x.size(0),) or label.is_floating_point():
        if required:
            raise ValueError("'graph' must have whole numbers as labels in y, one per node")
        return None, ()
    label = label.long()
    kinds, places = label.clamp(min=-1).unique(return_inverse=True)
    if len(kinds) and int(kinds[0]) < 0:
        kinds, places = kinds[1:], places - 1
    return places, tuple(map(str, kinds.tolist()))


def _split(data: Data, label: Tensor) -> Split | None:
    """Returns the split that the masks stand for, if there are masks; refuses some of them, or several splits."""
    masks: dict[str, Any] = {f"{part}_mask": data.get(f"{part}_mask") for part in PARTS}
    there = [name for name, mask in masks.items() if mask is not None]
    if not there:
        return None
    if missing := [name for name in masks if name not in there]:
        raise ValueError(
            f"'graph' has {' and '.join(there)} but no {' or '.join(missing)}: it needs all three, or none, and then "
            "the labelled nodes are divided anew"
        )
    for name, given in masks.items():
        mask = masks[name] = torch.as_tensor(given, device=label.device)
        if mask.dtype != torch.bool or mask.dim() not in (1, 2) or mask.size(0) != label.numel():
            raise ValueError(
                f"{name} of 'graph' must say yes or no for each of {label.numel()} nodes "
                f"(got {list(mask.shape)} of {mask.dtype})"
            )
        if mask.dim() != 1:
            raise ValueError(
                f"'graph' has several splits ({name} has shape {list(mask.shape)}): choose one, as in "
                f"data.{name} = data.{name}[:, 0]"
            )
        if not bool((mask & (label >= 0)).any()):
            raise ValueError(f"{name} of 'graph' has no node with a label")
    return Split.from_masks("masks", *(mask & (label >= 0) for mask in masks.values()))
