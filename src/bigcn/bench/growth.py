"""How time and memory of a training step grow with the number of nodes."""

import json
import math
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCN

from bigcn.bench.timing import Ratio, compare_times, interleaved, row
from bigcn.memory import keep_freed_memory
from bigcn.nn import BiGCN

FEATURES, HIDDEN, CLASSES, DEGREE = 100, 16, 10, 20
#: Steps on smaller graphs are mostly calls, and fit into caches: powers of n are fitted from here on.
FIT_FROM = 30_000


def growth(sizes: tuple[int, ...], rounds: int, keep_memory: bool = False) -> Iterator[dict[str, Any]]:
    """Measures synthetic graphs, each in a process of its own so that its memory is its own, and fits powers of n.

    The fit leaves out graphs of fewer than :data:`FIT_FROM` nodes if there are at least two others.

    Args:
        sizes (tuple[int, ...]): The numbers of nodes.
        rounds (int): How often each step is timed.
        keep_memory (bool, optional): Whether the processes keep the memory that they free. (default: :obj:`False`)
    """
    measured = []
    for size in sizes:
        words = [sys.executable, "-c", f"from bigcn.bench.growth import main; main({size}, {rounds}, {keep_memory})"]
        outcome = subprocess.run(words, capture_output=True, text=True, check=False)
        if outcome.returncode:
            raise ValueError(f"the step on {size:,} nodes failed: {outcome.stderr.strip().splitlines()[-1]}")
        found = json.loads(outcome.stdout)
        measured.append(found)
        ratio = Ratio(*found["ratio"])
        yield row("growth", f"{size:,} nodes", "bigcn:taylor+none", "GCN on edge_index", ratio) | {
            "peak_gigabytes": found["bytes"] / 1e9
        }
    large = [found for found in measured if found["nodes"] >= FIT_FROM]
    fitted = large if len(large) > 1 else measured
    if len(fitted) > 1:
        for what in ("seconds", "bytes"):
            exponent = _exponent([(found["nodes"], found[what]) for found in fitted])
            yield {
                "bench": f"growth of {what}",
                "graph": f"{fitted[0]['nodes']:,} to {fitted[-1]['nodes']:,} nodes",
                "contender": "bigcn:taylor+none",
                "against": "power of n",
                "ratio": exponent,
                "spread": [exponent, exponent],
            }


def measure(size: int, rounds: int) -> dict[str, Any]:
    """Times a step on a random graph against PyG's GCN with as many propagations, and reads off the peak memory."""
    generator = torch.Generator().manual_seed(0)
    before = _peak_bytes()
    x = torch.randn(size, FEATURES, generator=generator)
    pairs = torch.randint(size, (2, size * DEGREE // 2), generator=generator)
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    y = torch.randint(CLASSES, (size,), generator=generator)
    model = BiGCN(
        FEATURES, HIDDEN, 2, CLASSES, dropout=0.5, cached=True, check_low_pass=False,
        node_filter="taylor", node_strength=0.4, feature_graph="none",
    )  # fmt: skip
    step = _step(model, x, edge_index, y)
    step()
    step()
    peak = _peak_bytes() - before
    # Two layers of two rounds are four propagations.
    peer = _step(GCN(FEATURES, HIDDEN, 4, CLASSES, dropout=0.5, cached=True), x, edge_index, y)
    times = interleaved({"bigcn": step, "peer": peer}, rounds)
    return {
        "nodes": size,
        "bytes": peak,
        "seconds": statistics.median(times["bigcn"]),
        "ratio": list(compare_times(times, "bigcn", "peer")),
    }


def _step(model: torch.nn.Module, x: Tensor, edge_index: Tensor, y: Tensor) -> Any:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index), y).backward()
        optimizer.step()

    return step


def _peak_bytes() -> int:
    """Returns the most memory that this process has held."""
    # On Linux the usage of a process begins with that of the one that started it; its status is its own.
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    # Linux counts in kilobytes, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _exponent(points: list[tuple[float, float]]) -> float:
    """Returns the slope of the line through the logarithms."""
    xs, ys = ([math.log(max(point[i], 1e-9)) for point in points] for i in (0, 1))
    return statistics.linear_regression(xs, ys).slope


def main(size: int, rounds: int, keep_memory: bool) -> None:
    """Prints what :func:`measure` finds, for the process that asked."""
    if keep_memory:
        keep_freed_memory()
    print(json.dumps(measure(size, rounds)))
