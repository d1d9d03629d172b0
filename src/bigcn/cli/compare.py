"""`bigcn compare`: models under noise, side by side."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bigcn.cli.common import errors, names, numbers, output, print_json, print_table, progress
from bigcn.cli.executors import ExecutorOption, RayAddressOption, executor_device, make_executor
from bigcn.cli.outputs import FOLDER, check_outputs, write_outputs
from bigcn.datasets import DATASETS
from bigcn.experiments.comparison import Comparison, ComparisonResult, run_comparison
from bigcn.experiments.records import MAX_SEED, SUMMARY_COLUMNS, RunResult, RunSpec
from bigcn.experiments.store import RunStore
from bigcn.memory import keep_freed_memory
from bigcn.nn.registry import model_names
from bigcn.report import comparison_table

#: The form of BiGCN that is compared beside the shipped one, by task: without a feature direction where that has one.
OTHER_FORM = {"node": "bigcn:none", "link": "bigcn:spectral"}

EXAMPLE = """
Compares models under a kind of noise and leaves a table, a plot, a page and a record behind.

Example:  bigcn compare digits --case noise-level --values 0.2,0.5,0.8 --models bigcn,gcn,mlp --seeds 5

Runs are kept in a store: interrupted comparisons go on where they stopped, and asking again answers at once.
"""


def compare(
    graph: Annotated[str, typer.Argument(help="digits, cora, citeseer, pubmed, dblp, computers or photo.")] = "digits",
    task: Annotated[str, typer.Option(help="node (classification) or link (prediction).")] = "node",
    case: Annotated[
        str,
        typer.Option(
            help="clean, noise-level, noise-rate, column-noise, structure-mistakes or feature-rate.", show_default=True
        ),
    ] = "clean",
    values: Annotated[str, typer.Option(help="Amounts of noise, separated by commas.")] = "",
    models: Annotated[
        str,
        typer.Option(help="Models, separated by commas: " + ", ".join(model_names()) + ", bigcn:WORD+WORD, or all."),
    ] = "all",
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1, max=1000)] = 3,
    seed: Annotated[
        int, typer.Option(help="The first seed; the others follow in steps of 5.", min=0, max=MAX_SEED)
    ] = 5,
    protocol: Annotated[str, typer.Option(help="Split: authors, public or random; by default the graph's own.")] = "",
    negatives: Annotated[str, typer.Option(help="Training negatives of link prediction: fresh or fixed.")] = "fresh",
    max_epochs: Annotated[int | None, typer.Option(help="A cap on the epochs of every run.", min=1)] = None,
    weight_decay: Annotated[float | None, typer.Option(help="One weight decay for all models.", min=0)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    deterministic: Annotated[bool, typer.Option(help="Allow only deterministic algorithms on a GPU.")] = False,
    force: Annotated[bool, typer.Option(help="Repeat runs that are stored.")] = False,
    executor: ExecutorOption = "local",
    ray_address: RayAddressOption = "",
    store: Annotated[Path, typer.Option(help="The store of runs.")] = Path("runs/store.sqlite"),
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The folder for table, plot and page; by default runs/GRAPH-TASK-CASE.", **FOLDER
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    _refuse_file(graph)
    keep_freed_memory()
    training: dict[str, Any] = {"deterministic": True} if deterministic else {}
    if max_epochs is not None:
        training["max_epochs"] = max_epochs
    if weight_decay is not None:
        training["weight_decay"] = weight_decay
    comparison = Comparison(
        dataset=graph.lower(),
        models=_all_models(task) if models == "all" else names(models.lower(), "--models"),
        task=task,  # type: ignore[arg-type]
        case=case,
        values=numbers(values, "--values") if values else (),
        seeds=tuple(seed + 5 * i for i in range(seeds)),
        protocol=protocol,
        device=executor_device(device, executor),
        training=training,
        negatives=negatives,  # type: ignore[arg-type]
    )
    chosen = make_executor(executor, ray_address)
    folder = out or Path("runs") / f"{comparison.dataset}-{comparison.task}-{comparison.case}"
    check_outputs(folder, store)
    for place in (folder, store.parent):  # before anything is trained, not after
        place.mkdir(parents=True, exist_ok=True)
    with RunStore(store) as runs, chosen as workers:
        specs = comparison.specs()
        with progress(len(specs), comparison.title) as tell:

            def on_run(spec: RunSpec, result: RunResult, stored: bool) -> None:
                tell(describe(spec, result, stored, comparison.metric))

            result = run_comparison(comparison, runs, force, on_run, workers)
    page = write_outputs(result, folder, command_line())
    if as_json:
        print_json({"rows": plain_rows(result)})
        return
    print_table(comparison_table(result))
    output.print(result.verdict())
    for spec, failed in result.failures():
        errors.print(f"failed: {spec.model}, seed {spec.seed}: {failed.error}", markup=False)
    output.print(f"The page with plots and everything needed to repeat this: {page}", markup=False, soft_wrap=True)


compare.__doc__ = EXAMPLE


def describe(spec: RunSpec, result: RunResult, stored: bool, metric: str) -> str:
    """Says in a line how a run ended."""
    where = spec.case if spec.value is None else f"{spec.case} {spec.value:g}"
    score = f"{100 * result.metrics[metric]:.1f} %" if result.status == "ok" else "failed"
    return f"{spec.model}, {where}, seed {spec.seed}: {score}" + (" (stored)" if stored else "")


def plain_rows(result: ComparisonResult) -> list[dict[str, Any]]:
    """Returns the rows with the columns that scripts rely on."""
    return [{column: row[column] for column in SUMMARY_COLUMNS} for row in result.rows()]


def command_line() -> str:
    """Returns the command as it was typed, quoted so that it can be typed again."""
    return shlex.join(["bigcn", *sys.argv[1:]])


def _refuse_file(graph: str) -> None:
    """Refuses a file where a benchmark graph is to be named."""
    if graph.lower() in DATASETS:
        return
    from bigcn.datasets.own.formats import TABLE_ENDINGS
    from bigcn.datasets.own.tables import file_ending

    path = Path(graph)
    if path.is_file() or file_ending(path) in TABLE_ENDINGS:
        raise ValueError(
            f"{graph} is a file, and 'bigcn compare' takes the name of a benchmark graph: "
            f"'bigcn train' takes files, and compares models on them"
        )


def _all_models(task: str) -> tuple[str, ...]:
    other = (OTHER_FORM[task],) if task in OTHER_FORM else ()  # an unknown task is refused with the rest
    return ("bigcn", *other, *(name for name in model_names() if name != "bigcn"))
