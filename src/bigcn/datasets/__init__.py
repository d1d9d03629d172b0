"""Datasets: the embedded digits graph, the six graphs of the paper, and their splits."""

from bigcn.datasets.cache import DatasetStatus, download, fingerprint, status, verify
from bigcn.datasets.cache import load as load_dataset
from bigcn.datasets.digits import digits
from bigcn.datasets.files import DatasetCorrupt, DatasetUnavailable, cache_folder
from bigcn.datasets.registry import DATASETS, DatasetSpec, RawFile, get_spec
from bigcn.datasets.splits import Split, default_protocol, make_split

__all__ = [
    "DATASETS",
    "DatasetCorrupt",
    "DatasetSpec",
    "DatasetStatus",
    "DatasetUnavailable",
    "RawFile",
    "Split",
    "cache_folder",
    "default_protocol",
    "digits",
    "download",
    "fingerprint",
    "get_spec",
    "load_dataset",
    "make_split",
    "status",
    "verify",
]
