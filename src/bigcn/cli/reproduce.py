"""`bigcn reproduce`: the experiments of the paper, and ours beside them."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from bigcn.cli.common import errors, names, output, print_json, progress
from bigcn.cli.executors import ExecutorOption, RayAddressOption, executor_device, make_executor
from bigcn.experiments.execution import Executor
from bigcn.experiments.paper import EXPERIMENTS, SEEDS, Experiment
from bigcn.experiments.recorded import Record, read_record
from bigcn.experiments.records import DEVICES, RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction, Setting
from bigcn.experiments.store import RunStore
from bigcn.memory import keep_freed_memory
from bigcn.nn.model_spec import suggest
from bigcn.report.words import plural

EXAMPLE = """
Reruns the experiments of the paper and ours, with published and measured numbers side by side.

Example:  bigcn reproduce node-table --device cuda
          bigcn reproduce all --minutes 30        (as often as needed; it goes on where it stopped)
          bigcn reproduce all --report            (tables, figures and page again; nothing is run)
          bigcn reproduce list

Runs are kept in a store. Tables go to results/, curves to results/figures/, and docs/results.md is written from all
that has run; what a table has and the store has not stays in it.
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
    lacking: Annotated[
        bool, typer.Option("--lacking", help="Run only what the tables lack as well, or have without single seeds.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be run, and stop.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Run nothing; write what store and tables know.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    executor: ExecutorOption = "local",
    ray_address: RayAddressOption = "",
    store: Annotated[Path, typer.Option(help="The store of runs.")] = Path("runs/reproduce.sqlite"),
    results: Annotated[Path, typer.Option(help="The folder for tables and figures.")] = Path("results"),
    page: Annotated[Path, typer.Option(help="The page to write; none to leave it.")] = Path("docs/results.md"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    if experiments == ["list"]:
        _print_list(as_json)
        return
    chosen = [EXPERIMENTS[name] for name in _resolve(experiments)]
    if graphs:
        chosen = [_only(experiment, names(graphs.lower(), "--graphs")) for experiment in chosen]
    record = read_record(results)
    if report and not store.exists() and not record.cells:
        raise ValueError(f"there is no store of runs at {store} and no table in {results}")
    keep_freed_memory()
    workers = make_executor(executor, ray_address, minutes)
    store.parent.mkdir(parents=True, exist_ok=True)
    with RunStore(store) as runs:
        place = _stored(runs, record, device) if report else executor_device(device, executor)
        setting = Setting(place, SEEDS[:seeds], max_epochs)
        if setting.is_short and record.cells and not plan:
            raise ValueError(
                f"{results} has tables of a full run, which a short one would replace; name another '--results'"
            )
        work = Reproduction(chosen, runs, setting, record)
        if lacking:
            work = work.lacking()
        missing, total = work.missing()
        estimate = work.estimate()
        errors.print(
            f"{plural(len(chosen), 'experiment')}, {total:,} runs, {total - missing:,} of them in the store; "
            f"{missing:,} to do on {setting.device}" + (f", about {_duration(estimate)}" if estimate else "")
        )
        if plan:
            if as_json:
                print_json({"experiments": len(chosen), "runs": total, "missing": missing, "seconds": estimate})
            return
        if not report:
            memory = None if max_memory is None else int(max_memory * 2**30)
            with workers as started:
                _carry_out(work, missing, started, together, memory)
        from bigcn.report.reproduction import write_reproduction

        # What is written holds all that has run, whatever this call was about.
        written = write_reproduction(
            work.about(list(EXPERIMENTS.values())), results, None if str(page) == "none" else page
        )
    if as_json:
        print_json({"rows": work.rows()})
        return
    for path in written:
        output.print(f"wrote {path}", markup=False, soft_wrap=True)


reproduce.__doc__ = EXAMPLE


def _carry_out(
    work: Reproduction, missing: int, executor: Executor, together: bool | None, max_memory: int | None
) -> None:
    start, trained = time.monotonic(), 0
    with progress(missing, "Reproduction") as tell:

        def on_run(spec: RunSpec, result: RunResult, stored: bool) -> None:
            nonlocal trained
            trained += not stored
            where = spec.case if spec.value is None else f"{spec.case} {spec.value:g}"
            tell(f"{spec.dataset}, {spec.task}, {where}: {spec.model}, seed {spec.seed}")

        work.run(on_run, executor, together, max_memory)
    errors.print(f"{trained:,} runs in {_duration(time.monotonic() - start)}; {work.missing()[0]:,} are left")


def _stored(runs: RunStore, record: Record, device: str) -> str:
    """Returns the device whose runs are reported, which need not be here."""
    if device == "auto":
        on_gpu = next(iter(runs.rows(device="cuda")), None) or any(s["device"] == "cuda" for s in record.costs)
        return "cuda" if on_gpu else "cpu"
    if device not in DEVICES:
        raise ValueError(f"'--device' must be auto, cpu or cuda (got {device!r})")
    return device


def _resolve(listed: list[str]) -> list[str]:
    if listed == ["all"]:
        return list(EXPERIMENTS)
    for name in listed:
        if name not in EXPERIMENTS:
            raise ValueError(f"unknown experiment {name!r}{suggest(name, [*EXPERIMENTS, 'all', 'list'])}")
    return list(dict.fromkeys(listed))


def _only(experiment: Experiment, graphs: tuple[str, ...]) -> Experiment:
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
    table = Table(
        Column("experiment", no_wrap=True), "what it asks", "graphs and cases", "models", "in the paper", box=None
    )
    for row in rows:
        where = "no" if row["ours"] else "yes"
        table.add_row(str(row["name"]), str(row["title"]), str(row["panels"]), str(row["models"]), where)
    output.print(table)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
