"""Training and predicting from shards."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bigcn.datasets.own.graph import Encoding
from bigcn.distributed.graph import DistributedGraph
from bigcn.distributed.links import DistributedLinks
from bigcn.distributed.loop import check_model, share_parameters, train_distributed
from bigcn.distributed.nodes import DistributedNodes
from bigcn.distributed.processes import Processes
from bigcn.distributed.progress import RunState, check_same, fingerprint
from bigcn.distributed.shards import Manifest, Shard
from bigcn.distributed.task import DistributedTask
from bigcn.files import PathLike
from bigcn.nn import BiGCN
from bigcn.tasks.base import evaluating
from bigcn.training.config import Progress, TrainConfig, TrainResult
from bigcn.training.loop import seeded

#: The model that is trained unless told otherwise; see :class:`bigcn.BiGCN`.
MODEL = {"hidden_channels": 16, "num_layers": 2, "dropout": 0.5, "cached": True}


@dataclass(frozen=True, eq=False)
class ShardedRun:
    """What training from shards gives, on each process.

    Args:
        result (TrainResult): How it went; the same on all processes.
        model (BiGCN): The model; the same on all processes.
        task (DistributedTask): What it learned, with the rows of this process.
        resumed (int): The epoch that the run went on from, zero if it began anew.
        traffic (dict): The bytes that this process sent, by what for.
        saved (Path, optional): Where the model was saved.
    """

    result: TrainResult
    model: BiGCN
    task: DistributedTask
    resumed: int = 0
    traffic: dict[str, int] = field(default_factory=dict)
    saved: Path | None = None


@dataclass(frozen=True, eq=False)
class ShardedPredictions:
    """The predictions for the nodes of this process.

    Args:
        rows (numpy.ndarray): The place of each node in the node table.
        ids (numpy.ndarray): Its id.
        outputs (torch.Tensor): The scores of the classes, or the embedding, of each node.
        classes (tuple[str, ...]): The names of the classes.
    """

    rows: np.ndarray
    ids: np.ndarray
    outputs: Tensor
    classes: tuple[str, ...] = ()


def open_shard(folder: PathLike, processes: Processes, verify: bool = True) -> Shard:
    """Opens the shard of this process, or has all processes refuse it.

    Args:
        folder (str or path): The folder that :obj:`bigcn partition` wrote.
        processes (Processes): The processes.
        verify (bool, optional): If set to :obj:`False`, does not compare checksums. (default: :obj:`True`)
    """

    def opened() -> Shard:
        manifest = Manifest.load(folder)
        if manifest.parts != processes.size:
            raise ValueError(
                f"{folder}: made for {_counted(manifest.parts)}, and {_counted(processes.size)} "
                f"{'runs' if processes.size == 1 else 'run'}: partition with '--parts {processes.size}', or start "
                f"{manifest.parts}"
            )
        manifest.check(folder, processes.rank, contents=verify)
        return Shard(folder, processes.rank, manifest)

    return processes.together(opened)


def make_task(
    task: Literal["node", "link"], shard: Shard, processes: Processes, dtype: torch.dtype, seed: int, **options: Any
) -> DistributedNodes | DistributedLinks:
    """Makes a task from the shard of this process.

    Args:
        task (str): :obj:`"node"` or :obj:`"link"`.
        shard, processes, dtype, seed, **options: See :class:`DistributedNodes` and :class:`DistributedLinks`.
    """
    if task not in ("node", "link"):
        raise ValueError(f"'task' must be 'node' or 'link' (got {task!r})")
    kind = DistributedNodes if task == "node" else DistributedLinks
    return kind(shard, processes, dtype, seed, **options)


def train_shards(
    folder: PathLike,
    processes: Processes,
    *,
    task: Literal["node", "link"] = "node",
    model: dict[str, Any] | None = None,
    config: TrainConfig | None = None,
    seed: int = 0,
    task_options: dict[str, Any] | None = None,
    save: PathLike | None = None,
    overwrite: bool = False,
    checkpoint_every: int = 20,
    dtype: torch.dtype = torch.float32,
    verify: bool = True,
    on_epoch: Callable[[Progress], bool | None] | None = None,
) -> ShardedRun:
    """Trains a BiGCN on a partitioned graph, each process on its shard.

    Bad input raises a :class:`ValueError` with the same sentence on every process, a lost process a
    :class:`~bigcn.distributed.processes.LostProcess` on the others.

    Args:
        folder (str or path): The folder that :obj:`bigcn partition` wrote.
        processes (Processes): The processes, see :func:`~bigcn.distributed.processes.joined`.
        task (str, optional): :obj:`"node"` or :obj:`"link"`. (default: :obj:`"node"`)
        model (dict, optional): Arguments of :class:`bigcn.BiGCN`, all but the sizes of input and output.
            (default: :obj:`None`)
        config (TrainConfig, optional): How to train. (default: the paper's way for the task)
        seed (int, optional): The seed of the weights, the dropout, and what the task draws. (default: :obj:`0`)
        task_options (dict, optional): Further arguments of the task. (default: :obj:`None`)
        save (str or path, optional): Where the first process saves the model. While the run goes on, its state stands
            beside it in a file, from which a restarted run goes on. (default: :obj:`None`)
        overwrite (bool, optional): If set to :obj:`True`, replaces an older checkpoint. (default: :obj:`False`)
        checkpoint_every (int, optional): Every how many epochs the state is written. (default: :obj:`20`)
        dtype (torch.dtype, optional): The precision. (default: :obj:`torch.float32`)
        verify (bool, optional): If set to :obj:`False`, does not compare the checksums of the shards.
            (default: :obj:`True`)
        on_epoch (Callable, optional): See :func:`~bigcn.distributed.loop.train_distributed`. (default: :obj:`None`)
    """
    config = TrainConfig.published(task) if config is None else config
    settings = MODEL | (model or {})
    shard = open_shard(folder, processes, verify)
    told = {
        "task": task,
        "model": settings,
        "config": asdict(config),
        "seed": seed,
        "task options": task_options or {},
        "dtype": str(dtype),
        "save": None if save is None else str(save),
        "checkpoint every": checkpoint_every,
        "shards": fingerprint(asdict(shard.manifest)),
    }
    digest = check_same(told, processes)
    if save is not None and processes.from_first(state_path(save).exists()):
        overwrite = True  # the run was about to end when it was interrupted: what stands there is its own
    if save is not None:
        processes.together(lambda: _check_target(save, overwrite) if processes.leads else None)
    work = make_task(task, shard, processes, dtype, seed, **(task_options or {}))

    def built() -> BiGCN:
        with seeded(seed):
            fresh = BiGCN(shard.manifest.features, out_channels=work.num_outputs, **settings)
        check_model(fresh)
        return fresh.to(processes.device, dtype)

    net = processes.together(built)
    state = None if save is None else RunState(state_path(save), digest, checkpoint_every)
    result = train_distributed(net, work, processes, config, seed, on_epoch, state)
    if save is not None and state is not None:
        processes.doing = "saving"
        processes.together(lambda: _save(save, net, work, shard, result, told, overwrite) if processes.leads else None)
        state.remove(processes)
    return ShardedRun(
        result,
        net,
        work,
        0 if state is None else state.resumed,
        {kind: count for kind, count in processes.traffic.items()},
        None if save is None else Path(save),
    )


def predict_shards(
    folder: PathLike,
    processes: Processes,
    model: BiGCN,
    *,
    encoding: Encoding | None = None,
    dtype: torch.dtype = torch.float32,
    verify: bool = True,
) -> ShardedPredictions:
    """Runs a model on a partitioned graph, each process on its shard.

    Args:
        folder (str or path): The folder that :obj:`bigcn partition` wrote.
        processes (Processes): The processes.
        model (BiGCN): The model; the parameters of the first process count.
        encoding (Encoding, optional): How the tables that the model was trained on became its input; shards made
            another way are refused. (default: :obj:`None`)
        dtype, verify: See :func:`train_shards`.
    """
    shard = open_shard(folder, processes, verify)

    def fitting() -> None:
        check_model(model)
        if model.in_channels != shard.manifest.features:
            raise ValueError(
                f"{folder}: the nodes have {shard.manifest.features} features, and the model was trained on "
                f"{model.in_channels}"
            )
        if encoding is not None and encoding.to_dict()["columns"] != shard.manifest.encoding.get("columns"):
            raise ValueError(
                f"{folder}: the features were not encoded as those that the model was trained on (other columns, means "
                f"or categories): predict on the shards it was trained on, or on tables with 'bigcn predict'"
            )

    processes.together(fitting)
    model = model.to(processes.device, dtype)
    share_parameters(model, processes)
    graph = DistributedGraph.from_shard(shard, processes, dtype)
    processes.doing = "predicting"
    with evaluating(model):
        outputs = model(shard.features(dtype).to(processes.device), graph)
    # Shards without labels and models without tables know no names: classes are called by their numbers then.
    named = shard.manifest.classes if encoding is None else encoding.classes
    classes = named or tuple(map(str, range(outputs.size(-1))))
    return ShardedPredictions(np.asarray(shard.array("rows")), shard.ids(), outputs, classes)


def state_path(save: PathLike) -> Path:
    """Returns where the state of a run stands while it goes on."""
    path = Path(save)
    return path.with_name(path.name + ".run.safetensors")


def _check_target(save: PathLike, overwrite: bool) -> None:
    from bigcn.training.checkpoint import check_target

    check_target(save, overwrite)


def _save(
    save: PathLike,
    model: BiGCN,
    task: DistributedTask,
    shard: Shard,
    result: TrainResult,
    told: dict[str, Any],
    overwrite: bool,
) -> None:
    from bigcn.training.checkpoint import Checkpoint, save_checkpoint

    manifest = shard.manifest
    encoding = Encoding.from_dict(manifest.encoding) if manifest.encoding else None
    details = {
        "training": told["config"],
        "seed": told["seed"],
        "scores": {"val": result.val_metrics, "test": result.metrics},
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "processes": manifest.parts,
        "data": {"name": manifest.name, "nodes": manifest.nodes, "edges": manifest.edges},
    }
    save_checkpoint(save, Checkpoint(model, task.name, encoding, details), overwrite)


def _counted(processes: int) -> str:
    return f"{processes} process" + ("" if processes == 1 else "es")
