"""What the largest public citation graph would take: arithmetic from measured halos and bandwidths. Nothing is run.

Run:  python benchmarks/scale_arithmetic.py

It reads results/halo-sizes.json (rows received in a hop, measured) and results/population-floor.json (the memory
bandwidth of an H200, measured by a copy). The bandwidths between GPUs are data-sheet numbers, since one card has nobody
to talk to.
"""

import json
from dataclasses import dataclass

from bigcn.filters import resolvent_coefficients
from common import RESULTS, store

NODES, DIRECTED, FEATURES, CLASSES, HIDDEN = 111_000_000, 2 * 1_600_000_000, 128, 172, 64
PARTS = (8, 16, 64)
#: Bytes per second and GPU: eight GPUs on one switch, and one 400 Gb/s port for each beyond.
SWITCH, PORT = 450e9, 50e9
FLOAT, INDEX = 4, 4


@dataclass(frozen=True)
class Filter:
    """A filter by its name and the hops it takes in a layer."""

    name: str
    hops: int


def memory_bandwidth() -> float:
    """Returns the bytes per second that a copy moved on the measured GPU."""
    row = json.loads((RESULTS / "population-floor.json").read_text())["rows"][0]
    width = {"cora": 1433, "citeseer": 3703}[row["graph"]]
    return 12 * row["members"] * width**2 * FLOAT / (row["floor_ms"] / 1000)


def halo(parts: int, method: str) -> tuple[float, float]:
    """Returns the least and the most rows received per node and hop among the measured graphs."""
    rows = json.loads((RESULTS / "halo-sizes.json").read_text())["rows"]
    found = [row["rows_received_per_node"] for row in rows if (row["parts"], row["method"]) == (parts, method)]
    return min(found), max(found)


def gigabytes_of_memory(parts: int, received: float) -> float:
    """Returns what one GPU holds: features, graph, halo, and the blocks of both layers with their gradients."""
    own = NODES / parts
    features = own * FEATURES * FLOAT
    graph = DIRECTED / parts * (INDEX + FLOAT) + own * 8
    blocks = own * FLOAT * (6 * HIDDEN + 3 * CLASSES)
    return (features + graph + blocks + received * own * HIDDEN * FLOAT) / 1e9


def seconds(parts: int, received: float, hops: int, bandwidth: float) -> tuple[float, float]:
    """Returns the seconds of an epoch (forward, backward, evaluation; two layers) in memory and between GPUs."""
    own = NODES / parts
    passes = 3 * 2 * hops
    gathered = DIRECTED / parts * (INDEX + FLOAT + HIDDEN * FLOAT) + 3 * own * HIDDEN * FLOAT
    dense = 3 * own * FLOAT * (FEATURES + 2 * HIDDEN + 2 * CLASSES)
    network = SWITCH if parts <= 8 else PORT
    return (passes * gathered + dense) / bandwidth, passes * received * own * HIDDEN * FLOAT / network


def main() -> None:
    bandwidth = memory_bandwidth()
    exact = resolvent_coefficients(5.0, 2, 1e-5).size(0) - 1
    rows = []
    for parts in PARTS:
        for method in ("random", "neighbours"):
            for bound, received in zip(("least", "most"), halo(parts, method), strict=True):
                for filter in (Filter("taylor, k = 2", 2), Filter("exact, strength 5", exact)):
                    in_memory, between = seconds(parts, received, filter.hops, bandwidth)
                    rows.append(
                        {
                            "gpus": parts,
                            "partition": method,
                            "halo": bound,
                            "rows_received_per_node": received,
                            "filter": filter.name,
                            "hops": filter.hops,
                            "memory_gb": gigabytes_of_memory(parts, received),
                            "gb_per_hop": received * NODES / parts * HIDDEN * FLOAT / 1e9,
                            "seconds_memory": in_memory,
                            "seconds_network": between,
                        }
                    )
    print(f"memory bandwidth of the measured GPU: {bandwidth / 1e12:.2f} TB/s; an exact filter takes {exact} hops")
    print("| GPUs | partition | rows received per node | memory, GB | GB per hop | epoch Taylor, s | epoch exact, s |")
    print("|---|---|---|---|---|---|---|")
    for parts in PARTS:
        for method in ("random", "neighbours"):
            for bound in ("least", "most"):
                taylor, full = (
                    row for row in rows if (row["gpus"], row["partition"], row["halo"]) == (parts, method, bound)
                )
                cells = " | ".join(f"{r['seconds_memory']:.1f} + {r['seconds_network']:.1f}" for r in (taylor, full))
                shown = (
                    f"{taylor['rows_received_per_node']:.2f} | {taylor['memory_gb']:.0f} | {taylor['gb_per_hop']:.2f}"
                )
                print(f"| {parts} | {method}, {bound} | {shown} | {cells} |")
    print(f"stored in results/{store('scale-arithmetic', 'python benchmarks/scale_arithmetic.py', rows).name}")


if __name__ == "__main__":
    main()
