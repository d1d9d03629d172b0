"""Units of work in several processes of this machine.

The steps of a small population leave most of a GPU idle, and graphs are loaded, corrupted and captured on the host
meanwhile: a few processes beside each other fill both. On a CPU each takes its share of the cores.
"""

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from bigcn.datasets import DATASETS, get_spec
from bigcn.experiments.execution import Unit, done, run_unit, seconds_left
from bigcn.experiments.graphs import GraphSource
from bigcn.experiments.records import RunResult
from bigcn.experiments.shared_features import shared_folder
from bigcn.memory import keep_freed_memory

#: What an edge moves in a step, and what could be moved in the time that starting its kernels takes, in numbers.
WIDTH, STEP = 64, 10_000_000
#: The name of a graph, and a task on it.
_Graph = tuple[str, str]

_graphs = GraphSource()


class ProcessExecutor:
    """Carries out units in some processes; the caller's alone writes the store.

    A process stays with a graph for as long as there are units on it, since it keeps what it has loaded and corrupted.
    In a :obj:`with` block processes stay for the next call of :meth:`run` as well.

    Args:
        processes (int): How many.
        minutes (float, optional): After how long no further unit, nor part of one, is begun. (default: no limit)
    """

    def __init__(self, processes: int, minutes: float | None = None) -> None:
        if processes < 1:
            raise ValueError(f"'processes' must be at least 1 (got {processes})")
        self.processes = processes
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._kept: ExitStack | None = None
        self._pools: list[ProcessPoolExecutor] = []
        self._shared: Path | None = None

    def __enter__(self) -> Self:
        self._kept = ExitStack()
        self._shared = self._kept.enter_context(shared_folder())
        return self

    def __exit__(self, *error: object) -> None:
        assert self._kept is not None
        kept, self._kept, self._pools = self._kept, None, []
        kept.close()

    def run(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, list[RunResult]]]:
        """Gives each unit with its results as it ends."""
        if not units:
            return
        count = min(self.processes, len(units))
        waiting = Waiting(units, count)
        with ExitStack() as exits:
            pools = self._started(count, exits)
            running: dict[Future[list[RunResult]], tuple[int, Unit]] = {}
            processes: list[Future[int]] = []
            try:
                processes += [pool.submit(os.getpid) for pool in pools]
                while True:
                    left = seconds_left(self.deadline)
                    if left is not None and left < 0:
                        waiting.clear()
                    # One ahead for each, so that none waits for the caller; not when time may be up before it begins.
                    for ahead in range(2 if left is None else 1):
                        for place, pool in enumerate(pools):
                            busy = sum(owner == place for owner, _ in running.values())
                            if busy <= ahead and (unit := waiting.next(place)) is not None:
                                running[pool.submit(_run, unit, left)] = place, unit
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        _, unit = running.pop(future)
                        yield done(unit, future.result())
            except BrokenProcessPool:
                self._pools = []
                raise ChildProcessError("a process that carried out runs died; finished runs are stored") from None
            finally:
                # Whoever breaks off does not wait for units whose results nobody would store.
                if running:
                    self._pools = []
                for process in processes if running else ():
                    with suppress(BrokenProcessPool, ProcessLookupError):
                        os.kill(process.result(), signal.SIGTERM)  # once it has started, if it has not yet

    def _started(self, count: int, exits: ExitStack) -> list[ProcessPoolExecutor]:
        """Returns so many processes, each a pool of its own: those of the call before, and others."""
        # Not forked: a process that has used a GPU cannot be.
        context = multiprocessing.get_context("spawn")
        pools = self._pools if self._kept is not None else []
        # Who stays shares the machine with all who may come.
        sharers = count if self._kept is None else self.processes
        shared = exits.enter_context(shared_folder()) if self._kept is None else self._shared
        initargs = (max(1, len(os.sched_getaffinity(0)) // sharers), sharers, shared)
        while len(pools) < count:
            pool = ProcessPoolExecutor(1, context, initializer=_begin, initargs=initargs)
            pools.append((self._kept or exits).enter_context(pool))
        return pools[:count]


def work(unit: Unit) -> float:
    """Returns about how long a unit takes, beside others: what its members read of graph and features in a step, and
    what a step takes whatever it reads.

    Args:
        unit (Unit): The unit.
    """
    spec = unit.specs[0]
    numbers: float = STEP
    if spec.dataset in DATASETS:
        known = get_spec(spec.dataset)
        mistakes = (spec.value or 0) * known.nodes**2 if spec.case == "structure-mistakes" else 0
        numbers += known.nodes * known.features + WIDTH * (2 * known.edges + mistakes)
    return len(unit.specs) * numbers


class Waiting:
    """Units that nobody has taken yet.

    Args:
        units (Sequence[Unit]): The units.
        count (int): How many processes take them.
    """

    def __init__(self, units: Sequence[Unit], count: int) -> None:
        self.units: dict[_Graph, deque[Unit]] = defaultdict(deque)
        # The longest first, so that none of them is still under way when all others are done.
        for unit in sorted(units, key=work, reverse=True):
            self.units[unit.specs[0].dataset, unit.specs[0].task].append(unit)
        self.graphs: list[_Graph | None] = [None] * count

    def next(self, place: int) -> Unit | None:
        """Takes a unit for a process: on the graph that it has, else on the one with the most work for each process."""
        graph = self.graphs[place]
        if graph is None or graph not in self.units:
            if not self.units:
                return None
            others = Counter(other for number, other in enumerate(self.graphs) if number != place)
            graph = max(self.units, key=lambda graph: sum(map(work, self.units[graph])) / (1 + others[graph]))
            self.graphs[place] = graph
        unit = self.units[graph].popleft()
        if not self.units[graph]:
            del self.units[graph]
        return unit

    def clear(self) -> None:
        """Leaves all of them."""
        self.units.clear()


def _begin(threads: int, sharers: int, shared: Path | None) -> None:
    import torch

    global _graphs
    _graphs = GraphSource(sharers, shared)
    threading.Thread(target=_end_with_caller, args=(shared,), daemon=True).start()
    torch.set_num_threads(threads)
    keep_freed_memory()


def _end_with_caller(shared: Path | None) -> None:
    """Waits for the caller to end, however it does, and ends this process then: nobody would store its results."""
    if (caller := multiprocessing.parent_process()) is not None:
        caller.join()
        if shared is not None:  # a caller that was killed leaves it behind, in memory
            shutil.rmtree(shared, ignore_errors=True)
        os._exit(1)


def _run(unit: Unit, seconds: float | None) -> list[RunResult]:
    return run_unit(unit, _graphs, seconds)
