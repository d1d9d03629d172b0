import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bigcn.__main__ import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def bigcn(monkeypatch, capsys, tmp_path) -> Callable[..., Outcome]:
    """Runs the command in an empty folder, as a shell would."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["bigcn", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def kill_at(tmp_path) -> Callable[..., None]:
    """Runs a command in a process of its own and kills it once it says that it is so far."""

    def run(line: str, words: list[str], environment: dict[str, str]) -> None:
        process = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for said in process.stderr:
            if said.startswith(line):
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        process.stderr.close()
        assert process.returncode == -signal.SIGKILL

    return run


def write_forest(folder: Path, name: str = "", nodes: int = 60, seed: int = 0, labelled: float = 0.8) -> None:
    """Writes the tables of a small graph, three kinds of trees."""
    rng = np.random.default_rng(seed)
    kind = np.arange(nodes) % 3
    ids = np.array([f"tree-{place:03d}" for place in range(nodes)])
    labels = np.array(["beech", "fir", "oak"], dtype=object)[kind]
    labels[rng.random(nodes) > labelled] = None
    columns = {f"trait {i}": rng.normal(size=nodes) + (kind == i % 3) for i in range(7)}
    soil = np.array(["clay", "sand", "loam"])[kind]
    order = rng.permutation(nodes)
    table = pd.DataFrame({"id": ids, **columns, "soil": soil, "kind": labels}).iloc[order]
    source = rng.integers(0, nodes, 3 * nodes)
    target = (source + 3 * rng.integers(1, nodes // 3, 3 * nodes)) % nodes
    table.to_csv(folder / f"{name}nodes.csv", index=False)
    pd.DataFrame({"source": ids[source], "target": ids[target]}).to_csv(folder / f"{name}edges.csv", index=False)


@pytest.fixture
def forest(bigcn) -> Callable[..., tuple[str, str]]:
    """Writes the tables of a small graph into the folder where commands run."""

    def write(name: str = "", **options: float) -> tuple[str, str]:
        write_forest(Path(), name, **options)  # type: ignore[arg-type]
        return f"{name}nodes.csv", f"{name}edges.csv"

    return write


@pytest.fixture(scope="session")
def trained_forest(tmp_path_factory) -> Path:
    """A folder with the tables of a small graph and two models trained on it."""
    from bigcn import read_graph
    from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor

    folder = tmp_path_factory.mktemp("forest")
    write_forest(folder)
    graph = read_graph(folder / "nodes.csv", folder / "edges.csv", label="kind")
    BiGCNClassifier(search=False, max_epochs=10).fit(graph).save(folder / "model")
    BiGCNLinkPredictor(search=False, max_epochs=2).fit(graph).save(folder / "links")
    return folder


@pytest.fixture
def trained(bigcn, trained_forest, tmp_path) -> Callable[..., Outcome]:
    """Runs the command in a folder with nodes.csv, edges.csv and the models model and links."""
    shutil.copytree(trained_forest, tmp_path, dirs_exist_ok=True)
    return bigcn
