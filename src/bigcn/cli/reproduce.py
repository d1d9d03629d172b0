"""`bigcn reproduce`: the experiments of the paper, and ours beside them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Column, Table

from bigcn.cli.common import check_writable, duration, errors, names, output, print_json, print_table, progress
from bigcn.cli.executors import ExecutorOption, RayAddressOption, at_once, executor_device, make_executor
from bigcn.experiments.execution import Executor
from bigcn.experiments.paper import EXPERIMENTS, SEEDS, Experiment
from bigcn.experiments.recorded import Record, is_day, read_record
from bigcn.experiments.records import DEVICES, RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.experiments.store import RunStore
from bigcn.memory import keep_freed_memory
from bigcn.nn.model_spec import suggest
from bigcn.report.words import plural

STORE, RESULTS, PAGE = Path("runs/reproduce.sqlite"), Path("results"), Path("docs/results.md")
EXAMPLE = """
Reruns the experiments of the paper and ours, with published and measured numbers side by side.

Example:  bigcn reproduce node-table --device cuda
          bigcn reproduce all --minutes 30        (as often as needed; it goes on where it stopped)
          bigcn reproduce all --report            (tables, figures and page again; nothing is run)
          bigcn reproduce list

Runs are kept in a store. Tables go to results/, curves to results/figures/, and the page docs/results.md is written
from all that has run, published and measured numbers side by side; what a table has and the store has not stays in it.
"""


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help="Names of experiments; or all, or list, alone.")],
    graphs: Annotated[str, typer.Option(help="Only these graphs, separated by commas.")] = "",
    seeds: Annotated[
        int, typer.Option(help="How many of the ten seeds; fewer are a short run.", min=1, max=len(SEEDS))
    ] = len(SEEDS),
    max_epochs: Annotated[int | None, typer.Option(help="A cap on the epochs: a short run.", min=1)] = None,
    minutes: Annotated[float | None, typer.Option(help="Begin nothing new after so many minutes.", min=0)] = None,
    max_memory: Annotated[float | None, typer.Option(help="Gigabytes that a population may take.", min=0.01)] = None,
    together: Annotated[
        bool | None, typer.Option("--together/--one-by-one", help="Train populations; by default on a GPU.")
    ] = None,
    lacking: Annotated[
        bool, typer.Option("--lacking", help="Run what the tables do not have seed by seed, and nothing else.")
    ] = False,
    since: Annotated[
        str,
        typer.Option(help="With '--lacking': a day, as in 2026-11-18; what tables have from before does not count."),
    ] = "",
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be run, and stop.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Run nothing; write what store and tables know.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    executor: ExecutorOption = "local",
    ray_address: RayAddressOption = "",
    store: Annotated[Path, typer.Option(help="The store of runs.")] = STORE,
    results: Annotated[Path, typer.Option(help="The folder for tables and figures.")] = RESULTS,
    page: Annotated[
        Path | None,
        typer.Option(
            help="The page to write, or none.", show_default="docs/results.md; results.md beside other tables"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    if experiments == ["list"]:
        _print_list(as_json)
        return
    _check_since(since, lacking)
    if lacking and (report or seeds < len(SEEDS) or max_epochs is not None):
        other = "--report" if report else "--seeds" if seeds < len(SEEDS) else "--max-epochs"
        raise ValueError(f"'--lacking' runs what the tables of a full run lack, and does not go with '{other}'")
    chosen = [EXPERIMENTS[name] for name in _resolve(experiments)]
    if graphs:
        chosen = _only(chosen, names(graphs.lower(), "--graphs"))
    record = read_record(results)
    if report and not store.exists() and (store != STORE or not record.cells):
        raise ValueError(
            f"there is no store of runs at {store}" + ("" if record.cells else f" and no table in {results}")
        )
    keep_freed_memory()
    workers = make_executor(executor, ray_address, minutes)
    with _opened(store, plan or report) as runs:
        place = _stored(runs, record, device) if report else executor_device(device, executor)
        setting = Setting(place, SEEDS[:seeds], max_epochs)
        if setting.is_short and record.cells and not plan:
            raise ValueError(
                f"{results} has tables of a full run, which a short one would replace; name another '--results'"
            )
        work = Reproduction(chosen, runs, setting, record)
        if lacking:
            work = work.lacking(since)
        missing, total = work.missing()
        estimate = work.estimate(at_once(executor))
        about = "" if work.is_decided() else "about "
        to_do = f"{about}{missing:,} to do on {setting.device}" + (f", about {duration(estimate)}" if estimate else "")
        # A plan is what was asked for; otherwise it is said by the way.
        told = output if plan and not as_json else errors
        told.print(
            f"{plural(len(chosen), 'experiment')}, {about}{plural(total, 'run')}, {total - missing:,} of them in the "
            "store; " + (_reported(work, runs) if report and not plan else to_do),
            soft_wrap=True,
        )
        if plan:
            if as_json:
                counts = {"experiments": len(chosen), "runs": total, "missing": missing, "exact": not about}
                print_json(counts | {"seconds": estimate})
            return
        if page is None:
            page = PAGE if results.resolve() == RESULTS.resolve() else results / PAGE.name
        if str(page) == "none":
            page = None
        # Rather before hours of runs than after them.
        check_writable(results, "--results")
        if page is not None:
            if page.is_dir():
                raise ValueError(f"'--page' names a folder, {page}; name a file in it")
            check_writable(page.parent, "--page")
        if not report:
            memory = None if max_memory is None else int(max_memory * 2**30)
            with workers as started:
                _carry_out(work, missing, started, together, memory)
        from bigcn.report.reproduction import write_reproduction

        # What is written holds all that has run, whatever this call was about.
        everything = work.about(list(EXPERIMENTS.values()))
        written = write_reproduction(everything, results, page)
        if gone := record.left_out(everything.cells()) if record.cells else 0:
            errors.print(
                f"{plural(gone, 'row')} of older tables had no place: their models or candidates are no more, or "
                "others of their candidates are reported there"
            )
    if as_json:
        print_json({"rows": work.rows()})
        return
    for path in written:
        output.print(f"wrote {path}", markup=False, soft_wrap=True)


reproduce.__doc__ = EXAMPLE


@contextmanager
def _opened(store: Path, only_read: bool) -> Iterator[RunStore]:
    """Opens the store; who only reads one that is not there leaves none behind."""
    with TemporaryDirectory() as empty:
        path = Path(empty, "runs.sqlite") if only_read and not store.exists() else store
        path.parent.mkdir(parents=True, exist_ok=True)
        with RunStore(path) as runs:
            yield runs


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
    left = f"{'' if work.is_decided() else 'about '}{work.missing()[0]:,}"
    errors.print(f"{plural(trained, 'run')} in {duration(time.monotonic() - start)}; {left} are left")


def _stored(runs: RunStore, record: Record, device: str) -> str:
    """Returns the device whose runs are reported, which need not be here."""
    if device == "auto":
        on_gpu = next(iter(runs.rows(device="cuda")), None) or any(s["all"].get("gpu") for s in record.costs)
        return "cuda" if on_gpu else "cpu"
    if device not in DEVICES:
        raise ValueError(f"'--device' must be auto, cpu or cuda (got {device!r})")
    return device


def _reported(work: Reproduction, runs: RunStore) -> str:
    """Says what is reported of the experiments, or why nothing is."""
    if known := len(work.rows()):
        return f"{plural(known, 'row')} reported" + (" from store and tables" if work.record.cells else "")

    def otherwise_alike(spec: RunSpec) -> str:
        training = {**spec.settings.get("training", {}), "max_epochs": None}
        return replace(spec, seed=0, device="cpu", settings={**spec.settings, "training": training}).key

    asked = [*work.choosing(), *work.reporting()]
    keys, alike = {replace(spec, device="cpu").key for spec in asked}, {otherwise_alike(spec) for spec in asked}
    stored = [spec for spec, _ in runs.rows() if replace(spec, device="cpu").key not in keys]
    if others := sum(otherwise_alike(spec) in alike for spec in stored):
        there = f"what is there ({plural(others, 'run')}) belongs to other '--seeds' or '--max-epochs'"
        return f"nothing to report: {there}, name these too"
    return "nothing to report yet"


def _resolve(listed: list[str]) -> list[str]:
    for word in ("list", "all"):
        if word in listed and len(listed) > 1:
            raise ValueError(f"'{word}' stands alone: name nothing beside it")
    if listed == ["all"]:
        return list(EXPERIMENTS)
    for name in listed:
        if name not in EXPERIMENTS:
            raise ValueError(f"unknown experiment {name!r}{suggest(name, [*EXPERIMENTS, 'all', 'list'])}")
    return list(dict.fromkeys(listed))


def _check_since(since: str, lacking: bool) -> None:
    if since and not lacking:
        raise ValueError("'--since' goes with '--lacking': without it everything that is not in the store is run")
    if since and not is_day(since):
        raise ValueError(f"'--since' must be a day, as in 2026-11-18 (got {since!r})")


def _only(experiments: list[Experiment], graphs: tuple[str, ...]) -> list[Experiment]:
    for graph in graphs:
        if all(graph != series.graph for experiment in experiments for series in experiment.series):
            known = dict.fromkeys(series.graph for experiment in experiments for series in experiment.series)
            raise ValueError(f"'--graphs' names {graph!r}, which none of these experiments has: {', '.join(known)}")
    return [replace(e, series=tuple(series for series in e.series if series.graph in graphs)) for e in experiments]


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
    print_table(table)
