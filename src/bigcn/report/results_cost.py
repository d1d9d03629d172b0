"""What the reproduction took: hours by the clock and by the process, hardware, versions, dates."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from bigcn.experiments.findings import Findings
from bigcn.experiments.records import RunResult
from bigcn.report import results_tables as tables
from bigcn.report.words import duration

_INTRO = """\
Time of training and evaluation, without reading graphs. By the clock is how long a GPU was at work, however many
processes shared it. By process, each counts all of its time, so that the sum is longer than the clock said; the time of
models that train together is divided among them. A run that several experiments share counts for each, and experiments
that ran at the same time each count the clock.
"""


def cost_section(findings: Findings) -> str:
    """Returns the time of every experiment and of all together, and what they ran on.

    Args:
        findings (Findings): What was measured.
    """
    work = findings.work
    rows: list[list[str]] = []
    everything: dict[str, RunResult] = {}
    for experiment in work.experiments:
        used = work.about([experiment]).used()
        everything |= used
        if used:
            command = f"`bigcn reproduce {experiment.name} --device {work.setting.device}`"
            rows.append([f"`{experiment.name}`", f"{len(used):,}", *_times(used.values()), command])
    rows.append(["all, each run once", f"{len(everything):,}", *_times(everything.values()), "`bigcn reproduce all`"])
    heads = ["experiment", "runs", "GPU, by the clock", "GPU, by process", "CPU, by process", "command"]
    return "\n".join(["## What it took\n", _INTRO, tables.table(heads, rows), _hardware(everything.values())])


def _times(used: Collection[RunResult]) -> list[str]:
    on_gpu = [result for result in used if "gpu" in result.host]
    on_cpu = [result for result in used if "gpu" not in result.host]
    seconds = [clock_seconds(on_gpu), *(sum(result.seconds for result in part) for part in (on_gpu, on_cpu))]
    return [duration(value) if value else "–" for value in seconds]


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


def _hardware(results: Collection[RunResult]) -> str:
    hosts = sorted({", ".join(f"{name} {value}" for name, value in sorted(r.host.items())) for r in results})
    versions = sorted({", ".join(f"{name} {value}" for name, value in sorted(r.versions.items())) for r in results})
    started = sorted(result.started[:10] for result in results)
    if not started:
        return ""
    when = started[0] if started[0] == started[-1] else f"{started[0]} to {started[-1]}"
    lines = [*(f"- Ran on: {tables.escaped(host)}.\n" for host in hosts)]
    lines += [f"- With: {tables.escaped(version)}.\n" for version in versions]
    return "".join([*lines, f"- When: {when}.\n"])
