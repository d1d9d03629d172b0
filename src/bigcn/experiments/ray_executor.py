"""Units as Ray tasks: on a cluster started for the occasion, or on one that runs already."""

import functools
import logging
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from bigcn.experiments.execution import Unit, run_unit
from bigcn.experiments.graphs import GraphSource
from bigcn.experiments.records import RunResult

#: How many seconds a cluster has to answer: before its port is given up, and before Ray is.
PORT_PATIENCE, RAY_PATIENCE = 5.0, 30.0
#: What tells workers where graphs are.
PASSED_ON = ("BIGCN_DATA", "BIGCN_CACHE")
#: Results are small, and Ray would take a third of the memory for them.
OBJECT_STORE_BYTES = 128 * 2**20

_QUIET = {"logging_level": logging.ERROR, "log_to_driver": False}
_PROBE = """
import sys, logging, ray
try:
    ray.init(address=sys.argv[1], logging_level=logging.ERROR, log_to_driver=False)
except Exception as error:
    sys.exit("REASON " + " ".join(str(error).split()))
"""


class RayError(OSError):
    """Ray is missing, cannot be reached, or has lost work for good, in one sentence."""


class RayExecutor:
    r"""Carries out units as Ray tasks and gives their results as they end, to the one process that stores them.

    A unit whose worker dies, or whose machine does, is begun again from its start, on whatever worker is free. A
    worker keeps the graphs it has read for its next unit. Use it as a context manager, which ends what it began: a
    connection to Ray that the process had before is used and left as it is.

    Args:
        address (str, optional): The cluster: :obj:`"host:port"`, :obj:`"ray://host:port"` or :obj:`"auto"`.
            (default: :obj:`RAY_ADDRESS` of the environment, or a cluster on this machine that lives as long as the
            executor)
        num_gpus (float, optional): The GPUs that a unit takes; a fraction lets units share one.
            (default: one for runs on a GPU, none for others)
        max_retries (int, optional): How often a unit is begun again after its worker died. (default: :obj:`3`)
        minutes (float, optional): After how long no further unit is begun. (default: no limit)
        threads (int, optional): The CPUs that a unit takes, and the threads that PyTorch has for it.
            (default: :obj:`1`)
        run (Callable, optional): What carries out a unit in a worker.
            (default: :func:`~bigcn.experiments.execution.run_unit`)

    Example:
        >>> with RayExecutor("auto") as executor:  # doctest: +SKIP
        ...     run_comparison(comparison, store, executor=executor)
    """

    def __init__(
        self,
        address: str | None = None,
        num_gpus: float | None = None,
        max_retries: int = 3,
        minutes: float | None = None,
        threads: int = 1,
        run: Callable[[Unit, GraphSource], list[RunResult]] = run_unit,
    ) -> None:
        self.address, self.num_gpus, self.max_retries, self.threads = address, num_gpus, max_retries, threads
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._run, self._connected = run, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, and the cluster if it was started here."""
        if self._connected:
            _import_ray().shutdown()
        self._connected = False

    def run(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, list[RunResult]]]:
        """Gives each unit with its results as it ends; what has no time left is left out.

        Once a unit has lost too many workers nothing new is begun, and when what is under way has ended,
        :class:`RayError` is raised.
        """
        if not units or not self._has_time():
            return  # No cluster is needed to say so.
        ray = self._connect()
        waiting = deque((unit, 1) for unit in units)
        running: dict[Any, tuple[Unit, int]] = {}
        lost: RayError | None = None
        try:
            while True:
                while waiting and lost is None and self._has_time() and len(running) < self._window(waiting[0][0]):
                    unit, attempt = waiting.popleft()
                    running[self._submit(unit)] = unit, attempt
                if not running:
                    break
                [ref], _ = ray.wait(list(running), num_returns=1)
                unit, attempt = running.pop(ref)
                try:
                    results = ray.get(ref)
                except (
                    ray.exceptions.WorkerCrashedError,
                    ray.exceptions.OutOfMemoryError,
                    ray.exceptions.NodeDiedError,
                    ray.exceptions.ObjectLostError,
                ) as error:
                    if attempt > self.max_retries:
                        times = "once" if attempt == 1 else f"{attempt} times"
                        lost = RayError(
                            f"{_describe(unit)} was given up: its Ray worker died {times} "
                            f"({type(error).__name__}); finished runs are kept"
                        )
                    else:
                        waiting.appendleft((unit, attempt + 1))
                    continue
                except ray.exceptions.RayTaskError as error:
                    raise _cause(error, unit) from error
                except ray.exceptions.RayError as error:
                    raise RayError(f"Ray could not carry out {_describe(unit)}: {_one_line(error)}") from error
                yield unit, results
        finally:
            if ray.is_initialized():  # Cancelling would start a cluster otherwise.
                for ref in running:
                    ray.cancel(ref, force=True)
        if lost is not None:
            raise lost

    def _has_time(self) -> bool:
        return self.deadline is None or time.monotonic() <= self.deadline

    def _needs(self, unit: Unit) -> dict[str, float]:
        on_gpu = any(spec.device == "cuda" for spec in unit.specs)
        gpus = self.num_gpus if self.num_gpus is not None else float(on_gpu)
        return {"num_cpus": self.threads, "num_gpus": gpus}

    def _submit(self, unit: Unit) -> Any:
        ray = _import_ray()
        # Retries are counted here: Ray's own have no end for workers that run out of memory.
        task = ray.remote(_carry_out).options(max_retries=0, runtime_env=_environment(), **self._needs(unit))
        return task.remote(self._run, unit, self.threads)

    def _window(self, unit: Unit) -> int:
        """How many units may be with Ray at once."""
        needs = self._needs(unit)
        places = sum(_places(node["Resources"], needs) for node in _import_ray().nodes() if node["Alive"])
        if not places:
            asked = ", ".join(f"{need:g} {name[4:-1].upper()}" for name, need in needs.items() if need)
            raise RayError(f"no machine of the Ray cluster has what a unit takes: {asked}")
        # Some that wait let a cluster grow; but with a deadline none may, since Ray would begin them after it.
        return places if self.deadline is not None else 2 * places

    def _connect(self) -> Any:
        ray = _import_ray()
        if ray.is_initialized():
            return ray
        # Tasks that fail while another failure is reported would be logged, traceback and all.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        if address != "local":
            _check(address)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        started = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES} if address == "local" else {}
        try:
            ray.init(address=address, **started, **_QUIET)
        except Exception as error:  # Ray raises whatever it meets: socket errors, time-outs, mismatched versions.
            raise RayError(f"Ray cannot be used at {address}: {_one_line(error)}") from error
        self._connected = True
        return ray


def _import_ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise RayError('the Ray executor needs Ray: pip install "bigcn[ray]"') from None
    return ray


def _check(address: str) -> None:
    """Makes sure that a cluster answers.

    :func:`ray.init` tries for minutes to reach a port where nobody or somebody else listens, cannot be told not to,
    and may end the process: another one tries first.
    """
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise RayError(f"the Ray address {address!r} is not host:port, ray://host:port or auto")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PORT_PATIENCE).close()
        except OSError as error:
            raise RayError(f"no Ray cluster can be reached at {address}: {error.strerror or error}") from None
    try:
        outcome = subprocess.run(
            [sys.executable, "-c", _PROBE, address], capture_output=True, text=True, timeout=RAY_PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise RayError(f"no Ray cluster answers at {address}: waited for {RAY_PATIENCE:g} seconds") from None
    if outcome.returncode:
        reasons = [line for line in outcome.stderr.splitlines() if line.startswith("REASON ")]
        reason = reasons[-1].removeprefix("REASON ").partition(". ")[0] if reasons else "Ray gave up without a reason"
        raise RayError(f"no Ray cluster can be used at {address}: {reason}")


def _environment() -> dict[str, Any]:
    # Absolute, since a worker may live in another folder.
    given = {name: str(Path(value).expanduser().resolve()) for name in PASSED_ON if (value := os.environ.get(name))}
    return {"env_vars": given} if given else {}


def _places(resources: dict[str, float], needs: dict[str, float]) -> int:
    """How many tasks a machine can carry out at a time."""
    have = {"num_cpus": resources.get("CPU", 0.0), "num_gpus": resources.get("GPU", 0.0)}
    return min(int(have[name] / need) for name, need in needs.items() if need)


def _carry_out(
    run: Callable[[Unit, GraphSource], list[RunResult]], unit: Unit, threads: int
) -> list[RunResult]:  # in a worker
    # The order in which threads add up may change the last bit, so their number is not left to the machine.
    torch.set_num_threads(threads)
    return run(unit, _worker_graphs())


@functools.cache
def _worker_graphs() -> GraphSource:
    """The graphs of this worker, kept from one unit to the next."""
    return GraphSource()


def _describe(unit: Unit) -> str:
    first = unit.specs[0]
    what = f"{first.model} on {first.dataset}, seed {first.seed}"
    return f"a population of {len(unit.specs)} runs, among them {what}" if len(unit.specs) > 1 else what


def _cause(error: Any, unit: Unit) -> Exception:
    """Returns what went wrong in a worker: the error that would have been raised here."""
    cause = error.cause
    if isinstance(cause, _import_ray().exceptions.RayError) or "failed to import" in str(cause):
        reason = str(cause).splitlines()[0].removeprefix("System error: ")
        return RayError(f"a Ray worker cannot load {_describe(unit)}, it needs the bigcn that is here: {reason}")
    return cause if isinstance(cause, Exception) else RuntimeError(str(error))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
