"""`bigcn report`: pages, tables and exports from what is stored."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from bigcn.cli.common import output, print_json, print_table
from bigcn.cli.compare import command_line, plain_rows
from bigcn.cli.outputs import FOLDER, check_outputs, write_outputs
from bigcn.datasets import DATASETS
from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.own import PREFIX, OwnResult, folder_name, is_own
from bigcn.experiments.specs import METRICS
from bigcn.experiments.store import RunStore
from bigcn.experiments.stored import stored_comparisons
from bigcn.noise import CASES
from bigcn.report import comparison_table
from bigcn.report.differences import tell_apart
from bigcn.report.own import own_table


def report(
    graph: Annotated[str | None, typer.Argument(help="Only this graph.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task: node or link.")] = None,
    case: Annotated[str | None, typer.Option(help="Only this kind of noise.")] = None,
    store: Annotated[Path, typer.Option(help="The store of runs.")] = Path("runs/store.sqlite"),
    out: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for tables, plots and pages.", **FOLDER),
    ] = Path("runs"),
    merge: Annotated[
        list[Path] | None, typer.Option(help="First take the runs of another store into this one.")
    ] = None,
    export: Annotated[
        list[Path] | None, typer.Option(help="Write all runs to a .csv or .json file; may be given twice.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Makes tables, plots and pages from stored runs, one of each for every graph, task and kind of noise.

    Example:  bigcn report cora --case noise-level --export runs.csv
    """
    asked_graph = None if graph is None else store_name(graph)
    for option, value, known in (("--task", task, tuple(METRICS)), ("--case", case, ("clean", *CASES))):
        if value is not None and value not in known:
            raise ValueError(f"'{option}' must be one of {', '.join(known)} (got {value!r})")
    for target in export or []:
        if target.suffix not in (".csv", ".json"):
            raise ValueError(f"'--export' writes .csv or .json (got {target})")
    if not store.exists():
        raise ValueError(f"there is no store at {store}: 'bigcn compare' makes one, '--store' names another")
    with RunStore(store) as runs:
        for other in merge or []:
            if not other.exists():
                raise ValueError(f"there is no store at {other}")
            added = runs.merge(other)
            if not as_json:
                output.print(f"{added} runs taken from {other}", markup=False)
        asked = {"dataset": asked_graph, "task": task, "case": case}
        filters: dict[str, Any] = {key: value for key, value in asked.items() if value}
        results = tell_apart(stored_comparisons(list(runs.rows(**filters))))
        taken: set[Path] = set()
        folders = [] if as_json else [free_folder(out, result, taken) for result in results]
        for folder in folders:  # all of them, before the first file is written
            check_outputs(folder, store, *(merge or []), *(export or []))
        for target in export or []:
            (runs.export_csv if target.suffix == ".csv" else runs.export_json)(target)
    if not results:
        which = "of that kind" if graph is None else f"on the graph {graph!r} and of that kind"
        raise ValueError(f"no stored run in {store} is {which}")
    if as_json:
        rows = [{**row, "comparison": result.comparison.title} for result in results for row in plain_rows(result)]
        print_json({"rows": rows})
        return
    for folder, result in zip(folders, results, strict=True):
        page = write_outputs(result, folder, repeat_command(result))
        print_table(own_table(result) if isinstance(result, OwnResult) else comparison_table(result))
        output.print(result.verdict(), markup=False)
        output.print(f"Page: {page}", markup=False, soft_wrap=True)


def store_name(graph: str) -> str:
    """Returns what a graph is called in the store: a name of the registry, or else one of one's own."""
    return graph.lower() if graph.lower() in DATASETS or is_own(graph) else PREFIX + graph


def free_folder(out: Path, result: ComparisonResult, taken: set[Path]) -> Path:
    """Returns a folder for the comparison; a second one of the same kind gets a number."""
    comparison = result.comparison
    name = f"{comparison.dataset}-{comparison.task}-{comparison.case}"
    if is_own(comparison.dataset):
        name = folder_name(comparison.dataset.removeprefix(PREFIX), comparison.task)
    numbered = [out / name, *(out / f"{name}-{number}" for number in range(2, len(taken) + 2))]
    folder = next(place for place in numbered if place not in taken)
    taken.add(folder)
    return folder


def repeat_command(result: ComparisonResult) -> str:
    """Returns the command that would make these runs, or the one that was typed if their seeds fit none."""
    comparison = result.comparison
    if isinstance(result, OwnResult):
        return str(result.about.get("command") or command_line())
    steps = {b - a for a, b in zip(comparison.seeds, comparison.seeds[1:], strict=False)}
    if steps - {5}:
        return command_line()
    words = ["bigcn", "compare", comparison.dataset, "--task", comparison.task, "--case", comparison.case]
    if comparison.values:
        words += ["--values", ",".join(f"{value:g}" for value in comparison.values)]
    words += ["--models", ",".join(comparison.models), "--seeds", str(len(comparison.seeds))]
    words += ["--seed", str(comparison.seeds[0])]
    if comparison.task == "node":
        words += ["--protocol", comparison.protocol]
    else:
        words += ["--negatives", comparison.negatives]
    for option in ("max_epochs", "weight_decay"):
        if option in comparison.training:
            words += [f"--{option.replace('_', '-')}", f"{comparison.training[option]:g}"]
    if comparison.training.get("deterministic"):
        words.append("--deterministic")
    words += ["--device", comparison.device]
    return shlex.join(words)
