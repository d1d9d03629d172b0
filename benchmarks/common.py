"""What the benchmarks share: results that name the machine, and the time of a call on a GPU."""

import json
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from bigcn.experiments.records import RunResult, current_versions, describe_host, utc_now

RESULTS = Path(__file__).resolve().parent.parent / "results"


def store(name: str, command: str, rows: list[dict[str, Any]], made: dict[str, list[Any]] | None = None) -> Path:
    """Writes rows to the results folder with the machines and versions (by default those of now) that made them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    now = {"hosts": [this_host()], "versions": current_versions()}
    record = {
        "command": command,
        "measured": utc_now(),
        **(made or now),
        "rows": rows,
    }
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def added(stored: list[dict[str, Any]], new: list[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Returns stored rows and new ones, the new one of two that agree in the keys."""
    return list({tuple(row[key] for key in keys): row for row in [*stored, *new]}.values())


def made_by(results: Iterable[RunResult], known: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns the machines and versions that are known and those of some runs, each once."""
    results = list(results)
    found = {"hosts": [result.host for result in results], "versions": [result.versions for result in results]}
    return {
        name: list({tuple(sorted(one.items())): one for one in [*known.get(name, []), *new]}.values())
        for name, new in found.items()
    }


def this_host() -> dict[str, str]:
    """Returns what describes this machine."""
    return describe_host() | {"threads": str(torch.get_num_threads())}


def milliseconds(call: Callable[[], object], rounds: int = 30) -> float:
    """Returns the median time of a call on the GPU."""
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)
