"""Learning on graphs whose features or edges cannot be trusted."""

from bigcn.nn import BiGCN, BiGCNConv
from bigcn.smoothing import BiSmoother, smooth

__version__ = "0.1.0"

__all__ = ["BiGCN", "BiGCNConv", "BiSmoother", "__version__", "smooth"]
