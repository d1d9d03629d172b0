"""The options that commands on a user's own graph share."""

import io
from typing import Annotated

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from bigcn.cli import own

NODES = "key,size,[bold]kind,age\na,1.5,x,3\nb,2.5,y,\nc,0.5,,5\n"
EDGES = "from,to,w\na,b,2\nb,c,1\nb,q,1\n"

app = typer.Typer()


@app.command()
def show(
    nodes: own.Nodes,
    edges: own.Edges = None,
    label: own.Label = None,
    id: own.Id = None,
    source: own.Source = None,
    target: own.Target = None,
    weight: own.Weight = None,
    features: own.Features = None,
    split: own.SplitColumn = None,
    no_standardize: own.NoStandardize = False,
    missing: own.Missing = "fill",
    unknown_ids: own.UnknownIds = "error",
    name: own.Name = None,
    quiet: Annotated[bool, typer.Option()] = False,
) -> None:
    graph = own.graph_from_options(
        nodes, edges, label=label, id=id, source=source, target=target, weight=weight, features=features, split=split,
        no_standardize=no_standardize, missing=missing, unknown_ids=unknown_ids, name=name,
    )  # fmt: skip
    typer.echo(f"{graph.data.x.tolist()} {graph.data.edge_weight.tolist()} {graph.data.y.tolist()}")
    own.print_look(graph)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "e.csv").write_text(EDGES)
    return [str(tmp_path / "n.csv"), str(tmp_path / "e.csv")]


OPTIONS = ["--label", "[bold]kind", "--id", "key", "--source", "from", "--target", "to", "--weight", "w"]


def test_options_reach_the_reader(files):
    words = [*files, *OPTIONS, "--features", "size", "--no-standardize", "--unknown-ids", "drop", "--name", "[red]it"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert "[[1.5], [2.5], [0.5]] [2.0, 2.0, 1.0, 1.0] [0, 1, -1]" in done.stdout
    assert "[red]it:" in done.stdout  # not taken for markup
    assert "1 skipped for an unknown id" in done.stdout
    assert "Class 'x' has 1 label only." in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*OPTIONS], "id 'q' is not in"),
        ([*OPTIONS, "--unknown-ids", "drop", "--missing", "error"], "row 3, column 'age'"),
        ([*OPTIONS, "--missing", "zero"], "'--missing' must be fill or error"),
        ([*OPTIONS, "--unknown-ids", "keep"], "'--unknown-ids' must be error or drop"),
        ([*OPTIONS, "--features", ","], "'--features' must name one thing"),
    ],
)
def test_mistakes_are_errors_that_the_command_line_reports(files, words, sentence):
    done = CliRunner().invoke(app, [*files, *words])
    assert isinstance(done.exception, ValueError)
    assert sentence in str(done.exception)


def test_tables_that_are_swapped_are_asked_about(files):
    done = CliRunner().invoke(app, [*reversed(files), *OPTIONS])
    assert isinstance(done.exception, ValueError)
    nodes, edges = files
    assert str(done.exception).startswith(f"{edges} has no column 'key'")
    assert str(done.exception).endswith(f"; {nodes} has one: are the two swapped?")


def test_other_mistakes_are_not_taken_for_swapped_tables(files):
    for words in (files, [files[1], files[1], *OPTIONS], [files[1], "no.csv"], [files[0], files[0], "--id", "key"]):
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, ValueError)
        assert "swapped" not in str(done.exception)


def test_the_look_can_go_elsewhere(files):
    graph = own.graph_from_options(
        *files, id="key", source="from", target="to", weight="w", unknown_ids="drop", features="size"
    )
    console = Console(file=io.StringIO(), width=30)
    own.print_look(graph, console)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "n:"
    assert "3 (0 isolated, 1 components)" in lines[1]
