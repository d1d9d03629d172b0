"""Peak memory of each process when one graph is trained on by one, two and three of them.

Run:  python benchmarks/distributed_memory.py --folder SOMEWHERE_WITH_5_GB

The graph has 2,000,000 nodes, 20,000,000 directed edges and 64 features: a power law with communities, as tables on
disk. It is partitioned by the streaming partitioner, whose own peak is measured too, and trained on for two epochs and
an evaluation by a network of two layers with 16 hidden features. Peaks are those that the kernel kept (VmHWM), pages of
memory-mapped shards included; what Python and its libraries take before anything is read is shown beside them. Bytes
sent for hops are compared with what the lists of rows predict.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FEATURES, CLASSES, DEGREE, EPOCHS = 64, 10, 10, 2


def peak(field: str = "VmHWM") -> int:
    """Returns the most memory that this process has held, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


class Watch(threading.Thread):
    """Looks every so often at the memory that a process has allocated, pages of mapped files not among it."""

    def __enter__(self) -> "Watch":
        self.before = self.most = peak("RssAnon")
        self.over = threading.Event()
        self.start()
        return self

    def run(self) -> None:
        while not self.over.wait(0.02):
            self.most = max(self.most, peak("RssAnon"))

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.join()


def make_tables(folder: Path, nodes: int) -> None:
    """Writes the tables, a piece at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from power_law import power_law_edges

    source, target = power_law_edges(nodes, 1.5 * DEGREE, communities=True)
    proper = source != target
    low, high = np.minimum(source, target)[proper], np.maximum(source, target)[proper]
    edges = np.random.default_rng(2).permutation(np.unique(low * nodes + high))[: nodes * DEGREE // 2]
    source, target = edges // nodes, edges % nodes
    pq.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
    generator = np.random.default_rng(1)
    names = [f"f{i}" for i in range(FEATURES)]
    types = [("id", pa.int64()), *((name, pa.float32()) for name in names), ("label", pa.int8())]
    with pq.ParquetWriter(folder / "nodes.parquet", pa.schema(types)) as writer:
        for start in range(0, nodes, 100_000):
            count = min(100_000, nodes - start)
            label = generator.integers(CLASSES, size=count).astype(np.int8)
            x = generator.standard_normal((count, FEATURES), dtype=np.float32)
            x[np.arange(count), label] += 2
            columns = [np.arange(start, start + count), *x.T, label]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=pa.schema(types)))


def make_shards(folder: Path, parts: int, method: Any) -> dict[str, Any]:
    """Partitions the tables; runs in a process of its own."""
    import pyarrow  # noqa: F401

    from bigcn.distributed import partition_tables

    before, start = peak("VmRSS"), time.perf_counter()
    with Watch() as watch:
        manifest = partition_tables(
            folder / "nodes.parquet", folder / "edges.parquet", folder / "shards", parts, label="label", method=method
        )
    return {
        "partition_allocated_mb": round((watch.most - watch.before) / 1e6),
        "partition_seconds": round(time.perf_counter() - start, 1),
        "partition_peak_mb": round(peak() / 1e6),
        "partition_libraries_mb": round(before / 1e6),
        "directed_edges": 2 * manifest.edges,
        "sizes": manifest.sizes,
        "halos": manifest.halos,
        "shards_mb": round(sum(file["bytes"] for file in manifest.files.values()) / 1e6),
    }


def run_process(folder: Path) -> dict[str, Any]:
    """Trains; one process of several."""
    import torch

    from bigcn.distributed import hop_bytes, joined, train_shards
    from bigcn.training import TrainConfig

    torch.set_num_threads(1)
    with joined() as processes:
        before, start = peak("VmRSS"), time.perf_counter()
        config = TrainConfig(max_epochs=EPOCHS, evaluate_every=EPOCHS)
        run = train_shards(folder / "shards", processes, config=config)
        seconds = time.perf_counter() - start
        graph, x = run.task.graph, run.task.x
        predicted = EPOCHS * hop_bytes(run.model, graph, x, backward=True) + hop_bytes(run.model, graph, x)
        predicted += graph.exchange.rows_sent * 4  # degrees, once
        return {
            "peak_mb": round(peak() / 1e6),
            "libraries_mb": round(before / 1e6),
            "seconds": round(seconds, 1),
            "hop_bytes": processes.traffic["hops"],
            "predicted_hop_bytes": predicted,
            "loss": run.result.score,
        }


def in_process(*words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts this file again with other words."""
    command = [sys.executable, __file__, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | (environment or {}))


def answer(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Waits for a process and returns what it found."""
    said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a process ended with {process.returncode}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def measure(folder: Path, size: int, method: str) -> dict[str, Any]:
    """Partitions and trains with so many processes."""
    shutil.rmtree(folder / "shards", ignore_errors=True)
    row = {"processes": size, "method": method} | answer(
        in_process("--folder", str(folder), "--partition", str(size), "--method", method)
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    workers = [
        in_process("--folder", str(folder), "--process", environment=shared | {"RANK": str(rank)})
        for rank in range(size)
    ]
    found = [answer(worker) for worker in workers]
    assert all(part["hop_bytes"] == part["predicted_hop_bytes"] for part in found)
    return row | {
        "peak_mb": max(part["peak_mb"] for part in found),
        "libraries_mb": max(part["libraries_mb"] for part in found),
        "peak_without_libraries_mb": max(part["peak_mb"] - part["libraries_mb"] for part in found),
        "seconds": max(part["seconds"] for part in found),
        "hop_megabytes_sent": [round(part["hop_bytes"] / 1e6, 1) for part in found],
        "hop_bytes_as_predicted": True,
        "validation_score": found[0]["loss"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="a folder with room for tables and shards")
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--partition", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--method", help=argparse.SUPPRESS)
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.partition:
        print(json.dumps(make_shards(chosen.folder, chosen.partition, chosen.method)))
        return
    if chosen.process:
        print(json.dumps(run_process(chosen.folder)))
        return
    from common import store

    chosen.folder.mkdir(parents=True, exist_ok=True)
    make_tables(chosen.folder, chosen.nodes)
    rows: list[dict[str, Any]] = []
    for size, method in ((1, "contiguous"), (2, "neighbours"), (3, "neighbours"), (3, "random")):
        row = {"nodes": chosen.nodes, "features": FEATURES} | measure(chosen.folder, size, method)
        first = (rows or [row])[0]
        row["peak_over_one_process"] = round(row["peak_mb"] / first["peak_mb"], 3)
        row["peak_without_libraries_over_one_process"] = round(
            row["peak_without_libraries_mb"] / first["peak_without_libraries_mb"], 3
        )
        rows.append(row)
        print(json.dumps(row), flush=True)
    if chosen.nodes == 2_000_000:
        print(store("distributed-memory", "python benchmarks/distributed_memory.py", rows))


if __name__ == "__main__":
    main()
