import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import bigcn.estimators.search
from bigcn.datasets import load_dataset
from bigcn.estimators import BiGCNClassifier
from bigcn.experiments.store import RunStore
from bigcn.training import train
from bigcn.training.checkpoint import load_checkpoint

LABEL = ("--label", "kind", "--device", "cpu")
QUICK = (*LABEL, "--quick", "--max-epochs", "8")


def test_from_files_to_files(bigcn, forest):
    outcome = bigcn("train", *forest(), *QUICK, "--save", "model", "--name", "forest")
    assert outcome.code == 0, outcome.err
    for part in ("60", "3 classes", "BiGCN", "GCN", "MLP", "Largest class", "macro-F1", "model", "runs/forest-node"):
        assert part in outcome.out, part
    assert set(os.listdir("model")) == {"README.md", "config.json", "model.safetensors", "split.safetensors"}
    card = Path("model/README.md").read_text()
    assert "| GCN |" in card
    assert "| majority class |" in card
    page = Path("runs/forest-node/index.html").read_text()
    for part in ("beech", "oak", "Class by class", "bigcn train nodes.csv"):
        assert part in re.sub(r"<[^>]*>", "", page), part
    with RunStore("runs/store.sqlite") as store:
        assert {(spec.dataset, spec.model) for spec, _ in store.rows()} == {
            ("own:forest", model) for model in ("bigcn", "gcn", "mlp", "majority")
        }
    # Without the search, three files in, and the page again from the store alone.
    again = bigcn("report", "forest", "-o", "pages")
    assert again.code == 0, again.err
    assert "Class by class" in Path("pages/forest-node/index.html").read_text()


def test_json_is_one_document(bigcn, forest):
    outcome = bigcn("train", *forest(), *QUICK, "--save", "model", "--json")
    document = json.loads(outcome.out)
    rows = {(row["model"], row["metric"]): row for row in document["rows"]}
    assert {model for model, _ in rows} == {"bigcn", "gcn", "mlp", "majority"}
    report = document["report"]
    assert rows["bigcn", "accuracy"]["mean"] == report["scores"]["accuracy"]
    assert sum(count for _, _, count in report["confusion"]) == report["nodes"]
    assert document["classes"] == ["beech", "fir", "oak"]
    assert "nodes" in outcome.err  # the first look, for people


def test_a_model_that_is_not_kept_is_said(bigcn, forest):
    words = ("train", *forest(), *QUICK, "--models", "none")
    plain, machine = bigcn(*words), bigcn(*words, "--json")
    assert plain.out.endswith("\nNo model was kept: '--save FOLDER' keeps one.\n")
    assert machine.err.endswith("\nNo model was kept: '--save FOLDER' keeps one.\n")
    assert json.loads(machine.out)["model"] is None
    assert "No model was kept" not in bigcn(*words, "--save", "model").out
    summary = " ".join(bigcn("train", "--help").out.split("Example:")[0].split())
    assert "the model in '--save'" in summary


def test_the_command_and_the_library_are_one(bigcn, forest):
    nodes, edges = forest()
    document = json.loads(bigcn("train", nodes, edges, *QUICK, "--seed", "3", "--save", "model", "--json").out)
    library = BiGCNClassifier(search=False, max_epochs=8, seed=3).fit(bigcn_read(nodes, edges))
    assert library.report_ == document["report"]
    for name, tensor in library.model_.state_dict().items():
        assert torch.equal(tensor, load_checkpoint("model").model.state_dict()[name])


def bigcn_read(nodes: str, edges: str):
    from bigcn import read_graph

    return read_graph(nodes, edges, label="kind")


def test_dry_run_says_what_training_would(bigcn, forest):
    forest()
    nodes = pd.read_csv("nodes.csv")
    fine, unnamed = (bigcn("train", "nodes.csv", "edges.csv", *words, "--dry-run") for words in (LABEL, ()))
    assert (fine.code, "Training would be refused" in fine.out) == (0, False)
    assert (unnamed.code, "refused: nodes has no labels" in unnamed.out) == (1, True)
    assert bigcn("train", "nodes.csv", "edges.csv", "--task", "link", "--dry-run").code == 0
    nodes.assign(kind=["palm", *nodes["kind"][1:]]).to_csv("nodes.csv", index=False)
    outcome = bigcn("train", "nodes.csv", "edges.csv", *LABEL, "--dry-run", "--json")
    assert outcome.code == 1
    document = json.loads(outcome.out)["graph"]
    assert "'palm' has one labelled node" in document["refused"]
    kinds = {column["name"]: column["kind"] for column in document["columns"]}
    assert kinds["soil"] == "category"
    assert kinds["trait 0"] == "number"
    assert bigcn("train", "nodes.csv", "edges.csv", *LABEL).err.strip().endswith(document["refused"])


def test_dry_run_looks_at_the_rest_where_labels_are_measurements(bigcn, forest):
    forest()
    nodes = pd.read_csv("nodes.csv")
    nodes.assign(kind=np.arange(len(nodes)) / 7).to_csv("nodes.csv", index=False)
    words = ("train", "nodes.csv", "edges.csv", *LABEL)
    looked, machine, refused = bigcn(*words, "--dry-run"), bigcn(*words, "--dry-run", "--json"), bigcn(*words)
    assert (looked.code, machine.code, refused.code) == (1, 1, 2)
    assert "7 numbers, 1 category" in looked.out
    assert "Training would be refused: nodes.csv, column 'kind': 60 different numbers" in looked.out
    document = json.loads(machine.out)["graph"]
    assert (document["nodes"], document["split"]) == (60, None)
    assert refused.err == f"bigcn: {document['refused']}\n"


def test_the_first_look_says_what_divides_the_nodes(bigcn, forest):
    nodes, edges = forest(labelled=1.0)
    table = pd.read_csv(nodes)

    def said(*words: str) -> str:
        outcome = bigcn("train", nodes, edges, *words, "--device", "cpu", "--dry-run", "--seed", "7")
        assert outcome.code == 0, outcome.err
        (line,) = [line for line in outcome.out.splitlines() if line.startswith("  split ")]
        return line.removeprefix("  split      ")

    drawn = "60/20/20 of the labelled nodes, class by class, drawn by seed 7"
    assert said("--label", "kind") == drawn
    assert said("--task", "link") == "80/10/10 of the links, drawn by seed 7"
    parts = [["train", "val", "test", "train"][place % 4] for place in range(len(table))]
    table.assign(split=parts, part=parts).to_csv(nodes, index=False)
    assert said("--label", "kind") == "30 train, 15 val, 15 test, by column 'split'"
    assert said("--label", "kind", "--split", "part") == "30 train, 15 val, 15 test, by column 'part'"
    assert said("--label", "kind", "--features", "split,soil") == drawn
    table.assign(split=["tset", *parts[1:]]).to_csv(nodes, index=False)
    for words in (("--dry-run",), ()):
        refused = bigcn("train", nodes, edges, *LABEL, *words)
        assert refused.code == 2
        assert "nodes.csv, row 2, column 'split': 'tset' is none of train, val and test" in refused.err


def test_dry_run_says_what_was_understood(bigcn, forest):
    outcome = bigcn("train", *forest(), *LABEL, "--dry-run", "--save", "model")
    assert outcome.code == 0
    assert "homophily" in outcome.out
    document = json.loads(bigcn("train", "nodes.csv", "edges.csv", *LABEL, "--dry-run", "--json").out)
    assert document["graph"]["nodes"] == 60
    assert sorted(os.listdir(".")) == ["edges.csv", "nodes.csv"]


def test_link_prediction(bigcn, forest):
    words = ("--task", "link", "--quick", "--max-epochs", "5", "--device", "cpu", "--save", "model", "--models", "gcn")
    outcome = bigcn("train", *forest(), *LABEL[:2], *words, "--json")
    assert outcome.code == 0, outcome.err
    rows = {(row["model"], row["metric"]) for row in json.loads(outcome.out)["rows"]}
    assert rows == {(model, metric) for model in ("bigcn", "gcn") for metric in ("roc_auc", "average_precision")}
    assert load_checkpoint("model").task == "link"
    refused = bigcn("predict", "model", "nodes.csv", "edges.csv", "-o", "out.csv")
    assert (refused.code, "bigcn links" in refused.err) == (2, True)


def interrupt(monkeypatch, at: int) -> None:
    """Presses Ctrl-C after so many epochs of BiGCN."""
    epochs = 0

    def watched(model, task, config, seed, on_epoch, session):
        def after(progress):
            nonlocal epochs
            epochs += 1
            if epochs == at:
                signal.raise_signal(signal.SIGINT)
            return on_epoch(progress)

        return train(model, task, config, seed, after, session)

    monkeypatch.setattr(bigcn.estimators.search, "train", watched)


def test_interrupted_and_resumed(bigcn, forest, monkeypatch):
    words = ("train", *forest(), *LABEL, "--max-epochs", "6")
    expected = json.loads(bigcn(*words, "--save", "whole", "--json", "--store", "other.sqlite").out)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    with monkeypatch.context() as patch:
        interrupt(patch, at=15)  # in the third of ten candidates
        stopped = bigcn(*words, "--save", "model")
    assert stopped.code == 130
    assert "2 of 12 forms" in stopped.err
    assert "--resume" in stopped.err
    assert "resume.safetensors" in os.listdir("model")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert bigcn("predict", "model", "nodes.csv", "edges.csv", "-o", "early.csv").code == 0

    for changed in (("--seed", "1"), ("--quick",), ("--max-epochs", "7")):
        refused = bigcn(*words, *changed, "--save", "model", "--resume")
        assert (refused.code, changed[0] in refused.err) == (2, True)
    resumed = json.loads(bigcn(*words, "--save", "model", "--resume", "--json").out)
    assert resumed["report"] == expected["report"]
    assert resumed["chosen"] == expected["chosen"]
    mine, whole = (load_checkpoint(folder).model.state_dict() for folder in ("model", "whole"))
    assert all(torch.equal(tensor, mine[name]) for name, tensor in whole.items())
    assert "resume.safetensors" not in os.listdir("model")


def test_interrupted_without_a_place_to_save(bigcn, forest, monkeypatch):
    nodes, edges = forest()
    interrupt(monkeypatch, at=3)
    outcome = bigcn("train", nodes, edges, *QUICK, "--json")
    assert outcome.code == 130
    assert json.loads(outcome.out)["interrupted"] is True
    assert "nothing was saved" in outcome.err


def test_wine_with_half_of_its_labels(bigcn):
    """Columns of wildly different units; the graph is that of nearest neighbours."""
    from sklearn.datasets import load_wine
    from sklearn.neighbors import kneighbors_graph
    from sklearn.preprocessing import StandardScaler

    wine = load_wine(as_frame=True)
    ids = np.array([f"bottle {place}" for place in range(len(wine.data))])
    kinds = np.array(["barolo", "grignolino", "barbera"], dtype=object)[wine.target]
    hidden = np.random.default_rng(0).permutation(len(ids))[: len(ids) // 2]
    label = kinds.copy()
    label[hidden] = None
    graph = kneighbors_graph(StandardScaler().fit_transform(wine.data), 8).tocoo()
    pd.concat([pd.DataFrame({"id": ids, "kind": label}), wine.data], axis=1).to_csv("wine.csv", index=False)
    pd.DataFrame({"source": ids[graph.row], "target": ids[graph.col]}).to_csv("near.csv", index=False)
    trained = bigcn("train", "wine.csv", "near.csv", *LABEL, "--quick", "--save", "model", "--models", "none")
    assert trained.code == 0, trained.err
    assert bigcn("predict", "model", "wine.csv", "near.csv", "-o", "out.csv").code == 0
    predicted = pd.read_csv("out.csv").set_index("id").loc[ids[hidden], "label"]
    assert (predicted.to_numpy() == kinds[hidden]).mean() >= 0.93


def test_cora_through_files(bigcn, benchmark_data):
    """String ids, shuffled rows, the command line alone: the very numbers of the library on the graph itself."""
    data = load_dataset("cora")
    rng = np.random.default_rng(0)
    ids = np.array([f"paper {place:05d}" for place in range(data.num_nodes)])
    parts = np.full(data.num_nodes, "", dtype=object)
    for part in ("train", "val", "test"):
        parts[data[f"{part}_mask"].numpy()] = part
    table = pd.DataFrame(data.x.numpy().astype(int), columns=[f"word {i}" for i in range(data.x.size(1))])
    table = pd.concat(
        [pd.DataFrame({"id": ids, "split": parts, "topic": [f"t{y}" for y in data.y.tolist()]}), table], axis=1
    )
    table.iloc[rng.permutation(len(table))].to_csv("nodes.csv", index=False)
    source, target = data.edge_index.numpy()
    once = np.flatnonzero(source < target)
    edges = pd.DataFrame({"source": ids[source[once]], "target": ids[target[once]]})
    edges.iloc[rng.permutation(len(edges))].to_csv("edges.csv", index=False)

    words = ("--label", "topic", "--quick", "--max-epochs", "25", "--no-standardize", "--models", "none")
    trained = bigcn(
        "train", "nodes.csv", "edges.csv", *words, "--device", "cpu", "--seed", "5", "--save", "model", "--json"
    )
    assert trained.code == 0, trained.err
    assert bigcn("predict", "model", "nodes.csv", "edges.csv", "-o", "out.csv", "--device", "cpu").code == 0

    library = BiGCNClassifier(search=False, max_epochs=25, seed=5).fit(data)
    out = pd.read_csv("out.csv").set_index("id").loc[ids]
    assert (out["label"].to_numpy() == [f"t{y}" for y in library.predict(data)]).all()
    report = json.loads(trained.out)["report"]
    assert report["scores"]["accuracy"] == library.report_["scores"]["accuracy"]
    test = data.test_mask.numpy()
    truth = np.array([f"t{y}" for y in data.y.tolist()])
    assert (out["label"].to_numpy() == truth)[test].mean() == report["scores"]["accuracy"]


def test_force_replaces(trained):
    words = (*QUICK, "--seed", "2", "--save", "model", "--models", "none", "--force")
    assert trained("train", "nodes.csv", "edges.csv", *words).code == 0
    assert BiGCNClassifier.load("model").seed == 2


def test_resuming_what_is_finished_answers_again(bigcn, forest):
    words = ("train", *forest(), *QUICK, "--save", "model", "--json")
    first = json.loads(bigcn(*words).out)
    second = bigcn(*words, "--resume")
    assert json.loads(second.out)["report"] == first["report"]
    assert "(stored)" in second.err
