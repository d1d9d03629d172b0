"""A graph from the user's own files: tables of nodes and edges, and the other formats people keep graphs in."""

from bigcn.datasets.own.graph import Column, Encoding, GraphSummary, InputError, OwnGraph

__all__ = ["Column", "Encoding", "GraphSummary", "InputError", "OwnGraph"]
