"""`bigcn train` and `bigcn predict` on shards, alone and under `torchrun`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bigcn.experiments.store import RunStore


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two groups of nodes that features and edges tell apart."""
    folder = tmp_path_factory.mktemp("tables")
    generator = np.random.default_rng(0)
    kind = np.repeat([0, 1], 30)
    nodes = pd.DataFrame(generator.normal(size=(60, 4)) + kind[:, None], columns=list("abcd"))
    nodes.insert(0, "id", [f"n{i}" for i in range(60)])
    nodes["kind"] = np.where(kind == 0, "u", "v")
    pairs = generator.integers(30, size=(150, 2)) + 30 * generator.integers(2, size=(150, 1))
    edges = pd.DataFrame({"source": [f"n{i}" for i in pairs[:, 0]], "target": [f"n{i}" for i in pairs[:, 1]]})
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)
    for parts in (1, 2):
        out = command(
            folder, "partition", "nodes.csv", "edges.csv", "--parts", parts, "-o", f"s{parts}", "--label", "kind"
        )
        assert out.returncode == 0, out.stderr
    return folder


def command(folder: Path, *arguments: object, processes: int = 0) -> subprocess.CompletedProcess[str]:
    start = [sys.executable]
    if processes:
        start += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*start, "-m", "bigcn", *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_two_processes_train_and_predict_what_one_does(tables):
    documents = []
    for processes in (1, 2):
        store = tables / f"store{processes}.sqlite"
        trained = command(
            tables, "train", f"s{processes}", "--save", f"m{processes}", "--max-epochs", 8, "--store", store, "--json",
            processes=0 if processes == 1 else 2,
        )  # fmt: skip
        assert trained.returncode == 0, trained.stderr
        documents.append(json.loads(trained.stdout))
        with RunStore(store) as runs:
            ((spec, result),) = list(runs.rows())
        assert spec.dataset == f"own:s{processes}"
        assert result.metrics["accuracy"] == documents[-1]["test"]["accuracy"]
        predicted = command(
            tables, "predict", f"m{processes}", f"s{processes}", "-o", f"p{processes}.csv",
            processes=0 if processes == 1 else 2,
        )  # fmt: skip
        assert predicted.returncode == 0, predicted.stderr
    first, second = documents
    assert first["best_epoch"] == second["best_epoch"]
    assert first["test"] == pytest.approx(second["test"])
    one, other = (pd.read_csv(tables / f"p{processes}.csv") for processes in (1, 2))
    assert list(one.columns) == ["id", "label", "probability"]
    assert list(one["id"]) == list(other["id"])
    assert list(one["label"]) == list(other["label"])
    assert np.allclose(one["probability"], other["probability"], atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "s1", "--label", "kind"), "'--label' is for tables"),
        (("train", "s1", "edges.csv"), "'EDGES' is for tables"),
        (("train", "s1", "--missing", "fill"), "'--missing' is for tables"),
        (("train", "s1", "--models", "none"), "'--models' is for tables"),
        (("train", "s1", "-o", "page"), "'--output' is for tables"),
        (("train", "s1", "--store", "nodes.csv/runs.sqlite"), "nodes.csv"),
        (("predict", "m", "s1", "-o", "p.csv", "--unknown-ids", "skip"), "'--unknown-ids' is for tables"),
        (("predict", "m", "s1", "-o", "p.csv", "--json"), "'--json' is for tables"),
        (("train", "s2"), "made for 2 processes"),
        (("predict", "m", "s1"), "'--output'"),
    ],
)
def test_bad_input_is_one_sentence(tables, arguments, words):
    out = command(tables, *arguments)
    assert out.returncode == 2
    assert words in out.stderr
    assert out.stderr.count("\n") == 1
