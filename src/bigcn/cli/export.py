"""`bigcn datasets export`: a benchmark graph as the tables that `bigcn train` reads."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from torch_geometric.data import Data

from bigcn.cli.common import check_file, errors, output, print_json
from bigcn.cli.outputs import FOLDER
from bigcn.datasets import DATASETS, DatasetSpec, Split, default_protocol, get_spec, load_dataset, make_split
from bigcn.datasets.own import write_graph
from bigcn.experiments.records import MAX_SEED
from bigcn.noise import CASES, Noise, make_noise
from bigcn.report.words import plural


def export(
    graph: Annotated[str, typer.Argument(help=", ".join(DATASETS) + ".", show_default=False)],
    out: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for nodes.csv and edges.csv.", show_default=False, **FOLDER),
    ],
    case: Annotated[str, typer.Option(help="The kind of noise: clean (none), " + ", ".join(CASES) + ".")] = "clean",
    value: Annotated[float | None, typer.Option(help="The amount of noise.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Decides the noise, and a random split.", min=0, max=MAX_SEED)] = 0,
    protocol: Annotated[
        str,
        typer.Option(
            help="The split to write: authors, public or random; by default the graph's own, if it has one.",
            show_default=False,
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace tables that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Write a graph as a table of nodes and one of edges, with noise if asked for.

    Example:  bigcn datasets export digits -o tables

    'bigcn train tables/nodes.csv tables/edges.csv --label label' reads them. The columns of nodes.csv are id, label,
    split if there is one, and the features; edges.csv has each undirected edge once.
    """
    spec = get_spec(graph)
    noise = _noise(case, value, seed)
    files = out / "nodes.csv", out / "edges.csv"
    for path in files:
        check_file(path, "--output")
        if path.exists() and not force:
            raise ValueError(f"{path} is there already and was left as it is ('--force' replaces it)")
    clean = load_dataset(spec.name)
    split = _split(clean, spec, protocol, seed)
    data = clean if noise is None else noise(clean)
    names = _feature_names(clean, spec, noise if case == "feature-rate" else None)
    # No row numbers: ids of one's own have names, too.
    width = len(str(spec.nodes))
    ids = np.array([f"{spec.name}-{place:0{width}d}" for place in range(1, spec.nodes + 1)])
    write_graph(data, *files, ids=ids, feature_names=names, split=split)
    account = _account(spec, data, split, files) | {"case": case, "value": value, "seed": seed}
    if as_json:
        print_json(account)
    else:
        _tell(account)


def _noise(case: str, value: float | None, seed: int) -> Noise | None:
    if case == "clean" and value is not None:
        raise ValueError("'--value' is the amount of a kind of noise, which '--case' names")
    if case in CASES and value is None:
        raise ValueError(f"'--case {case}' takes an amount of noise: '--value' names it")
    try:
        return make_noise(case, value or 0.0, seed)
    except ValueError as error:
        option = "--value" if case in CASES else "--case"
        raise ValueError(f"'{option}' does not fit: {str(error).rstrip('.')}") from None


def _split(data: Data, spec: DatasetSpec, protocol: str, seed: int) -> Split | None:
    """Returns the split that was asked for, or the graph's own; one that would be drawn is left to who trains."""
    own = default_protocol(spec.name)
    asked = protocol or (own if own != "random" else "")
    return make_split(data, spec.name, asked, seed) if asked else None


def _feature_names(data: Data, spec: DatasetSpec, drops: Noise | None) -> list[str]:
    # A comma separates the names in '--features'.
    known = [name.replace(",", " ") for name in spec.feature_names]
    names = known or [f"feature {column}" for column in range(spec.features)]
    kept = None if drops is None else drops.changes(data).columns
    return names if kept is None else [names[column] for column in kept.tolist()]


def _account(spec: DatasetSpec, data: Data, split: Split | None, files: tuple[Path, Path]) -> dict[str, Any]:
    parts = {} if split is None else {part: len(getattr(split, part)) for part in ("train", "val", "test")}
    return {
        "graph": spec.name,
        "files": {"nodes": str(files[0]), "edges": str(files[1])},
        "nodes": spec.nodes,
        "edges": data.edge_index.size(1) // 2,
        "features": data.x.size(1),
        "classes": spec.classes,
        "protocol": None if split is None else split.protocol,
        "split": parts or None,
    }


def _tell(account: dict[str, Any]) -> None:
    nodes, edges = account["files"].values()
    parts = ", ".join(f"{count:,} {part}" for part, count in (account["split"] or {}).items())
    said = f"{plural(account['nodes'], 'node')}, {plural(account['features'], 'feature')}, {account['classes']} classes"
    output.print(f"{nodes}: {said}{f', split ({parts})' if parts else ''}", markup=False, soft_wrap=True)
    output.print(f"{edges}: {plural(account['edges'], 'edge')}", markup=False, soft_wrap=True)
    command = shlex.join(["bigcn", "train", nodes, edges, "--label", "label", "--save", "model"])
    errors.print(f"For a model:  {command}", markup=False, soft_wrap=True)
