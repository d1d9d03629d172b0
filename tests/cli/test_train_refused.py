"""What `bigcn train` refuses, and what it leaves as it was then."""

import errno
import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from bigcn.cli.saving import check_same
from bigcn.estimators import BiGCNClassifier

QUICK = ("--label", "kind", "--device", "cpu", "--quick", "--max-epochs", "8")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def one_class(nodes: pd.DataFrame) -> None:
    nodes["kind"] = "oak"


def no_labels(nodes: pd.DataFrame) -> None:
    nodes["kind"] = None


def a_lonely_class(nodes: pd.DataFrame) -> None:
    nodes.loc[nodes.index[0], "kind"] = "yew"


def full_disk(monkeypatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (one_class, "all labels of nodes are 'oak', and a classifier needs two classes at least$"),
        (no_labels, "'--task link' needs no labels"),
        (a_lonely_class, "class 'yew' has one"),
    ],
)
def test_labels_that_teach_nothing(bigcn, forest, harm, reason):
    nodes, edges = forest()
    table = pd.read_csv(nodes)
    harm(table)
    table.to_csv(nodes, index=False)
    refused = bigcn("train", nodes, edges, *QUICK, "--save", "model")
    assert_refused(refused, reason)
    assert not os.path.exists("model")
    assert not os.path.exists("runs")


def assert_refused(outcome, reason: str) -> None:
    assert outcome.code == 2, outcome.err
    last = outcome.err.strip().splitlines()[-1]
    assert re.search(reason, last), outcome.err
    assert last.startswith("bigcn: ")
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--save", "no/such/place/model"), "there is no folder"),
        (("--save", "nodes.csv"), "is a file"),
        (("--save", "papers"), "not a checkpoint"),
        (("--save", "model"), "'--force' replaces it, '--resume' goes on"),
        (("--save", "model", "--force", "--resume"), "name one of the two"),
        (("--resume",), "must be named"),
        (("--save", "new", "--resume"), "new does not exist"),
        (("--save", "broken", "--resume"), "was changed after it was written"),
        (("--save", "links", "--resume"), "trained for links"),
        (("--task", "edge"), "'--task' must be node or link"),
        (("--models", "gnc"), "unknown model 'gnc'"),
        (("--models", ","), "'--models' must name"),
        (("--device", "tpu"), "'--device' must be"),
        (("--label", "sort"), "sort"),
        (("--store", "papers"), "papers"),
    ],
)
def test_places_and_options_that_do_not_fit(trained, words, reason):
    Path("papers").mkdir()
    Path("papers/thesis.txt").write_text("years of work")
    shutil.copytree("model", "broken")
    with open("broken/model.safetensors", "ab") as file:
        file.write(b"x")
    folders = [Path(name) for name in ("papers", "model", "broken", "links")]
    before = [everything(folder) for folder in folders]
    assert_refused(trained("train", "nodes.csv", "edges.csv", *QUICK, *words), reason)
    assert [everything(folder) for folder in folders] == before


def test_a_full_disk_leaves_the_old_model(trained, monkeypatch):
    before = everything(Path("model"))
    words = ("train", "nodes.csv", "edges.csv", *QUICK, "--save", "model", "--models", "none", "--force", "--seed", "2")
    with monkeypatch.context() as patch:
        full_disk(patch)
        refused = trained(*words)
    assert_refused(refused, "model could not be saved: No space left on device")
    assert everything(Path("model")) == before
    assert not [name for name in os.listdir(".") if name.startswith(".")]


@pytest.mark.parametrize(
    ("began", "again", "sentence"),
    [
        ((), ("--quick",), "began without '--quick'"),
        (("--quick",), (), "began with '--quick'"),
        (("--quick", "--max-epochs", "3"), ("--quick",), "began with '--max-epochs 3'"),
        (("--quick",), ("--quick", "--max-epochs", "3"), "began without '--max-epochs'"),
        (("--quick", "--seed", "2"), ("--quick",), "began with '--seed 2'"),
    ],
)
def test_a_training_goes_on_as_it_began(began, again, sentence):
    def options(words):
        seed, epochs = (words[words.index(name) + 1] if name in words else None for name in ("--seed", "--max-epochs"))
        return {"search": "--quick" not in words, "seed": int(seed or 0), "max_epochs": epochs and int(epochs)}

    estimator = BiGCNClassifier(**options(began))
    check_same(estimator, {**options(began), "device": "cuda"})  # another device is no other training
    with pytest.raises(ValueError, match=f"^the training in '--save' {sentence}, and goes on with the same options"):
        check_same(estimator, options(again))


def test_a_model_that_is_finished_is_not_gone_on_with(bigcn, forest):
    words = ("train", *forest(), *QUICK, "--models", "none", "--save", "model")
    assert bigcn(*words).code == 0
    assert_refused(bigcn(*words), "already holds a checkpoint, and was left as it is: '--force' replaces it$")
    assert_refused(bigcn(*words, "--resume", "--seed", "3"), "began with '--seed 0'")
