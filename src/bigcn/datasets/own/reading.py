"""Reading a graph from the user's own files."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from bigcn.datasets.own.graph import Encoding, InputError, OwnGraph

if TYPE_CHECKING:
    import pandas as pd

PathLike = str | os.PathLike[str]


def read_graph(
    nodes: "PathLike | pd.DataFrame",
    edges: "PathLike | pd.DataFrame | None" = None,
    *,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    split: str | None = None,
    standardize: bool = True,
    missing: Literal["fill", "error"] = "fill",
    unknown_ids: Literal["error", "drop"] = "error",
    like: Encoding | None = None,
    name: str | None = None,
) -> OwnGraph:
    """Reads a graph from a table of nodes and a table of edges, or from one file that holds both.

    Tables are CSV or TSV files (also compressed, :obj:`.gz`), Parquet files or data frames. One file alone may be
    GraphML, GML, GEXF, Pajek or node-link JSON, an :obj:`.npz` with adjacency and features in the layout of PyG's
    Amazon graphs, or a PyG :obj:`Data` saved with :func:`torch.save`; nothing is unpickled but tensors.

    Edges are undirected: directions are dropped, duplicates merged and their weights added, self-loops removed.
    Numbers are standardised, booleans stay 0 and 1, text becomes one feature for each category. Missing features are
    filled by :func:`~bigcn.smoothing.imputation.fill_missing`.

    Args:
        nodes (str, path or pandas.DataFrame): The table of nodes, or the file that holds the graph.
        edges (str, path or pandas.DataFrame, optional): The table of edges. (default: :obj:`None`)
        label (str, optional): The column with the labels; empty cells are to be predicted. (default: :obj:`None`)
        id (str, optional): The column with the ids of the nodes. (default: :obj:`"id"`)
        source, target (str, optional): The columns with the ends of the edges. (default: :obj:`"source"`,
            :obj:`"target"`)
        weight (str, optional): The column with the weights of the edges. (default: :obj:`"weight"` if there is one)
        features (Sequence[str], optional): The feature columns. (default: all others)
        split (str, optional): The column that says train, val or test; empty cells are in no part.
            (default: :obj:`"split"` if it holds these words)
        standardize (bool, optional): If set to :obj:`False`, takes numbers as they are. (default: :obj:`True`)
        missing (str, optional): :obj:`"fill"` fills missing features, :obj:`"error"` refuses them.
            (default: :obj:`"fill"`)
        unknown_ids (str, optional): :obj:`"error"` refuses edges to ids that no node has, :obj:`"drop"` skips them.
            (default: :obj:`"error"`)
        like (Encoding, optional): How the tables of a trained model were read; these are read the same way, and
            refused with the list of what differs if they cannot be. (default: :obj:`None`)
        name (str, optional): What to call the graph. (default: the name of the file)
    """
    for option, value, choices in (
        ("missing", missing, ("fill", "error")),
        ("unknown_ids", unknown_ids, ("error", "drop")),
    ):
        if value not in choices:
            raise InputError(f"'{option}' must be {' or '.join(choices)} (got {value!r})")
    if isinstance(features, str):
        raise InputError(f"'features' must be a list of columns (got the text {features!r})")
    try:
        from bigcn.datasets.own.pipeline import Roles, build
    except ModuleNotFoundError as error:
        raise InputError(f"reading a graph needs {error.name}: pip install 'bigcn[cli]'") from error
    roles = Roles(label, id, source, target, weight, None if features is None else tuple(features), split)
    return build(nodes, edges, roles, standardize, missing, unknown_ids, like, name)
