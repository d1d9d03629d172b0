"""Units of work in several processes of this machine.

The steps of a small population leave most of a GPU idle, and graphs are loaded, corrupted and captured on the host
meanwhile: a few processes beside each other fill both. On a CPU each takes its share of the cores.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from bigcn.experiments.execution import Unit, run_unit
from bigcn.experiments.graphs import GraphSource
from bigcn.experiments.records import RunResult

_graphs = GraphSource()


class ProcessExecutor:
    """Carries out units in some processes; the caller's alone writes the store.

    Args:
        processes (int): How many.
        minutes (float, optional): After how long no further unit is begun. (default: no limit)
    """

    def __init__(self, processes: int, minutes: float | None = None) -> None:
        if processes < 1:
            raise ValueError(f"'processes' must be at least 1 (got {processes})")
        self.processes = processes
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes

    def run(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, list[RunResult]]]:
        """Gives each unit with its results as it ends."""
        if not units:
            return
        # Not forked: a process that has used a GPU cannot be.
        context = multiprocessing.get_context("spawn")
        count = min(self.processes, len(units))
        threads = max(1, len(os.sched_getaffinity(0)) // count)
        waiting = list(units)
        with ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(threads,)) as pool:
            running: dict[Future[list[RunResult]], Unit] = {}
            try:
                while waiting or running:
                    if self.deadline is not None and time.monotonic() > self.deadline:
                        waiting.clear()
                    # One ahead for each, so that none waits for the caller.
                    while waiting and len(running) < 2 * count:
                        unit = waiting.pop(0)
                        running[pool.submit(_run, unit)] = unit
                    for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                        unit = running.pop(future)
                        yield unit, future.result()
            except BrokenProcessPool:
                raise RuntimeError("a process that carried out runs died; finished runs are stored") from None
            finally:
                for future in running:
                    future.cancel()


def _begin(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


def _run(unit: Unit) -> list[RunResult]:
    return run_unit(unit, _graphs)
