"""`bigcn partition`: a graph cut into shards, one for each process that will train on it."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from bigcn.cli import own
from bigcn.cli.common import names, output, print_json
from bigcn.cli.outputs import FOLDER
from bigcn.distributed.assign import Method
from bigcn.distributed.shards import Manifest
from bigcn.experiments.records import MAX_SEED


def partition(
    nodes: Annotated[Path, typer.Argument(help="The table of nodes: .parquet, .csv, .tsv, .txt (also .gz).")],
    edges: Annotated[Path, typer.Argument(help="The table of edges, likewise.")],
    parts: Annotated[int, typer.Option(help="The number of shards, one for each process.", min=1)],
    out: Annotated[Path, typer.Option("--output", "-o", help="The folder for the shards.", **FOLDER)],
    label: own.Label = None,
    method: Annotated[
        str, typer.Option(help="neighbours (keeps neighbours together), contiguous (in table order) or random.")
    ] = "neighbours",
    seed: Annotated[int, typer.Option(help="Decides '--method random'.", min=0, max=MAX_SEED)] = 0,
    id: own.Id = None,
    source: own.Source = None,
    target: own.Target = None,
    weight: own.Weight = None,
    features: own.Features = None,
    split: own.SplitColumn = None,
    no_standardize: own.NoStandardize = False,
    missing: Annotated[
        str, typer.Option(help="Missing features: error refuses them, mean takes the mean of the column.")
    ] = "error",
    unknown_ids: own.UnknownIds = "error",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace older shards.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Cut a graph into shards, one for each process that will train on it.

    Example:  bigcn partition nodes.parquet edges.parquet --parts 4 -o shards --label kind

    Tables are streamed: neither the features nor the edges are ever in memory as a whole. Each process of
    'torchrun --nproc-per-node=4 -m bigcn train shards' then memory-maps one shard.
    """
    from bigcn.distributed.tables import partition_tables

    with own.asking_if_swapped(nodes, edges, id):
        manifest = partition_tables(
            nodes,
            edges,
            out,
            parts,
            label=label,
            id=id,
            source=source,
            target=target,
            weight=weight,
            features=None if features is None else names(features, "--features"),
            split=split,
            standardize=not no_standardize,
            missing=cast(Any, missing),
            unknown_ids=cast(Any, unknown_ids),
            method=cast(Method, method),
            seed=seed,
            overwrite=overwrite,
        )
    own.print_sentences(manifest.warnings)
    if as_json:
        print_json(document(manifest, out))
        return
    said = [f"{count:,} {name.replace('_', '-')}" for name, count in manifest.removed.items() if count]
    output.print(
        f"{manifest.nodes:,} nodes, {manifest.edges:,} edges, {manifest.features:,} features"
        + (f" ({', '.join(said)} merged, removed or skipped)" if said else ""),
        markup=False,
    )
    for part, (size, halo) in enumerate(zip(manifest.sizes, manifest.halos, strict=True)):
        output.print(f"part {part}: {size:,} nodes, {halo:,} needed from other parts", markup=False)
    output.print(f"The shards: {out}", markup=False, soft_wrap=True)


def document(manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Returns what '--json' prints."""
    size = sum(file["bytes"] for file in manifest.files.values())
    return {
        "folder": str(folder),
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "features": manifest.features,
        "classes": list(manifest.classes),
        "method": manifest.method,
        "removed": manifest.removed,
        "warnings": list(manifest.warnings),
        "bytes": size,
        "parts": [{"nodes": nodes, "halo": halo} for nodes, halo in zip(manifest.sizes, manifest.halos, strict=True)],
    }
