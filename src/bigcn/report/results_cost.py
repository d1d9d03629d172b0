"""What the reproduction took: hours by the clock and by the process, hardware, versions, dates."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from bigcn.experiments.closeness import Mark
from bigcn.experiments.records import RunResult
from bigcn.experiments.reproduction import Reproduction
from bigcn.report import results_tables as tables
from bigcn.report.results_opening import GUIDE
from bigcn.report.words import duration

_INTRO = """\
Time of training and evaluation, without reading graphs. By the clock is how long a GPU was at work, however many
processes shared it. By process, each counts all of its time, so that the sum is longer than the clock said; the time of
models that train together is divided among them. A run that several experiments share counts for each, and experiments
that ran at the same time each count the clock. Where a part of a store was run again later, in another store, the time
of the first counts in proportion to its runs that still stand. Several processes side by side (`--executor local:14`,
see {guide}) take much less of the clock than one.
"""
#: What a GPU may take for everything.
GPU_SECONDS = 3600.0
#: What is kept of an experiment, and of all: how many runs, and seconds.
_COUNTS = ("runs", "gpu_clock", "gpu", "cpu")


def cost_section(work: Reproduction, stores: list[dict[str, Any]], guide: str = GUIDE) -> str:
    """Returns the time of every experiment and of all together, and what they ran on.

    Args:
        work (Reproduction): The experiments.
        stores (list): What :func:`costs` gives.
        guide (str, optional): What tells more, a name or a link. (default: a link to a page beside it)
    """
    rows: list[list[str]] = []
    for experiment in work.experiments:
        found = _sum(_standing(store, experiment.name) for store in stores)
        if found["runs"]:
            device = "cuda" if found["gpu"] else work.setting.device
            command = f"`bigcn reproduce {experiment.name} --device {device}`"
            rows.append([f"`{experiment.name}`", *_shown(found), command])
    rows.append(["all, each run of a store once", *_shown(_sum(map(_standing, stores))), "`bigcn reproduce all`"])
    heads = ["experiment", "runs", "GPU, by the clock", "GPU, by process", "CPU, by process", "command"]
    return "\n".join(["## What it took\n", _INTRO.format(guide=guide), tables.table(heads, rows), _hardware(stores)])


def costs(work: Reproduction) -> list[dict[str, Any]]:
    """Returns what the runs of each store took: of those that the record knows, and of this one.

    Args:
        work (Reproduction): The experiments.
    """
    used = work.used()
    if not used:
        return work.record.costs
    last = max(result.started for result in used.values())
    by_experiment = {e.name: work.about([e]).used().values() for e in work.experiments}
    here = {
        "first": min(work.starts()),
        "last": last,
        "hosts": sorted({_listed(result.host) for result in used.values()}),
        "versions": sorted({_listed(result.versions) for result in used.values()}),
        "experiments": {name: _count(results) for name, results in by_experiment.items() if results},
        "all": _count(used.values()),
        "dated": True,
    }
    # A store is known by its first run: it was smaller, or not merged with another, when it was written down before.
    older = [store for store in work.record.costs if store["first"] not in work.starts()]
    days = {e.name: work.about([e]).recorded_runs() for e in work.experiments if older}
    every = work.recorded_runs() if older else {}
    counted = [
        {
            **store,
            "standing": {
                "all": _runs_of(store, older, every),
                "experiments": {name: _runs_of(store, older, days.get(name, {})) for name in store["experiments"]},
            },
        }
        for store in older
    ]
    return [*(store for store in counted if store["standing"]["all"]), here]


def _runs_of(store: dict[str, Any], stores: list[dict[str, Any]], runs: Mapping[str, int]) -> int:
    """Returns how many runs, counted by day, are those of a store. What may be of several is divided among them, by
    how many runs each of them had.
    """
    found = 0.0
    for day, count in runs.items():
        had = [other["all"]["runs"] for other in stores if _covers(other, day)]
        if _covers(store, day) and sum(had):
            found += count * store["all"]["runs"] / sum(had)
    return round(found)


def _covers(store: dict[str, Any], day: str) -> bool:
    """Tells whether a store may have a run of a day. A run without one is of a store that was written down before days
    were kept.
    """
    return store["first"][:10] <= day <= store["last"][:10] if day else not store.get("dated")


def _standing(store: dict[str, Any], experiment: str | None = None) -> dict[str, float]:
    """Returns what the runs of a store took that are still behind what is reported, of one experiment or of all."""
    counts = store["all"] if experiment is None else store["experiments"].get(experiment, {})
    if "standing" not in store or not counts:
        return counts
    standing = store["standing"]["all"] if experiment is None else store["standing"]["experiments"].get(experiment, 0)
    share = min(1.0, standing / counts["runs"])
    return {name: round(share * count) if name == "runs" else share * count for name, count in counts.items()}


def time_mark(stores: list[dict[str, Any]]) -> Mark:
    """Returns the bar for the time of a GPU, and how much was taken.

    Args:
        stores (list): What :func:`costs` gives.
    """
    taken = _sum(map(_standing, stores))["gpu_clock"]
    what, bar = "all experiments, GPU time by the clock, processes side by side", f"at most {duration(GPU_SECONDS)}"
    if not taken:
        return Mark(what, bar, "", "not run")
    return Mark(what, bar, duration(taken), "met" if taken <= GPU_SECONDS else "missed")


def _count(used: Collection[RunResult]) -> dict[str, float]:
    on_gpu = [result for result in used if "gpu" in result.host]
    on_cpu = [result for result in used if "gpu" not in result.host]
    seconds = (clock_seconds(on_gpu), *(sum(result.seconds for result in part) for part in (on_gpu, on_cpu)))
    return {"runs": len(used), **dict(zip(_COUNTS[1:], (round(value, 1) for value in seconds), strict=True))}


def _sum(found: Iterable[dict[str, float]]) -> dict[str, float]:
    counts = list(found)
    return {name: sum(count.get(name, 0) for count in counts) for name in _COUNTS}


def _shown(count: dict[str, float]) -> list[str]:
    return [f"{count['runs']:,}", *(duration(count[name]) if count[name] else "–" for name in _COUNTS[1:])]


def clock_seconds(results: Iterable[RunResult]) -> float:
    """Returns for how long at least one of some runs was under way.

    Members of a population began at the same moment and divide its time among them, so that together they last for the
    sum of their times.

    Args:
        results (Iterable[RunResult]): The runs.
    """
    lengths: dict[str, float] = defaultdict(float)
    for result in results:
        lengths[result.started] += result.seconds
    total, until = 0.0, float("-inf")
    for start, length in sorted((datetime.fromisoformat(start).timestamp(), n) for start, n in lengths.items()):
        end = start + length
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _listed(names: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(names.items()))


def _hardware(stores: list[dict[str, Any]]) -> str:
    lines = []
    for title, name in (("Ran on", "hosts"), ("With", "versions")):
        lines += [
            f"- {title}: {tables.escaped(text)}.\n" for text in sorted({t for store in stores for t in store[name]})
        ]
    days = sorted(store[end][:10] for store in stores for end in ("first", "last"))
    if days:
        lines.append(f"- When: {days[0] if days[0] == days[-1] else f'{days[0]} to {days[-1]}'}.\n")
    return "".join(lines)
