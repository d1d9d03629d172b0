"""Learning on graphs whose features or edges cannot be trusted."""

import importlib
from typing import TYPE_CHECKING, Any

from bigcn.nn import BiGCN, BiGCNConv
from bigcn.smoothing import BiSmoother, smooth

if TYPE_CHECKING:
    from bigcn.datasets.own import read_graph
    from bigcn.estimators import BiGCNClassifier

__version__ = "0.1.0"

__all__ = ["BiGCN", "BiGCNClassifier", "BiGCNConv", "BiSmoother", "__version__", "read_graph", "smooth"]

#: Names that are imported when they are first used: PyG's datasets take their time.
_LATER = {"BiGCNClassifier": "bigcn.estimators", "read_graph": "bigcn.datasets.own"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
