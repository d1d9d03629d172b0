"""A million nodes from Parquet files, through the command line: seconds and peak memory of training and predicting.

    python benchmarks/own_graph_scale.py

Writes results/own-graph-scale.json. Each command is a process of its own, and its peak memory what the system kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common import store

CLASSES = 5


def write_tables(folder: Path, nodes: int, edges: int, columns: int) -> None:
    """Writes a graph whose classes show, faintly, in its columns and in its edges; half of the labels are missing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, CLASSES, nodes)
    ids = np.char.add("n", rng.permutation(nodes).astype(str))
    centres = rng.normal(size=(CLASSES, columns))
    table: dict[str, Any] = {"id": ids}
    for column in range(columns):
        table[f"column {column}"] = (3 * rng.normal(size=nodes) + centres[kind, column]).astype(np.float32)
    names = np.array([f"class {place}" for place in range(CLASSES)], dtype=object)[kind]
    names[rng.random(nodes) < 0.5] = None
    pd.DataFrame(table | {"kind": names}).to_parquet(folder / "nodes.parquet", index=False)
    source, target = rng.integers(0, nodes, (2, edges))
    same = rng.random(edges) < 0.6
    members = [np.flatnonzero(kind == place) for place in range(CLASSES)]
    for place, group in enumerate(members):
        chosen = np.flatnonzero(same & (kind[source] == place))
        target[chosen] = rng.choice(group, len(chosen))
    pd.DataFrame({"source": ids[source], "target": ids[target]}).to_parquet(folder / "edges.parquet", index=False)


def measured(words: list[str], folder: Path, timeout: float) -> tuple[dict[str, Any], str]:
    """Runs a command and returns how long it took, the most memory it held, and what it printed."""
    start = time.perf_counter()
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "bigcn", *words], cwd=folder, stdout=out)
        deadline = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                raise TimeoutError(f"'bigcn {words[0]}' took more than {timeout:g} seconds")
            time.sleep(0.2)
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise RuntimeError(f"'bigcn {' '.join(words)}' ended with exit code {code}")
    row: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 1)}
    row |= {"cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1), "peak_gb": round(usage.ru_maxrss * 1024 / 1e9, 2)}
    return row, (folder / "out.txt").read_text()


def main() -> None:
    """Measures and stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--models", default="none", help="Models to train beside BiGCN.")
    parser.add_argument("--timeout", type=float, default=3600.0, help="The most seconds of each command.")
    parser.add_argument("--name", default="own-graph-scale", help="The name of the file with the results.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bigcn-scale-") as name:
        folder = Path(name)
        write_tables(folder, asked.nodes, asked.edges, asked.columns)
        size = {key: getattr(asked, key) for key in ("nodes", "edges", "columns", "epochs")}
        sizes = {path.name: path.stat().st_size for path in folder.glob("*.parquet")}
        files = ["nodes.parquet", "edges.parquet"]
        rows = []
        look, _ = measured(["train", *files, "--label", "kind", "--dry-run"], folder, asked.timeout)
        rows.append({"command": "train --dry-run"} | size | look | {"file_bytes": sizes})
        print(rows[-1], flush=True)
        words = ["train", *files, "--label", "kind", "--quick", "--max-epochs", str(asked.epochs), "--save", "model"]
        trained, text = measured([*words, "--models", asked.models, "--json"], folder, asked.timeout)
        report = json.loads(text)["report"]
        rows.append({"command": f"train --quick --models {asked.models}"} | size | trained | report["scores"])
        print(rows[-1], flush=True)
        predicted, _ = measured(["predict", "model", *files, "-o", "out.parquet"], folder, asked.timeout)
        labels = pd.read_parquet(folder / "out.parquet")["label"]
        assert len(labels) == asked.nodes
        rows.append({"command": "predict"} | size | predicted)
        print(rows[-1], flush=True)
    command = "python benchmarks/own_graph_scale.py"
    print(store(asked.name, command, rows))


if __name__ == "__main__":
    main()
