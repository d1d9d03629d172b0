"""Carrying out runs: which of them train together, where their graphs come from, who carries them out."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from bigcn.experiments.graphs import GraphSource
from bigcn.experiments.records import RunResult, RunSpec, utc_now
from bigcn.experiments.store import RunStore
from bigcn.nn.registry import get_model
from bigcn.precision import fast_products
from bigcn.training import TrainConfig, TrainResult, seeded, train
from bigcn.training.population import Member, even_size, fitting, train_population
from bigcn.training.population_state import bytes_per_member
from bigcn.training.stacking import OWN_NUMBERS

#: What may differ in how the members of a population are trained; of their models, it is :obj:`OWN_NUMBERS`.
OWN_TRAINING = ("weight_decay", "penalty")
#: More members than this are another unit, so that little is lost with a process that is killed.
MAX_MEMBERS = 200
#: Cases that leave the size of graph and features alone train together, whatever the case and its amount.
SAME_SIZE = ("clean", "noise-level", "noise-rate", "column-noise")


@dataclass(frozen=True)
class Unit:
    """Runs that are carried out as one piece of work.

    Args:
        specs (tuple[RunSpec, ...]): The runs.
        together (bool, optional): Whether they train as one population. (default: :obj:`False`)
        max_memory (int, optional): See :func:`~bigcn.training.population.train_population`. (default: :obj:`None`)
    """

    specs: tuple[RunSpec, ...]
    together: bool = False
    max_memory: int | None = None


class Executor(Protocol):
    """Carries out units, in any order and wherever it likes."""

    def run(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, list[RunResult]]]:
        """Gives each unit with its results as it ends."""


class LocalExecutor:
    """Carries out units one after the other in this process.

    Args:
        minutes (float, optional): After how long no further unit, nor part of one, is begun; what is left is for the
            next time. (default: no limit)
    """

    def __init__(self, minutes: float | None = None) -> None:
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes

    def run(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, list[RunResult]]]:
        graphs = GraphSource()
        for number, unit in enumerate(units):
            left = seconds_left(self.deadline)
            if left is not None and left < 0:
                return
            graphs.prefetch(units[number + 1 : number + 2])
            yield done(unit, run_unit(unit, graphs, left))


def make_units(specs: Iterable[RunSpec], together: bool, max_memory: int | None = None) -> list[Unit]:
    """Divides runs into units: one for each, or one for all that can be trained together, up to 200.

    Args:
        specs (Iterable[RunSpec]): The runs.
        together (bool): Whether to train populations.
        max_memory (int, optional): The bytes that a population may take. (default: :obj:`None`)
    """
    if not together:
        return [Unit((spec,)) for spec in specs]
    groups: dict[str, list[RunSpec]] = {}
    for spec in specs:
        groups.setdefault(_group(spec), []).append(spec)
    return [
        Unit(tuple(group[start : start + size]), True, max_memory)
        for group in groups.values()
        for size in (even_size(len(group), MAX_MEMBERS),)
        for start in range(0, len(group), size)
    ]


def _group(spec: RunSpec) -> str:
    model = {key: value for key, value in spec.settings["model"].items() if key not in OWN_NUMBERS}
    training = {key: value for key, value in spec.settings["training"].items() if key not in OWN_TRAINING}
    if model.get("node_filter", "exact") == "exact" and spec.model.startswith("bigcn"):
        # A dense filter is one for all members then, the hops of a weak one are not as many as those of a strong, and
        # with the same p they share a graph.
        model |= {key: spec.settings["model"].get(key) for key in ("node_strength", "p")}
    # Without a strength a direction is off, which is another structure.
    off = [spec.settings["model"].get(key) == 0 for key in OWN_NUMBERS]
    case: tuple[Any, ...] = () if spec.case in SAME_SIZE else (spec.case,)
    # Members whose sizes differ are filled up to those of the largest, so that they had better not differ much.
    case += (spec.value,) if spec.case in ("feature-rate", "structure-mistakes") else ()
    kind = spec.model.partition(":")[0]
    rest = (spec.task, spec.dataset, spec.protocol, case, kind, spec.device, spec.settings.get("negatives"))
    return json.dumps([rest, model, training, off], sort_keys=True)


def execute(
    specs: Sequence[RunSpec],
    store: RunStore,
    force: bool = False,
    on_run: Callable[[RunSpec, RunResult, bool], None] | None = None,
    executor: Executor | None = None,
    together: bool | None = None,
    max_memory: int | None = None,
) -> list[RunResult]:
    """Carries out what is not in the store yet, stores each run as it ends, and answers from the store.

    Args:
        specs (Sequence[RunSpec]): The runs.
        store (RunStore): Where runs are kept; nobody but the caller writes into it.
        force (bool, optional): If set to :obj:`True`, repeats runs that are stored. (default: :obj:`False`)
        on_run (Callable, optional): Called with each run, its result and whether it came from the store.
        executor (Executor, optional): Who carries out the runs; what it leaves undone is missing from the answer.
            (default: this process)
        together (bool, optional): Whether to train populations. (default: on a GPU)
        max_memory (int, optional): The bytes that a population may take. (default: :obj:`None`)
    """
    known: dict[str, RunResult] = {}
    missing = []
    for spec in specs:
        found = None if force else store.get(spec)
        if found is None:
            missing.append(spec)
            continue
        known[spec.key] = found
        if on_run is not None:
            on_run(spec, found, True)
    if together is None:
        together = any(spec.device == "cuda" for spec in missing)
    for unit, results in (executor or LocalExecutor()).run(make_units(missing, together, max_memory)):
        for spec, result in zip(unit.specs, results, strict=True):
            store.append(spec, result)
            known[spec.key] = result
            if on_run is not None:
                on_run(spec, result, False)
    return [known[spec.key] for spec in specs if spec.key in known]


def seconds_left(deadline: float | None) -> float | None:
    """Returns how long it is until a time of :func:`time.monotonic`, if there is one."""
    return None if deadline is None else deadline - time.monotonic()


def done(unit: Unit, results: list[RunResult]) -> tuple[Unit, list[RunResult]]:
    """Returns results with those runs of a unit that they are of; the others had no time left."""
    return replace(unit, specs=unit.specs[: len(results)]), results


def run_unit(unit: Unit, graphs: GraphSource | None = None, seconds: float | None = None) -> list[RunResult]:
    """Carries out the runs of a unit; a run that diverges is a failed one, not an error.

    Args:
        unit (Unit): The runs.
        graphs (GraphSource, optional): Where graphs come from, to share them between units. (default: a new one)
        seconds (float, optional): After how long no further part of a population that is divided to fit into memory is
            begun; the first runs have results then. (default: no limit)
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    graphs = GraphSource() if graphs is None else graphs
    if not unit.together:
        return [run(spec, graphs) for spec in unit.specs]
    started, count = utc_now(), len(unit.specs)
    models: dict[str, Any] = {}
    products = {"products": "tf32"} if unit.specs[0].device == "cuda" else {}
    results = []
    with fast_products():
        # The first and the last tell whether members have features of their own. Those of one part alone are on the
        # device, so nobody but the population holds its members.
        ends = _members(unit.specs[:: max(1, count - 1)], graphs, models)
        each, device = bytes_per_member(ends), ends[0].task.x.device
        del ends
        size = even_size(count, fitting(each, device, unit.max_memory))
        for start in range(0, count, size):
            if start > 0 and deadline is not None and time.monotonic() > deadline:
                break
            part = unit.specs[start : start + size]
            outcomes = train_population(
                _members(part, graphs, models), unit.max_memory, member_bytes=each, sharers=graphs.sharers
            )
            details = products | {"population": len(part)}
            results += [_result(outcome, started, details) for outcome in outcomes]
            if device.type == "cuda" and unit.max_memory is not None:
                _give_back(device, unit.max_memory)
    return results


def _give_back(device: torch.device, max_memory: int) -> None:
    """Gives memory back that PyTorch keeps for later, once it is more than a population may take: others share it."""
    if torch.cuda.memory_reserved(device) > max_memory:
        torch.cuda.empty_cache()


def _members(specs: Sequence[RunSpec], graphs: GraphSource, models: dict[str, Any]) -> list[Member]:
    """Returns the members of a population, with one model for all that have its settings: building one takes longer
    than drawing new parameters.
    """
    members = []
    for spec, task in zip(specs, graphs.tasks(specs), strict=True):
        key = json.dumps(spec.settings["model"], sort_keys=True)
        if key not in models:
            models[key] = _build(spec, task.num_features, task.num_outputs)
        start = _drawn(models[key], spec)
        config = TrainConfig(**{**spec.settings["training"], "restore_best": False})
        members.append(Member(models[key], task, config, spec.seed, start))
    return members


def run(spec: RunSpec, graphs: GraphSource | None = None) -> RunResult:
    """Carries out one run, whatever made it; a run that diverges is a failed one, not an error.

    Args:
        spec (RunSpec): What to run.
        graphs (GraphSource, optional): Where graphs come from. (default: a new one)
    """
    started = utc_now()
    task = (graphs or GraphSource()).tasks((spec,))[0]
    model = _build(spec, task.num_features, task.num_outputs)
    _drawn(model, spec)
    outcome: TrainResult | FloatingPointError
    try:
        outcome = train(model, task, TrainConfig(**spec.settings["training"]), seed=spec.seed)
    except FloatingPointError as error:
        outcome = error
    return _result(outcome, started, {})


def _build(spec: RunSpec, in_channels: int, out_channels: int) -> Any:
    with seeded(0, spec.device), torch.device(spec.device):
        return get_model(spec.model).model(in_channels, out_channels=out_channels, **spec.settings["model"])


def _drawn(model: torch.nn.Module, spec: RunSpec) -> dict[str, Tensor]:
    """Draws the initial parameters of a run, on its device, and returns a copy of them."""
    with seeded(spec.seed, spec.device):
        model.reset_parameters()  # type: ignore[operator]
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def _result(outcome: TrainResult | FloatingPointError, started: str, details: dict[str, Any]) -> RunResult:
    if isinstance(outcome, FloatingPointError):
        return RunResult(metrics={}, status="failed", error=str(outcome), seconds=0.0, started=started)
    return RunResult(
        metrics=outcome.metrics | {f"val_{name}": value for name, value in outcome.val_metrics.items()},
        seconds=outcome.seconds,
        started=started,
        epochs=outcome.epochs,
        details={"best_epoch": outcome.best_epoch, "stopped": outcome.stopped, "curves": outcome.curves} | details,
    )
