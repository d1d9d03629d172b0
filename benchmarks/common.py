"""What the benchmarks share: results that name the machine, and the time of a call on a GPU."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bigcn.experiments.records import current_versions, describe_host, utc_now
from bigcn.experiments.store import RunStore

RESULTS = Path(__file__).resolve().parent.parent / "results"


def store(name: str, command: str, rows: list[dict[str, Any]], hosts: list[dict[str, str]] | None = None) -> Path:
    """Writes rows to the results folder with the machines (by default this one) and versions that made them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {
        "command": command,
        "measured": utc_now(),
        "hosts": hosts or [this_host()],
        "versions": current_versions(),
        "rows": rows,
    }
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def added(stored: list[dict[str, Any]], new: list[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Returns stored rows and new ones, the new one of two that agree in the keys."""
    return list({tuple(row[key] for key in keys): row for row in [*stored, *new]}.values())


def hosts_of(runs: RunStore, known: list[dict[str, str]]) -> list[dict[str, str]]:
    """Returns the machines that are known and those of the runs of a store, which may have been other processes."""
    hosts = {tuple(sorted(host.items())): host for host in known}
    hosts |= {tuple(sorted(result.host.items())): result.host for _, result in runs.rows()}
    return list(hosts.values())


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
