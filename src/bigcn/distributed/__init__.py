"""One graph over many processes: shards, halo exchange, and training that equals that of a single process."""

from typing import TYPE_CHECKING, Any

from bigcn.distributed.graph import DistributedGraph
from bigcn.distributed.links import DistributedLinks
from bigcn.distributed.loop import train_distributed
from bigcn.distributed.nodes import DistributedNodes
from bigcn.distributed.partition import partition_data
from bigcn.distributed.processes import LostProcess, Processes, joined, run_process
from bigcn.distributed.running import ShardedPredictions, ShardedRun, predict_shards, train_shards
from bigcn.distributed.shards import Manifest, Shard
from bigcn.distributed.traffic import feature_graph_bytes, hop_bytes

if TYPE_CHECKING:
    from bigcn.distributed.tables import partition_tables

__all__ = [
    "DistributedGraph",
    "DistributedLinks",
    "DistributedNodes",
    "LostProcess",
    "Manifest",
    "Processes",
    "Shard",
    "ShardedPredictions",
    "ShardedRun",
    "feature_graph_bytes",
    "hop_bytes",
    "joined",
    "partition_data",
    "partition_tables",
    "predict_shards",
    "run_process",
    "train_distributed",
    "train_shards",
]


def __getattr__(name: str) -> Any:
    # Reading tables needs pyarrow, and training does not.
    if name == "partition_tables":
        from bigcn.distributed.tables import partition_tables

        return partition_tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
