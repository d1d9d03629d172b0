"""A graph from the user's own files: tables of nodes and edges, and the other formats people keep graphs in."""

from bigcn.datasets.own.encoding import decode, encode
from bigcn.datasets.own.graph import Column, Encoding, GraphSummary, InputError, NoClasses, OwnGraph
from bigcn.datasets.own.reading import read_graph
from bigcn.datasets.own.summary import look
from bigcn.datasets.own.writing import write_graph, write_table

__all__ = [
    "Column",
    "Encoding",
    "GraphSummary",
    "InputError",
    "NoClasses",
    "OwnGraph",
    "decode",
    "encode",
    "look",
    "read_graph",
    "write_graph",
    "write_table",
]
