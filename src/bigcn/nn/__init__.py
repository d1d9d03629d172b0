"""Layers and models, each a citizen of PyG."""

from bigcn.nn.bigcn import BiGCN
from bigcn.nn.bigcn_conv import BiGCNConv

__all__ = ["BiGCN", "BiGCNConv"]
