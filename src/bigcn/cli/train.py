"""`bigcn train`: a model for a graph of one's own, from its tables to a folder."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from bigcn.cli import own, shards
from bigcn.cli.common import errors, names, output, print_json, print_table, progress, resolve_device
from bigcn.cli.compare import command_line
from bigcn.cli.outputs import FOLDER, check_outputs, write_outputs
from bigcn.cli.saving import check_apart, check_folder, check_same
from bigcn.datasets.own import InputError, NoClasses, OwnGraph
from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor
from bigcn.estimators.base import GraphEstimator
from bigcn.estimators.candidates import Candidate, Trial
from bigcn.experiments.own import PREFIX, OwnResult, folder_name
from bigcn.experiments.own_runs import run_own
from bigcn.experiments.records import MAX_SEED, RunResult, RunSpec, summarise
from bigcn.experiments.store import RunStore
from bigcn.memory import keep_freed_memory
from bigcn.nn.registry import get_model
from bigcn.report.own import own_table
from bigcn.training import Progress
from bigcn.training.checkpoint import load_checkpoint

#: What a command that was interrupted ends with, as shells do for Ctrl-C.
INTERRUPTED = 130
ESTIMATORS: dict[str, type[GraphEstimator]] = {"node": BiGCNClassifier, "link": BiGCNLinkPredictor}

EXAMPLE = """
Trains a model on a graph of your own and leaves a table, a plot, a page and a record behind, and the model in '--save'.

Example:  bigcn train nodes.csv edges.csv --label kind --save model

Empty labels are to be predicted, see 'bigcn predict'. Strengths, filter and feature graph are chosen on validation
nodes; '--quick' takes the defaults. The test nodes are looked at once, at the end. Ctrl-C stops, keeps the best model
so far in '--save' and ends with exit code 130; the same command with '--resume' goes on, to the result it would have
had anyway.

A graph too large for one process:  bigcn partition nodes.parquet edges.parquet --parts 4 -o shards --label kind
                                    torchrun --nproc-per-node=4 -m bigcn train shards --save model
"""


def train(
    context: typer.Context,
    nodes: own.Nodes,
    edges: own.Edges = None,
    label: own.Label = None,
    task: Annotated[str, typer.Option(help="node (labels) or link (embeddings that tell links).")] = "node",
    save: Annotated[
        Path | None, typer.Option(help="The folder for the model; without it none is kept.", **FOLDER)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Train the default form alone, without a search.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what was understood of the files, and end; exit code 1: would be refused."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the interrupted training in --save.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the model in --save; repeat stored runs.")] = False,
    models: Annotated[str, typer.Option(help="Models to compare with, separated by commas, or none.")] = "gcn,mlp",
    seed: Annotated[int, typer.Option(help="Decides the split, the weights and the dropout.", min=0, max=MAX_SEED)] = 0,
    max_epochs: Annotated[int | None, typer.Option(help="A cap on the epochs of every training.", min=1)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    store: Annotated[Path, typer.Option(help="The store of runs.")] = Path("runs/store.sqlite"),
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The folder for table, plot and page; by default runs/NAME-TASK.", **FOLDER
        ),
    ] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    if task not in ESTIMATORS:
        raise ValueError(f"'--task' must be node or link (got {task!r})")
    rivals = () if models == "none" else names(models.lower(), "--models")
    for rival in rivals:
        get_model(rival)
    where = resolve_device(device)
    keep_freed_memory()
    check_apart(save, output=out, store=store)
    if shards.is_sharded(nodes):
        # Quick is what training on shards is: the default form alone.
        used = ("nodes", "task", "save", "quick", "force", "seed", "max_epochs", "device", "store", "name", "as_json")
        shards.refuse_options(context, *used)
        shards.train_on_shards(nodes, task, save, force, seed, max_epochs, where, store, name, as_json)
        return
    if not dry_run:
        check_folder(save, resume, force)
    begun = load_checkpoint(save, where) if resume and save is not None and not dry_run else None
    refusal: str | None = None
    try:
        graph = own.graph_from_options(
            nodes,
            edges,
            label=label,
            id=id,
            source=source,
            target=target,
            weight=weight,
            features=features,
            split=split,
            no_standardize=no_standardize,
            missing=missing,
            unknown_ids=unknown_ids,
            like=None if begun is None else begun.encoding,
            name=name,
        )
    except NoClasses as error:
        if not dry_run or error.graph is None:
            raise
        graph, refusal = error.graph, str(error)
    parameters: dict[str, Any] = {"search": not quick, "seed": seed, "max_epochs": max_epochs, "device": where}
    estimator = ESTIMATORS[task](**parameters)
    told = errors if as_json else output
    divided = own.how_divided(graph, estimator)
    own.print_look(graph, told, divided)
    if task == "node" and begun is None:
        refusal = refusal or own.why_refused(graph)
    if dry_run:
        if refusal is not None:
            told.print(f"  Training would be refused: {refusal}", markup=False, soft_wrap=True, style="red")
        if as_json:
            columns = [
                {"name": c.name, "kind": c.kind, "categories": len(c.categories)} for c in graph.encoding.columns
            ]
            summary = {
                "name": graph.name,
                **asdict(graph.summary),
                "columns": columns,
                "split": divided,
                "refused": refusal,
            }
            print_json({"graph": summary})
        raise typer.Exit(0 if refusal is None else 1)
    if refusal is not None:
        raise InputError(refusal)
    folder = out or Path("runs") / folder_name(graph.name, task)
    check_apart(save, output=folder)
    check_outputs(folder, nodes, edges, store, save)
    for place in (folder, store.parent):  # before anything is trained, not after
        place.mkdir(parents=True, exist_ok=True)
    if begun is not None:
        estimator = ESTIMATORS[task].from_checkpoint(begun, save or "", where)
        check_same(estimator, parameters)
    with RunStore(store) as runs, stopping() as stop:
        result = _train(estimator, graph, runs, rivals, save, begun is not None, force, stop)
    if result is None:
        _tell_interrupted(estimator, save, as_json)
        raise typer.Exit(INTERRUPTED)
    page = write_outputs(result, folder, command_line())
    if as_json:
        print_json(document(estimator, result, save, page))
    else:
        print_table(own_table(result))
        output.print(result.verdict(), markup=False, soft_wrap=True)
        output.print(f"The page with plots and everything needed to repeat this: {page}", markup=False, soft_wrap=True)
    own.print_model(save, told)


train.__doc__ = EXAMPLE


def document(estimator: GraphEstimator, result: OwnResult, save: Path | None, page: Path) -> dict[str, Any]:
    """Returns what '--json' prints."""
    rows = [row for row in summarise(result.pairs) if not row["metric"].startswith("val_")]
    return {
        "rows": [{**row, "dataset": row["dataset"].removeprefix(PREFIX)} for row in rows],
        "interrupted": False,
        "chosen": estimator.chosen_.name,
        "report": estimator.report_,
        "classes": list(estimator.encoding_.classes),
        "model": None if save is None else str(save),
        "page": str(page),
    }


@contextmanager
def stopping() -> Iterator["Stop"]:
    """Turns the first Ctrl-C (or request to terminate) into a wish to stop; the second one ends at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield stop
        return
    former = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class Stop:
    """Whether to stop; asked after each epoch."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked

    def ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("\nstopping after this epoch; once more ends at once, without saving", file=sys.stderr, flush=True)


def _train(
    estimator: GraphEstimator,
    graph: OwnGraph,
    runs: RunStore,
    rivals: tuple[str, ...],
    save: Path | None,
    resume: bool,
    force: bool,
    stop: Stop,
) -> OwnResult | None:
    """Trains, saves, and compares; :obj:`None` if it was stopped."""
    overwrite = resume or force
    total = estimator.plan(graph).total - (len(estimator.trials_) if resume else 0) + len(rivals)
    with progress(max(total, 1), "training") as tell:
        epochs = Epochs(stop)

        def on_trial(trial: Trial) -> None:
            tell(f"BiGCN, {trial.name}: validation {100 * trial.score:.1f} %, {trial.epochs} epochs")

        fit = estimator.resume if resume else estimator.fit
        fit(graph, on_epoch=epochs, on_trial=on_trial)
        if save is not None:
            estimator.save(save, overwrite)
        if estimator.interrupted_:
            return None

        def on_run(spec: RunSpec, result: RunResult, stored: bool) -> None:
            if spec.model in rivals:
                tell(describe(spec, result, stored))

        result = run_own(estimator, graph, runs, rivals, force=force, on_run=on_run, stop=stop, command=command_line())
    if result is not None and save is not None:
        beside = {spec.model: run.metrics for spec, run in result.pairs if spec.model != "bigcn" and run.status == "ok"}
        estimator.save(save, True, {"beside": beside})
    return result


def describe(spec: RunSpec, result: RunResult, stored: bool) -> str:
    """Says in a line how a run ended; nothing of the test part yet."""
    metric = {"node": "val_accuracy", "link": "val_roc_auc"}[spec.task]
    how = f"validation {100 * result.metrics[metric]:.1f} %" if result.status == "ok" else f"failed: {result.error}"
    return f"{spec.model}: {how}" + (" (stored)" if stored else "")


class Epochs:
    """Tells now and then where a long training stands, and whether to stop."""

    #: The seconds between two lines.
    pause = 20.0

    def __init__(self, stop: Stop) -> None:
        self.stop, self.told = stop, time.monotonic()

    def __call__(self, candidate: Candidate, progress: Progress) -> bool:
        if time.monotonic() - self.told > self.pause:
            self.told = time.monotonic()
            best = f", validation {100 * progress.best_score:.1f} %" if progress.best_epoch else ""
            print(f"epoch {progress.epoch} of {progress.max_epochs} at most{best}", file=sys.stderr, flush=True)
        return self.stop()


def _tell_interrupted(estimator: GraphEstimator, save: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({"rows": [], "interrupted": True, "model": None if save is None else str(save)})
    done = f"{len(estimator.trials_)} of {estimator.plan().total} forms were tried"
    if save is None:
        said = f"interrupted ({done}); nothing was saved, as no '--save' names a folder"
    else:
        said = f"interrupted ({done}); the best model so far is in {save}, and '--resume' goes on"
    errors.print(f"bigcn: {said}", markup=False, soft_wrap=True)
