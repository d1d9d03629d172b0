"""Who carries out the runs of a command: this process, some of this machine, or Ray."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer

from bigcn.cli.common import resolve_device
from bigcn.experiments.execution import Executor, LocalExecutor

ExecutorOption = Annotated[
    str,
    typer.Option(
        "--executor",
        help=r'Who carries out the runs: local, local:N for N processes, or ray (pip install "bigcn\[ray]").',
    ),
]
RayAddressOption = Annotated[
    str,
    typer.Option(
        "--ray-address",
        help="The Ray cluster: host:port, ray://host:port or auto; by default one is started on this machine.",
    ),
]


def make_executor(name: str, ray_address: str, minutes: float | None = None) -> AbstractContextManager[Executor]:
    """Returns the executor that options name.

    Args:
        name (str): :obj:`"local"`, :obj:`"local:N"` for so many processes, or :obj:`"ray"`.
        ray_address (str): The cluster, or nothing to start one.
        minutes (float, optional): After how long nothing new is begun. (default: no limit)
    """
    kind, _, count = name.partition(":")
    if kind not in ("local", "ray") or (count and (kind == "ray" or not count.isdecimal() or int(count) < 1)):
        raise ValueError(f"'--executor' must be local, local:N for N processes, or ray (got {name!r})")
    if kind == "local":
        if ray_address:
            raise ValueError("'--ray-address' needs '--executor ray'")
        if count:
            from bigcn.experiments.process_executor import ProcessExecutor

            return ProcessExecutor(int(count), minutes)
        return nullcontext(LocalExecutor(minutes))
    from bigcn.experiments.ray_executor import RayExecutor

    return RayExecutor(ray_address or None, minutes=minutes)


def at_once(executor: str) -> int:
    """Returns how many processes the name of an executor asks for; how many a cluster has is not known.

    Example:
        >>> at_once("local:4"), at_once("ray")
        (4, 1)
    """
    return int(executor.partition(":")[2] or 1)


def executor_device(device: str, executor: str) -> str:
    """Returns the device that an option names; with Ray, the GPUs that count are those of the cluster."""
    return device if device == "cuda" and executor == "ray" else resolve_device(device)
