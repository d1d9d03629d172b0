import json

import numpy as np
import pandas as pd
import pytest

from bigcn import read_graph
from bigcn.distributed import partition_tables


@pytest.fixture
def tables(tmp_path):
    generator = np.random.default_rng(0)
    kind = generator.integers(3, size=120)
    frame = pd.DataFrame(generator.normal(size=(120, 6)) + 2 * np.eye(3, 6)[kind], columns=list("abcdef"))
    frame.insert(0, "id", [f"n{i}" for i in generator.permutation(120)])
    frame["kind"] = pd.Series(np.array(["x", "y", "z"])[kind]).where(generator.random(120) < 0.8, None)
    frame.to_parquet(tmp_path / "nodes.parquet")
    ends = generator.integers(120, size=(2, 300))
    pd.DataFrame({"source": frame.id[ends[0]].to_numpy(), "target": frame.id[ends[1]].to_numpy()}).to_parquet(
        tmp_path / "edges.parquet"
    )
    return tmp_path / "nodes.parquet", tmp_path / "edges.parquet"


def said(folder, size):
    return [(folder / f"{rank}.out").read_text() for rank in range(size)], [
        (folder / f"{rank}.err").read_text() for rank in range(size)
    ]


def test_train_and_predict_from_tables_to_a_table(tables, spread, tmp_path):
    shards, model, table = (str(tmp_path / name) for name in ("shards", "model", "predictions.csv"))
    partition_tables(*tables, shards, 2, label="kind")
    words = ["train", shards, "--save", model, "--max-epochs", "30", "--json"]
    spread("command", 2, words=words, out=str(tmp_path))
    out, err = said(tmp_path, 2)
    document = json.loads(out[0])
    assert out[1] == err[1] == ""
    assert document["epochs"] == 30
    assert document["sent"][0]["hops"] > 0
    spread("command", 2, words=["predict", shards, model, "-o", table], out=str(tmp_path))
    graph = read_graph(*tables, label="kind")
    from bigcn.training.checkpoint import load_checkpoint

    checkpoint = load_checkpoint(model)
    assert checkpoint.classes == ("x", "y", "z")
    outputs = checkpoint.model(graph.data.x, graph.data.edge_index, graph.data.edge_weight)
    found = pd.read_csv(table)
    assert found["id"].tolist() == list(graph.ids)
    assert found["label"].tolist() == [graph.classes[i] for i in outputs.argmax(dim=-1)]
    assert np.allclose(found["probability"], outputs.softmax(dim=-1).amax(dim=-1).detach(), atol=2e-6)
    known = graph.data.y >= 0
    assert float((outputs.argmax(dim=-1) == graph.data.y)[known].double().mean()) > 0.5


def test_bad_input_ends_with_one_sentence_of_the_first_process(tables, spread, tmp_path):
    shards = str(tmp_path / "shards")
    partition_tables(*tables, shards, 3, label="kind")
    spread("command", 2, codes=(2,), words=["train", shards], out=str(tmp_path))
    out, err = said(tmp_path, 2)
    assert out == ["", ""]
    assert err[1] == ""
    assert err[0] == (
        f"bigcn: {shards}: made for 3 processes, and 2 processes run: partition with '--parts 2', or start 3\n"
    )
