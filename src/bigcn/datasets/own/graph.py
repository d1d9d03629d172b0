"""What reading a user's files gives: the graph, and how it came out of the tables."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.splits import Split

Kind = Literal["number", "category", "boolean"]


class InputError(ValueError):
    """A user's file that cannot be understood; the message is one sentence that says what and where."""


class NoClasses(InputError):
    """Labels that are no classes, see :attr:`graph`.

    Args:
        message (str): The sentence.
    """

    #: What was understood of the rest of the files, without labels and with gaps where values are missing.
    graph: "OwnGraph | None" = None


@dataclass(frozen=True)
class Column:
    """How a column of the node table becomes features.

    Args:
        name (str): The name of the column.
        kind (str): :obj:`"number"` and :obj:`"boolean"` give one feature, :obj:`"category"` one for each category.
        mean (float, optional): What is subtracted from a number. (default: :obj:`0.0`)
        scale (float, optional): What a number is divided by after that. (default: :obj:`1.0`)
        categories (tuple[str, ...], optional): The categories, in the order of their features; of a boolean that is
            written in words, those for no and yes. (default: :obj:`()`)
    """

    name: str
    kind: Kind
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that the column becomes."""
        if self.kind == "category":
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name,)


@dataclass(frozen=True)
class Encoding:
    """How tables become tensors; a model keeps it, so that other files are read the same way.

    Args:
        columns (tuple[Column, ...]): The feature columns, in order.
        classes (tuple[str, ...], optional): The names of the classes, in the order of their numbers.
            (default: :obj:`()`)
        label (str, optional): The label column. (default: :obj:`None`)
        standardize (bool, optional): Whether numbers were standardised. (default: :obj:`True`)
        id (str, optional): The column with the ids of the nodes. (default: :obj:`"id"`)
        source, target (str, optional): The columns with the ends of the edges. (default: :obj:`"source"`,
            :obj:`"target"`)
        weight (str, optional): The column with the weights of the edges, :obj:`None` for edges without.
            (default: :obj:`None`)
        unused (tuple[str, ...], optional): The other columns that the node table had. (default: :obj:`()`)
    """

    columns: tuple[Column, ...]
    classes: tuple[str, ...] = ()
    label: str | None = None
    standardize: bool = True
    id: str = "id"
    source: str = "source"
    target: str = "target"
    weight: str | None = None
    unused: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(name for column in self.columns for name in column.features)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        columns = [
            {"name": c.name, "kind": c.kind}
            | ({} if c.kind == "category" else {"mean": c.mean, "scale": c.scale})
            | ({"categories": list(c.categories)} if c.kind == "category" or c.categories else {})
            for c in self.columns
        ]
        return {
            "columns": columns,
            "classes": list(self.classes),
            "label": self.label,
            "standardize": self.standardize,
            "id": self.id,
            "source": self.source,
            "target": self.target,
            "weight": self.weight,
            "unused": list(self.unused),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Encoding":
        """Undoes :meth:`to_dict`."""
        columns = tuple(
            Column(**{**column, "categories": tuple(column.get("categories", ()))}) for column in values["columns"]
        )
        tables = {key: values[key] for key in ("id", "source", "target", "weight") if key in values}
        unused = tuple(values.get("unused", ()))  # older checkpoints do not say
        return cls(columns, tuple(values["classes"]), values["label"], values["standardize"], **tables, unused=unused)


@dataclass(frozen=True)
class GraphSummary:
    """What was understood of the files, for a first look.

    Args:
        nodes, edges (int): The size of the graph; an undirected edge counts once.
        duplicates, self_loops, unknown (int): Edges merged, removed, and skipped for an unknown id.
        isolated, components (int): Nodes without an edge, and connected components.
        features (dict): The number of columns of each kind.
        missing (float): The share of feature values that were missing.
        labels (dict): The number of labelled nodes of each class.
        unlabelled (int): The nodes without a label.
        homophily (float, optional): The share of edges between labelled nodes that join the same class.
        weighted (bool): Whether edges have weights.
        warnings (tuple[str, ...]): What a practitioner would frown at, a sentence each.
    """

    nodes: int
    edges: int
    duplicates: int = 0
    self_loops: int = 0
    unknown: int = 0
    isolated: int = 0
    components: int = 0
    features: dict[str, int] = field(default_factory=dict)
    missing: float = 0.0
    labels: dict[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    homophily: float | None = None
    weighted: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class OwnGraph:
    """A graph read from a user's files.

    Args:
        data (Data): Features :obj:`x` (float32, encoded and without gaps), :obj:`edge_index` (every edge in both
            directions, no self-loops or duplicates), :obj:`edge_weight` where edges have one, and :obj:`y` (the number
            of the class, -1 for none) where there is a label column.
        ids (numpy.ndarray): The ids of the nodes as they stood in the table.
        encoding (Encoding): How the tables became tensors.
        summary (GraphSummary): What was understood.
        name (str): What to call the graph, from the name of its file.
        split (Split, optional): The split from the split column. (default: :obj:`None`)
        missing (torch.Tensor, optional): Where features were missing before they were filled, as a mask like
            :obj:`x`. (default: :obj:`None`)
    """

    data: Data
    ids: np.ndarray
    encoding: Encoding
    summary: GraphSummary
    name: str = "graph"
    split: Split | None = None
    missing: Tensor | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.encoding.classes

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.encoding.feature_names

    @property
    def labelled(self) -> Tensor:
        """The nodes that have a label."""
        y = self.data.y
        return torch.empty(0, dtype=torch.int64) if y is None else (y >= 0).nonzero().view(-1)
