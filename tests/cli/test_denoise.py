import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from bigcn import read_graph
from bigcn.datasets import digits
from bigcn.datasets.own import decode
from bigcn.noise import NoiseLevel
from bigcn.smoothing import denoise, denoising


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(denoising, "ENTRIES", 1_000)


@pytest.fixture
def images(bigcn) -> pd.DataFrame:
    """Writes noisy digits as tables, and returns the clean ones."""
    data = digits()
    small = data.subgraph(data.y < 3)
    noisy = NoiseLevel(0.5, seed=1)(small)
    ids = np.array([f"image {i}" for i in range(small.num_nodes)])
    pixels = [f"pixel {j}" for j in range(16, 40)]
    clean = pd.DataFrame(small.x[:, 16:40].numpy() * 16, columns=pixels, index=ids)
    table = pd.DataFrame(noisy.x[:, 16:40].numpy() * 16, columns=pixels)
    table.insert(0, "digit", small.y.numpy())
    table.insert(3, "id", ids)
    table.to_csv("nodes.csv", index=False)
    source, target = small.edge_index.numpy()
    pd.DataFrame({"source": ids[source], "target": ids[target]}).to_csv("edges.csv", index=False)
    return clean


def test_a_noisy_table_is_cleaned(bigcn, images):
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "--label", "digit", "-o", "clean.csv", "--json")
    assert outcome.code == 0, outcome.err
    before, after = pd.read_csv("nodes.csv"), pd.read_csv("clean.csv")
    assert list(after.columns) == list(before.columns)
    pd.testing.assert_frame_equal(after[["id", "digit"]], before[["id", "digit"]])
    noise = np.square(before[images.columns].to_numpy() - images.to_numpy()).mean()
    assert np.square(after[images.columns].to_numpy() - images.to_numpy()).mean() < noise / 3

    said = json.loads(outcome.out)
    assert said["output"] == "clean.csv"
    assert said["criterion"] == "hidden"
    assert said["errors"][said["directions"]] <= said["errors"]["none"]
    assert [change["column"] for change in said["columns"]] == list(images.columns)
    for change in said["columns"]:
        moved = after[change["column"]] - before[change["column"]]
        assert change["moved"] == pytest.approx(np.sqrt(np.square(moved).mean()), rel=1e-3)
        assert change["share"] == pytest.approx(change["moved"] / before[change["column"]].std(ddof=0), rel=1e-3)
    assert len(said["feature_edges"]) == 10
    assert {edge["one"] for edge in said["feature_edges"]} <= set(images.columns)


def test_the_table_is_what_the_library_gives(bigcn, images):
    assert bigcn("denoise", "nodes.csv", "edges.csv", "--label", "digit", "-o", "clean.parquet").code == 0
    graph = read_graph("nodes.csv", "edges.csv", label="digit")
    groups = list(range(graph.data.x.size(1)))
    expected = denoise(graph.data.x, graph.data.edge_index, groups=groups).x.numpy()
    expected = expected * [c.scale for c in graph.encoding.columns] + [c.mean for c in graph.encoding.columns]
    found = pd.read_parquet("clean.parquet")[images.columns].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_people_are_told(bigcn, images):
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "--label", "digit", "-o", "clean.tsv")
    assert outcome.code == 0, outcome.err
    assert "Cleaned along" in outcome.out
    assert "Error on hidden values" in outcome.out
    assert "% of its spread" in outcome.out
    assert re.search(r"pixel \d+ – pixel \d+: [+-]0\.\d+", outcome.out)
    assert "clean.tsv" in outcome.err
    assert "clean.tsv" not in outcome.out


def test_known_noise(bigcn, images):
    options = ("nodes.csv", "edges.csv", "--label", "digit", "--no-standardize", "-o", "clean.csv", "--json")
    said = json.loads(bigcn("denoise", *options, "--noise", "8").out)
    assert said["criterion"] == "noise"
    after = pd.read_csv("clean.csv")[images.columns].to_numpy()
    assert said["errors"][said["directions"]] == pytest.approx(np.square(after - images.to_numpy()).mean(), rel=0.25)
    said = json.loads(bigcn("denoise", *options, "--noise", "0").out)
    assert said["directions"] == "none"
    pd.testing.assert_frame_equal(pd.read_csv("clean.csv"), pd.read_csv("nodes.csv"))


@pytest.fixture
def mixed(forest) -> pd.DataFrame:
    """The table of trees with gaps, words, flags, ids with zeros in front, and a column that is no feature."""
    forest()
    table = pd.read_csv("nodes.csv")
    table["evergreen"] = np.where(table["kind"] == "fir", "yes", "no")
    table["note"] = [f"<b>{i}</b>, [red]" for i in range(len(table))]
    table["split"] = np.array(["train", "val", "test"])[np.arange(len(table)) // 3 % 3]
    table.loc[table.index[3], "trait 2"] = np.nan
    table.loc[table.index[5], "soil"] = None
    table.to_csv("nodes.csv", index=False)
    return pd.read_csv("nodes.csv")


def test_words_flags_and_gaps(bigcn, mixed):
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "--label", "kind", "-o", "clean.csv", "--json")
    assert outcome.code == 0, outcome.err
    after = pd.read_csv("clean.csv")
    assert list(after.columns) == list(mixed.columns)
    pd.testing.assert_frame_equal(after[["id", "kind", "note", "split"]], mixed[["id", "kind", "note", "split"]])
    assert set(after["soil"]) == {"clay", "sand", "loam"}
    assert set(after["evergreen"]) <= {"yes", "no"}
    assert after["trait 2"].notna().all()
    columns = {change["column"]: change for change in json.loads(outcome.out)["columns"]}
    assert columns["trait 2"]["filled"] == columns["soil"]["filled"] == 1
    assert columns["trait 1"]["filled"] == 0
    known = mixed["soil"].notna()
    assert columns["soil"]["changed"] == int((after["soil"] != mixed["soil"])[known].sum())
    for edge in json.loads(outcome.out)["feature_edges"]:
        assert edge["one"].split("=")[0] != edge["other"].split("=")[0]


def test_what_nothing_restores_is_kept_or_named(bigcn, mixed):
    generator = np.random.default_rng(0)
    mixed["lucky"] = generator.random(len(mixed)) < 0.5
    mixed["coin"] = np.array(["heads", "tails", "edge"])[generator.integers(3, size=len(mixed))]
    mixed.loc[mixed.index[7], "coin"] = None
    mixed["weight"] = generator.normal(size=len(mixed))
    mixed.to_csv("nodes.csv", index=False)
    options = ("denoise", "nodes.csv", "edges.csv", "--label", "kind", "-o", "clean.csv")
    columns = {change["column"]: change for change in json.loads(bigcn(*options, "--json").out)["columns"]}
    assert columns["evergreen"]["restored"] > 0.1 > max(columns[name]["restored"] for name in ("lucky", "coin"))
    after = pd.read_csv("clean.csv")
    pd.testing.assert_series_equal(after["lucky"], mixed["lucky"])
    known = mixed["coin"].notna()
    pd.testing.assert_series_equal(after["coin"][known], mixed["coin"][known])
    assert after["coin"].notna().all()
    said = " ".join(bigcn(*options).out.split())
    filled = "what was known stays as it was, and the 1 cell filled there is a guess."
    assert f"hidden values of 'lucky', 'coin': {filled}" in said
    far = [name for name, change in columns.items() if change["restored"] < 0.1 and change.get("share", 0) > 0.5]
    assert "weight" in far
    named = ", ".join(f"'{name}'" for name in far)
    assert f"hidden values of {named}: what was taken for noise may be data." in said
    # Where the noise is known, nothing is hidden, and all are cleaned.
    columns = json.loads(bigcn(*options, "--noise", "0.9", "--json").out)["columns"]
    assert sum(change["changed"] for change in columns if change["column"] in ("lucky", "coin")) > 0


def test_gaps_are_no_known_values_and_a_category_is_hidden_whole(bigcn, mixed):
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "--label", "kind", "-o", "clean.csv", "--json")
    graph = read_graph("nodes.csv", "edges.csv", label="kind")
    x = torch.where(graph.missing, torch.nan, graph.data.x)
    owner = [number for number, column in enumerate(graph.encoding.columns) for _ in column.features]
    expected = denoise(x, graph.data.edge_index, groups=owner)
    assert json.loads(outcome.out)["errors"][expected.directions] == pytest.approx(expected.choice.error)
    traits = [f"trait {i}" for i in range(7)]
    found, wanted = pd.read_csv("clean.csv")[traits], decode(graph.encoding, expected.x)[traits]
    np.testing.assert_allclose(found.to_numpy(), wanted.to_numpy(), atol=1e-4)


def test_chosen_columns_alone(bigcn, mixed):
    options = ("--label", "kind", "--features", "trait 1,trait 3", "-o", "clean.csv", "--json")
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", *options, "--noise", "0.7")
    assert outcome.code == 0, outcome.err
    after = pd.read_csv("clean.csv")
    rest = [name for name in mixed.columns if name not in ("trait 1", "trait 3")]
    pd.testing.assert_frame_equal(after[rest], mixed[rest])
    assert (after["trait 1"] != mixed["trait 1"]).any()


def test_what_nothing_restores_stays_as_it_was_where_there_are_no_gaps(bigcn, mixed):
    mixed["lucky"] = np.random.default_rng(0).random(len(mixed)) < 0.5
    mixed.to_csv("nodes.csv", index=False)
    said = " ".join(bigcn("denoise", "nodes.csv", "edges.csv", "--label", "kind").out.split())
    assert "hidden values of 'lucky', which stay as they were." in said


@pytest.fixture
def semicolons(mixed) -> pd.DataFrame:
    """The table of trees as a spreadsheet with decimal commas writes it, with other columns of numbers and words."""
    mixed["id"] = [f"{i},5" for i in range(len(mixed))]
    mixed["kind"] = np.array(["1,0", "2,0", None], dtype=object)[np.arange(len(mixed)) % 3]
    mixed["size"] = np.where(np.arange(len(mixed)) == 4, "-1e3", "1,25")
    mixed = mixed.fillna({"trait 2": 0.5, "soil": "clay"})
    mixed["words"] = ["1,5", "a,b", "c"] * (len(mixed) // 3)
    mixed.to_csv("nodes.csv", index=False, sep=";", decimal=",")
    edges = pd.DataFrame({"source": mixed["id"][:-1], "target": mixed["id"][1:].to_numpy()})
    edges.to_csv("edges.csv", index=False)
    return mixed


@pytest.mark.parametrize("options", [("--noise", "0"), ("--noise", "0.5", "--features", "trait 1")])
def test_decimal_commas_become_points_also_where_nothing_is_cleaned(bigcn, semicolons, options):
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "--label", "kind", "-o", "clean.csv", *options)
    assert outcome.code == 0, outcome.err
    before, after = (
        read_graph("nodes.csv", "edges.csv", label="kind"),
        read_graph("clean.csv", "edges.csv", label="kind"),
    )
    assert [(c.name, c.kind) for c in after.encoding.columns] == [(c.name, c.kind) for c in before.encoding.columns]
    assert after.ids.tolist() == before.ids.tolist()
    assert after.classes == before.classes == ("1,0", "2,0")
    table = pd.read_csv("clean.csv")
    for name in (f"trait {i}" for i in (0, 3)):
        assert table[name].astype(float).to_numpy() == pytest.approx(semicolons[name].to_numpy(), abs=1e-12)
    assert set(table["size"]) == {1.25, -1000}
    assert table["words"].tolist() == semicolons["words"].tolist()


def test_markup_in_names_is_text(bigcn, mixed):
    mixed.rename(columns={"trait 1": "[red]x[/red]"}).to_csv("nodes.csv", index=False)
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "--label", "kind")
    assert outcome.code == 0, outcome.err
    assert "[red]x[/red]" in outcome.out


def change_nodes(**columns):
    def change() -> None:
        pd.read_csv("nodes.csv").assign(**columns).to_csv("nodes.csv", index=False)

    return change


def only_words() -> None:
    pd.read_csv("nodes.csv")[["id", "note"]].to_csv("nodes.csv", index=False)


def with_stranger() -> None:
    with open("edges.csv", "a") as file:
        file.write("tree-000,nobody\n")


BAD: dict[str, tuple] = {
    "no such file": (lambda: os.unlink("nodes.csv"), (), "nodes.csv"),
    "a folder": (lambda: (os.unlink("nodes.csv"), os.mkdir("nodes.csv")), (), "nodes.csv is a folder"),
    "empty file": (lambda: Path("nodes.csv").write_text(""), (), "nodes.csv"),
    "header only": (lambda: Path("nodes.csv").write_text("id,a\n"), (), "nodes.csv has no rows"),
    "binary junk": (lambda: Path("nodes.csv").write_bytes(bytes(range(256)) * 9), (), "nodes.csv"),
    "no ids": (lambda: Path("nodes.csv").write_text("a,b\n1,2\n"), (), "'id'"),
    "no features": (only_words, (), "nodes.csv"),
    "infinite": (change_nodes(**{"trait 1": "inf"}), (), "trait 1"),
    "unknown id": (with_stranger, (), "nobody"),
    "gaps refused": (lambda: None, ("--missing", "error"), "trait 2"),
    "no such label": (lambda: None, ("--label", "colour"), "colour"),
    "no such feature": (lambda: None, ("--features", "colour"), "colour"),
    "hidden too large": (lambda: None, ("--hidden", "1"), "'--hidden'"),
    "noise not a number": (lambda: None, ("--noise", "nan"), "'--noise'"),
    "negative noise": (lambda: None, ("--noise", "-1"), "'--noise'"),
    "negative seed": (lambda: None, ("--seed", "-1"), "'--seed'"),
    "noise infinite": (lambda: None, ("--noise", "inf"), "'--noise'"),
    "missing misspelt": (lambda: None, ("--missing", "guess"), "'--missing'"),
    "another ending": (lambda: None, ("-o", "out.xlsx"), "out.xlsx"),
    "output is a folder": (lambda: os.mkdir("sub.csv"), ("-o", "sub.csv"), "sub.csv is a folder"),
}


@pytest.mark.parametrize(("harm", "options", "reason"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_a_sentence(bigcn, mixed, harm, options, reason):
    Path("out.csv").write_text("before")
    harm()
    words = ("denoise", "nodes.csv", "edges.csv", *(() if "-o" in options else ("-o", "out.csv")), *options)
    outcome = bigcn(*words)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    (line,) = outcome.err.strip().splitlines()
    assert line.startswith("bigcn: ")
    assert reason in line
    assert Path("out.csv").read_text() == "before"
    assert not [name for name in os.listdir() if name.endswith(".tmp")]


def test_nothing_is_left_where_writing_fails(bigcn, mixed, monkeypatch):
    Path("out.csv").write_text("before")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "out.csv")

    monkeypatch.setattr("pandas.DataFrame.to_csv", full)
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "-o", "out.csv")
    assert outcome.code == 2
    assert "No space left on device" in outcome.err
    assert Path("out.csv").read_text() == "before"
    assert not [name for name in os.listdir() if name.endswith(".tmp")]


def test_help_has_an_example(bigcn):
    outcome = bigcn("denoise", "--help")
    assert outcome.code == 0
    assert "bigcn denoise nodes.csv edges.csv" in outcome.out
