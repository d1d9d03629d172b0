"""`bigcn datasets`: what graphs there are, where, whether their files are what they should be, and one as tables."""

from typing import Annotated

import typer
from rich.table import Table

from bigcn.cli import export
from bigcn.cli.common import output, print_json, print_table, progress
from bigcn.datasets import DATASETS, DatasetStatus, download, status, verify

app = typer.Typer(
    help="List the graphs; download or verify their files, or write one as tables.\n\n"
    "Example:  bigcn datasets download cora",
    invoke_without_command=True,
)
Names = Annotated[list[str] | None, typer.Argument(help="Names of graphs; all if none is given.")]


@app.callback()
def list_graphs(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    states = [status(name) for name in DATASETS]
    if as_json:
        print_json({"rows": [_as_row(state) for state in states]})
        return
    table = Table(box=None, header_style="bold")
    for column, justify in (
        ("graph", "left"),
        ("nodes", "right"),
        ("edges", "right"),
        ("features", "right"),
        ("classes", "right"),
        ("where", "left"),
        ("MB", "right"),
        ("verified", "left"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for state in states:
        spec = DATASETS[state.name]
        sizes = (f"{number:,}" for number in (spec.nodes, spec.edges, spec.features, spec.classes))
        table.add_row(state.name, *sizes, state.where, _megabytes(state), _verdict(state))
    print_table(table)
    folders = sorted({str(state.path) for state in states if state.path is not None})
    for folder in folders:
        output.print(folder, markup=False, soft_wrap=True)


@app.command("download")
def download_graphs(graphs: Names = None) -> None:
    """Copy the files of graphs from BIGCN_DATA, or download them, into the cache.

    Example:  bigcn datasets download cora citeseer
    """
    chosen = graphs or list(DATASETS)
    with progress(len(chosen), "download") as tell:
        for name in chosen:
            state = download(name)
            tell(f"{state.name}: {state.where}, {_verdict(state)}")


@app.command("verify")
def verify_graphs(graphs: Names = None) -> None:
    """Check the files of graphs against their checksums.

    Example:  bigcn datasets verify cora
    """
    chosen = graphs or [name for name in DATASETS if status(name).where != "absent"]
    for name in chosen:
        state = verify(name)
        output.print(f"{state.name}: {_verdict(state)} ({state.where})", markup=False)


app.command("export")(export.export)


def _as_row(state: DatasetStatus) -> dict[str, object]:
    spec = DATASETS[state.name]
    return {
        "graph": state.name,
        "nodes": spec.nodes,
        "edges": spec.edges,
        "features": spec.features,
        "classes": spec.classes,
        "where": state.where,
        "path": None if state.path is None else str(state.path),
        "bytes": state.bytes,
        "verified": state.verified,
        "problem": state.problem,
    }


def _megabytes(state: DatasetStatus) -> str:
    return f"{state.bytes / 1e6:.1f}" if state.bytes else "–"


def _verdict(state: DatasetStatus) -> str:
    if state.problem:
        return state.problem
    return {True: "yes", False: "no", None: "–"}[state.verified]
