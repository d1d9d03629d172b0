"""How many rows travel in a hop: halos under random and under neighbourly partitions.

Run:  BIGCN_DATA=... python benchmarks/halo_sizes.py

For each graph and number of parts: the rows that all parts together receive in a hop, as a multiple of the nodes; the
largest halo of a part as a multiple of the nodes it owns; the share of edges that join different parts. Power-law
graphs are drawn without any structure, which no partition can find, and with communities.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bigcn.datasets import DATASETS, load_dataset
from bigcn.distributed.assign import DiskGraph, Method, assign
from common import store
from power_law import compressed, power_law_edges

PARTS = (2, 4, 8, 16, 64)
METHODS: tuple[Method, ...] = ("random", "neighbours")


def graphs(largest: int) -> Iterator[tuple[str, DiskGraph]]:
    """Yields the benchmark graphs, and synthetic ones of growing size."""
    for name in DATASETS:
        if name == "digits":
            continue
        data = load_dataset(name)
        edges = data.edge_index.numpy()
        yield name, compressed(edges[0], edges[1], data.num_nodes)
    for nodes in (20_000, 200_000, 2_000_000):
        for communities in (False, True):
            if nodes <= largest:
                edges = np.stack(power_law_edges(nodes, 10, communities))
                kind = "power law with communities" if communities else "power law"
                yield f"{kind}, {nodes:,} nodes", compressed(edges[0], edges[1], nodes)


def halos(graph: DiskGraph, owner: np.ndarray, parts: int) -> tuple[np.ndarray, int]:
    """Returns the nodes that each part needs from others, and the entries that join different parts."""
    counts, crossing = np.zeros(parts, dtype=np.int64), 0
    row_owner = np.repeat(owner, np.diff(graph.crow))
    column_owner = owner[graph.col]
    outside = row_owner != column_owner
    crossing = int(outside.sum())
    codes = row_owner[outside].astype(np.int64) * graph.num_nodes + graph.col[outside]
    found = np.unique(codes)
    counts += np.bincount(found // graph.num_nodes, minlength=parts)
    return counts, crossing


def measure(name: str, graph: DiskGraph) -> Iterator[dict[str, Any]]:
    """Yields a row for each number of parts and method."""
    for parts in PARTS:
        for method in METHODS:
            start = time.perf_counter()
            owner = assign(graph, parts, method)
            seconds = time.perf_counter() - start
            needed, crossing = halos(graph, owner, parts)
            sizes = np.bincount(owner, minlength=parts)
            yield {
                "graph": name,
                "nodes": graph.num_nodes,
                "directed_edges": int(graph.crow[-1]),
                "parts": parts,
                "method": method,
                "rows_received_per_node": round(float(needed.sum() / graph.num_nodes), 4),
                "largest_halo_per_own_node": round(float((needed / sizes).max()), 4),
                "share_of_edges_cut": round(crossing / int(graph.crow[-1]), 4),
                "largest_part_over_mean": round(float(sizes.max() * parts / graph.num_nodes), 4),
                "seconds_to_assign": round(seconds, 2),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=2_000_000, help="the largest synthetic graph")
    chosen = parser.parse_args()
    rows = []
    for name, graph in graphs(chosen.largest):
        for row in measure(name, graph):
            rows.append(row)
            print({key: row[key] for key in ("graph", "parts", "method", "rows_received_per_node")}, flush=True)
        store("halo-sizes", "python benchmarks/halo_sizes.py", rows)


if __name__ == "__main__":
    main()
