"""`bigcn bench`: speed, as ratios against peers in one run."""

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from bigcn.bench import against_direct, against_peer, against_settings, growth
from bigcn.cli.common import check_file, errors, names, output, print_json, print_table, resolve_device
from bigcn.datasets import DatasetUnavailable, load_dataset
from bigcn.experiments.records import current_versions, describe_host, utc_now
from bigcn.files import write_text
from bigcn.memory import keep_freed_memory
from bigcn.report.words import plural

GRAPHS, QUICK_GRAPHS = "cora,citeseer,pubmed,dblp,computers,photo", "digits,cora"
ROUNDS, QUICK_ROUNDS = 9, {"direct": 3, "peers": 5, "settings": 5}
#: Benches that run on graphs.
ON_GRAPHS = {"direct": against_direct, "peers": against_peer, "settings": against_settings}
BENCHES = (*ON_GRAPHS, "growth")


def bench(
    benches: Annotated[str, typer.Argument(help="Which: " + ", ".join(BENCHES) + ".")] = ",".join(BENCHES),
    graphs: Annotated[
        str | None, typer.Option(help="Graphs, separated by commas.", show_default=f"{GRAPHS}; quick: {QUICK_GRAPHS}")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Digits and Cora, fewer rounds, smaller graphs.")] = False,
    rounds: Annotated[
        int | None,
        typer.Option(help="How often each contender is timed.", min=2, show_default=f"{ROUNDS}; quick: 3 or 5"),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "cpu",
    keep_memory: Annotated[bool, typer.Option(help="Keep freed memory, as the commands that train do.")] = False,
    out: Annotated[Path | None, typer.Option("--output", "-o", help="Also store the results as JSON here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Times training steps side by side and prints how many times faster one is than the other.

    Example:  bigcn bench direct,peers --graphs cora --rounds 15

    Contenders take turns; each round has a ratio, and their median and quartiles are printed.
    """
    chosen = names(benches, "BENCHES")
    unknown = set(chosen) - set(BENCHES)
    if unknown:
        raise ValueError(f"unknown bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    where = resolve_device(device)
    if out is not None:
        check_file(out, "--output")
    if keep_memory:
        keep_freed_memory()
    rows: list[dict[str, Any]] = []
    listed = names(graphs or (QUICK_GRAPHS if quick else GRAPHS), "--graphs")
    for name in listed if ON_GRAPHS.keys() & set(chosen) else ():
        try:
            data = load_dataset(name).to(where)
        except DatasetUnavailable as missing:
            if not quick or graphs:
                raise
            errors.print(f"left out: {missing}", markup=False)
            continue
        for key, measure in ON_GRAPHS.items():
            if key in chosen:
                turns = rounds or (QUICK_ROUNDS[key] if quick else ROUNDS)
                rows += _told(list(measure(name, data, turns, where)), as_json)
    if "growth" in chosen:
        sizes = (10_000, 30_000, 100_000) if quick else (10_000, 30_000, 100_000, 300_000, 1_000_000)
        rows += _told(list(growth(sizes, 3 if quick else 5, keep_memory)), as_json)
    document = {
        "measured": utc_now(),
        "host": describe_host(),
        "threads": torch.get_num_threads(),
        "versions": current_versions(),
        "rows": rows,
    }
    if out is not None:
        write_text(out, json.dumps(document, indent=2) + "\n")
    if as_json:
        print_json(document)
        return
    print_table(_table(rows))
    host = ", ".join(describe_host().values())
    output.print(
        f"On {host}, {plural(torch.get_num_threads(), 'thread')}, torch {torch.__version__}.",
        markup=False,
        soft_wrap=True,
    )


def _told(rows: list[dict[str, Any]], quietly: bool) -> list[dict[str, Any]]:
    for row in rows if not quietly else ():
        said = f"{row['graph']}: {row['contender']} against {row['against']}: {row['ratio']:.2f}"
        errors.print(said, markup=False, soft_wrap=True)
    return rows


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold", title="time of the other over time of the contender", title_style="")
    for column in ("bench", "graph", "contender", "against"):
        table.add_column(column, overflow="fold")  # what tells two contenders apart may be the end of a name
    for column in ("ratio", "quartiles"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        low, high = row["spread"]
        cells = (row["bench"], row["graph"], row["contender"], row["against"])
        table.add_row(*cells, f"{row['ratio']:.2f}", f"{low:.2f} – {high:.2f}")
    return table
