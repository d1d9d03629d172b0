"""`bigcn reproduce`: the experiments of the paper, and ours beside them."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bigcn.cli.common import errors, names, output, print_json, progress, resolve_device
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction, Setting, UntilExecutor
from bigcn.experiments.store import RunStore
from bigcn.nn.model_spec import suggest

EXAMPLE = """
Reruns the experiments of the paper and ours, with published and measured numbers side by side.

Example:  bigcn reproduce node-table --device cuda
          bigcn reproduce all --minutes 30        (as often as needed; it goes on where it stopped)
          bigcn reproduce list

Runs are kept in a store. Tables go to results/, curves to results/figures/, and docs/results.md is written from all
that has run.
"""


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help="Names of experiments, all, or list.")],
    graphs: Annotated[str, typer.Option(help="Only these graphs, separated by commas.")] = "",
    seeds: Annotated[int, typer.Option(help="How many of the ten seeds.", min=1, max=len(SEEDS))] = len(SEEDS),
    max_epochs: Annotated[int | None, typer.Option(help="A cap on the epochs of every run.", min=1)] = None,
    minutes: Annotated[float | None, typer.Option(help="Begin nothing new after so many minutes.", min=0)] = None,
    max_memory: Annotated[float | None, typer.Option(help="Gigabytes that a population may take.", min=0.01)] = None,
    together: Annotated[
        bool | None, typer.Option("--together/--one-by-one", help="Train populations; by default on a GPU.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be run, and stop.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    store: Annotated[Path, typer.Option(help="The store of runs.")] = Path("runs/reproduce.sqlite"),
    results: Annotated[Path, typer.Option(help="The folder for tables and figures.")] = Path("results"),
    page: Annotated[Path | None, typer.Option(help="The page to write; none to leave it.")] = Path("docs/results.md"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    if experiments == ["list"]:
        _print_list(as_json)
        return
    chosen = [EXPERIMENTS[name] for name in _resolve(experiments)]
    if graphs:
        chosen = [_only(experiment, names(graphs.lower(), "--graphs")) for experiment in chosen]
    setting = Setting(resolve_device(device), SEEDS[:seeds], max_epochs)
    store.parent.mkdir(parents=True, exist_ok=True)
    with RunStore(store) as runs:
        work = Reproduction(chosen, runs, setting)
        missing, total = work.missing()
        estimate = work.estimate()
        errors.print(
            f"{len(chosen)} experiments, {total:,} runs, {total - missing:,} of them in the store; "
            f"{missing:,} to do on {setting.device}" + (f", about {_duration(estimate)}" if estimate else "")
        )
        if plan:
            return
        start, trained = time.monotonic(), 0
        with progress(missing, "Reproduction") as tell:

            def on_run(spec: RunSpec, result: RunResult, stored: bool) -> None:
                nonlocal trained
                trained += not stored
                where = spec.case if spec.value is None else f"{spec.case} {spec.value:g}"
                tell(f"{spec.dataset}, {spec.task}, {where}: {spec.model}, seed {spec.seed}")

            memory = None if max_memory is None else int(max_memory * 2**30)
            work.run(on_run, UntilExecutor(minutes), together, memory)
        errors.print(f"{trained:,} runs in {_duration(time.monotonic() - start)}; {work.missing()[0]:,} are left")
        from bigcn.report.reproduction import write_reproduction

        written = write_reproduction(work, results, page)
    if as_json:
        print_json({"rows": work.rows()})
        return
    for path in written:
        output.print(f"wrote {path}", markup=False, soft_wrap=True)


reproduce.__doc__ = EXAMPLE


def _resolve(listed: list[str]) -> list[str]:
    if listed == ["all"]:
        return list(EXPERIMENTS)
    for name in listed:
        if name not in EXPERIMENTS:
            raise ValueError(f"unknown experiment {name!r}{suggest(name, [*EXPERIMENTS, 'all', 'list'])}")
    return list(dict.fromkeys(listed))


def _only(experiment, graphs):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    unknown = [graph for graph in graphs if all(graph != s.graph for e in EXPERIMENTS.values() for s in e.series)]
    if unknown:
        raise ValueError(f"'--graphs' names {unknown[0]!r}, which is in no experiment")
    return replace(experiment, series=tuple(series for series in experiment.series if series.graph in graphs))


def _print_list(as_json: bool) -> None:
    rows = [
        {
            "name": experiment.name,
            "title": experiment.title,
            "panels": len(experiment.series),
            "models": len(experiment.contenders),
            "ours": experiment.ours,
        }
        for experiment in EXPERIMENTS.values()
    ]
    if as_json:
        print_json({"experiments": rows})
        return
    table = Table("experiment", "what it asks", "graphs and cases", "models", "in the paper", box=None)
    for row in rows:
        table.add_row(row["name"], row["title"], str(row["panels"]), str(row["models"]), "no" if row["ours"] else "yes")
    output.print(table)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
