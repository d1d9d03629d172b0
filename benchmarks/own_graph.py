"""Graphs from files: Cora and PubMed through the command line against the library, and wine with half of its labels.

    BIGCN_DATA=… python benchmarks/own_graph.py

Writes results/own-graph.json. The tables have string ids and shuffled rows; the command trains and predicts, the
library trains on the graph itself, with the same seed and the same split.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from bigcn import BiGCNClassifier, read_graph
from bigcn.datasets import load_dataset
from common import store

SEED = 5


def write_graph(folder: Path, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Writes a benchmark graph as two tables in random order, and returns ids and labels as they stood before."""
    rng = np.random.default_rng(SEED)
    ids = np.array([f"paper {place:06d}" for place in range(data.num_nodes)])
    truth = np.array([f"topic {y}" for y in data.y.tolist()], dtype=object)
    parts = np.full(data.num_nodes, "", dtype=object)
    for part in ("train", "val", "test"):
        parts[data[f"{part}_mask"].numpy()] = part
    names = pd.DataFrame({"id": ids, "split": parts, "topic": truth})
    words = pd.DataFrame(data.x.numpy(), columns=[f"word {i}" for i in range(data.x.size(1))])
    table = pd.concat([names, words], axis=1)
    table.iloc[rng.permutation(len(table))].to_csv(folder / "nodes.csv", index=False)
    source, target = data.edge_index.numpy()
    once = np.flatnonzero(source < target)
    edges = pd.DataFrame({"source": ids[source[once]], "target": ids[target[once]]})
    edges.iloc[rng.permutation(len(edges))].to_csv(folder / "edges.csv", index=False)
    return ids, truth


def bigcn(folder: Path, *words: str) -> str:
    """Runs the command and returns what it printed on standard output."""
    done = subprocess.run([sys.executable, "-m", "bigcn", *words], cwd=folder, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def round_trip(name: str) -> dict[str, Any]:
    """Trains and predicts on files, and with the library on the graph that these files give and on the graph itself."""
    data = load_dataset(name)
    with tempfile.TemporaryDirectory(prefix="bigcn-own-") as place:
        folder = Path(place)
        ids, truth = write_graph(folder, data)
        files = ("nodes.csv", "edges.csv")
        words = ("--label", "topic", "--quick", "--no-standardize", "--seed", str(SEED), "--device", "cpu")
        report = json.loads(bigcn(folder, "train", *files, *words, "--save", "model", "--json"))
        bigcn(folder, "predict", "model", *files, "-o", "out.csv", "--device", "cpu")
        out = pd.read_csv(folder / "out.csv").set_index("id").loc[ids]["label"].to_numpy()
        graph = read_graph(folder / "nodes.csv", folder / "edges.csv", label="topic", standardize=False)
    test = data.test_mask.numpy()
    from_files = BiGCNClassifier(search=False, seed=SEED).fit(graph)
    from_graph = BiGCNClassifier(search=False, seed=SEED).fit(data)
    rows = [row for row in report["rows"] if row["metric"] == "accuracy" and row["model"] != "bigcn"]
    return {
        "graph": name,
        "command": float((out == truth)[test].mean()),
        "reported": report["report"]["scores"]["accuracy"],
        "library on the same files": from_files.report_["scores"]["accuracy"] if from_files.report_ else None,
        "library on the graph itself": from_graph.report_["scores"]["accuracy"] if from_graph.report_ else None,
        "equal labels": float((np.array([f"topic {y}" for y in from_graph.predict(data)]) == out).mean()),
        "beside": {row["model"]: row["mean"] for row in rows},
    }


def wine(seed: int) -> dict[str, Any]:
    """Hides half of the labels of the wines and returns how many of them come back."""
    table = load_wine(as_frame=True)
    ids = np.array([f"bottle {place}" for place in range(len(table.data))])
    kinds = np.array(["barolo", "grignolino", "barbera"], dtype=object)[table.target]
    hidden = np.random.default_rng(seed).permutation(len(ids))[: len(ids) // 2]
    label = kinds.copy()
    label[hidden] = None
    near = kneighbors_graph(StandardScaler().fit_transform(table.data), 8).tocoo()
    with tempfile.TemporaryDirectory(prefix="bigcn-own-") as place:
        folder = Path(place)
        named = pd.DataFrame({"id": ids, "kind": label})
        pd.concat([named, table.data], axis=1).to_csv(folder / "wine.csv", index=False)
        pd.DataFrame({"source": ids[near.row], "target": ids[near.col]}).to_csv(folder / "near.csv", index=False)
        words = ("--label", "kind", "--quick", "--models", "none", "--seed", str(seed), "--device", "cpu")
        bigcn(folder, "train", "wine.csv", "near.csv", *words, "--save", "model", "--json")
        bigcn(folder, "predict", "model", "wine.csv", "near.csv", "-o", "out.csv")
        out = pd.read_csv(folder / "out.csv").set_index("id").loc[ids[hidden]]["label"].to_numpy()
    return {"graph": "wine", "seed": seed, "hidden": len(hidden), "right": float((out == kinds[hidden]).mean())}


def main() -> None:
    """Measures and stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", default="cora,pubmed")
    parser.add_argument("--wines", type=int, default=5, help="How many ways to hide half of the labels.")
    asked = parser.parse_args()
    rows = []
    for name in asked.graphs.split(","):
        rows.append(round_trip(name))
        print(rows[-1], flush=True)
    for seed in range(asked.wines):
        rows.append(wine(seed))
        print(rows[-1], flush=True)
    print(store("own-graph", "python benchmarks/own_graph.py", rows))


if __name__ == "__main__":
    main()
