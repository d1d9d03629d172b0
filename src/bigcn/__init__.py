"""Learning on graphs whose features or edges cannot be trusted."""

from bigcn.nn import BiGCN, BiGCNConv

__version__ = "0.1.0"

__all__ = ["BiGCN", "BiGCNConv", "__version__"]
