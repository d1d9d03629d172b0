"""What the benchmarks share: interleaved timing, and results that name the machine."""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bigcn.experiments.records import current_versions, describe_host, utc_now

RESULTS = Path(__file__).resolve().parent.parent / "results"


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Times contenders in turns, so that whatever else the machine does falls on all of them alike."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            times[name].append(time.perf_counter() - start)
    return times


def ratio(times: dict[str, list[float]], contender: str, against: str) -> tuple[float, tuple[float, float]]:
    """Returns how many times faster a contender is, by medians, and the quartiles of the paired ratios."""
    paired = sorted(b / a for a, b in zip(times[contender], times[against], strict=True))
    quarter = len(paired) // 4
    median = statistics.median(times[against]) / statistics.median(times[contender])
    return median, (paired[quarter], paired[-1 - quarter])


def store(name: str, command: str, rows: list[dict[str, Any]], hosts: list[dict[str, str]] | None = None) -> Path:
    """Writes rows to the results folder with the machines (by default this one) and versions that made them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {
        "command": command,
        "measured": utc_now(),
        "hosts": hosts or [describe_host() | {"threads": str(torch.get_num_threads())}],
        "versions": current_versions(),
        "rows": rows,
    }
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path
