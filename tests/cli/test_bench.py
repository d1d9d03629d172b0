import json
from pathlib import Path

import pytest

from bigcn.bench.timing import Ratio, row
from bigcn.cli import bench

COLUMNS = {"bench", "graph", "contender", "against", "ratio", "spread"}


def test_command(bigcn, tmp_path):
    outcome = bigcn("bench", "peers", "--graphs", "digits", "--rounds", "2", "--json", "-o", "bench.json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert all(row.keys() >= COLUMNS for row in document["rows"])
    assert json.loads((tmp_path / "bench.json").read_text()) == document
    quick = json.loads(bigcn("bench", "peers", "--quick", "--graphs", "digits", "--rounds", "2", "--json").out)
    assert {row["graph"] for row in quick["rows"]} == {"digits"}
    for words, part in (
        (("bench", "speed"), "speed"),
        (("bench", "peers", "--graphs", "nope"), "nope"),
        (("bench", "peers", "--quick", "--graphs", "nope"), "nope"),
        (("bench", "--rounds", "1"), "--rounds"),
    ):
        outcome = bigcn(*words)
        assert outcome.code == 2
        assert part in outcome.err


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(bigcn, monkeypatch):
    monkeypatch.setattr(bench, "load_dataset", lambda name: pytest.fail("it ran"))
    Path("folder").mkdir()
    Path("taken").write_text("no folder")
    for out, said in (("folder", "folder is a folder"), ("taken/b.json", "something in taken, which is a file")):
        outcome = bigcn("bench", "peers", "--graphs", "digits", "-o", out)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("bigcn: '--output'")
        assert said in outcome.err
        assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("columns", [None, "40"])
def test_names_are_whole_where_there_is_no_window(bigcn, monkeypatch, columns):
    names = [f"bigcn:taylor+learnable, h={hidden}" for hidden in (16, 32, 64)]

    def measured(graph, data, rounds, device):
        yield from (row("hidden units", graph, name, names[0], Ratio(1.0, 0.5, 2.0)) for name in names)

    monkeypatch.setitem(bench.ON_GRAPHS, "settings", measured)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    outcome = bigcn("bench", "settings", "--graphs", "digits")
    assert outcome.code == 0, outcome.err
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for name in names:
        assert f"hidden units digits {name} {names[0]} 1.00 0.50 – 2.00" in lines
