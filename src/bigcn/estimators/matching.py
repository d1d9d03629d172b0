"""Whether a graph has the columns that a model was trained on, and its features in the units of that model."""

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.own import Encoding, InputError, OwnGraph

#: How many differences are listed.
LISTED = 5


def matched_features(graph: OwnGraph, encoding: Encoding) -> Tensor:
    """Returns the features of a graph as a model expects them: its order, its units, its categories.

    Args:
        graph (OwnGraph): A graph that was read from other files than the model's, or from the same.
        encoding (Encoding): How the model reads tables.
    """
    if graph.encoding.columns == encoding.columns:
        return graph.data.x
    if differences := encoding_differences(graph.encoding, encoding):
        more = f" and {len(differences) - LISTED} more" if len(differences) > LISTED else ""
        raise InputError(
            f"{graph.name} differs from what the model was trained on: " + "; ".join(differences[:LISTED]) + more
        )
    starts: dict[str, int] = {}
    width = 0
    for column in graph.encoding.columns:
        starts[column.name] = width
        width += len(column.features)
    own = {column.name: column for column in graph.encoding.columns}
    parts = []
    for column in encoding.columns:
        mine, start = own[column.name], starts[column.name]
        block = graph.data.x[:, start : start + len(mine.features)]
        if column.kind == "category":
            room = block.new_zeros(block.size(0), len(column.categories))
            for place, category in enumerate(mine.categories):
                room[:, column.categories.index(category)] = block[:, place]
            parts.append(room)
        else:
            parts.append(((block.double() * mine.scale + mine.mean - column.mean) / column.scale).to(block.dtype))
    return torch.cat(parts, dim=1)


def matched_graph(graph: OwnGraph, encoding: Encoding) -> OwnGraph:
    """Returns a graph with the features that a model expects.

    Args:
        graph, encoding: See :func:`matched_features`.
    """
    x = matched_features(graph, encoding)
    if x is graph.data.x:
        return graph
    data = Data(x=x, edge_index=graph.data.edge_index, edge_weight=graph.data.edge_weight, y=graph.data.y)
    return replace(graph, data=data)


def encoding_differences(found: Encoding, expected: Encoding) -> list[str]:
    """Lists how columns differ from those expected, in words; their order and units do not count.

    Args:
        found, expected (Encoding): The two.
    """
    own = {column.name: column for column in found.columns}
    known = {column.name for column in expected.columns}
    differences = [f"column {column.name!r} is missing" for column in expected.columns if column.name not in own]
    differences += [f"column {name!r} is new" for name in own if name not in known]
    for column in expected.columns:
        mine = own.get(column.name)
        if mine is None:
            continue
        if mine.kind != column.kind:
            differences.append(f"column {column.name!r} holds a {mine.kind} and not a {column.kind}")
        elif column.kind == "boolean" and mine.categories != column.categories:
            differences.append(f"column {column.name!r} is written in other words")
        elif column.kind == "category":
            strange = [category for category in mine.categories if category not in column.categories]
            if strange:
                differences.append(f"column {column.name!r} has the new category {strange[0]!r}")
    return differences
