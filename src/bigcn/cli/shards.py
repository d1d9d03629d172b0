"""`bigcn train` and `bigcn predict` on shards: one process of those that `torchrun` started, or the only one."""

import hashlib
import sys
from pathlib import Path
from typing import Any

from bigcn.cli.common import output, print_json
from bigcn.distributed.predictions import write_predictions
from bigcn.distributed.processes import Processes, run_process
from bigcn.distributed.running import ShardedRun, predict_shards, train_shards
from bigcn.distributed.shards import MANIFEST
from bigcn.estimators.candidates import DEFAULT_MODEL, DEFAULT_TRAINING
from bigcn.experiments.own import PREFIX
from bigcn.experiments.records import RunResult, RunSpec, utc_now
from bigcn.experiments.store import RunStore
from bigcn.training.checkpoint import load_checkpoint
from bigcn.training.config import Progress, TrainConfig


def is_sharded(nodes: Path) -> bool:
    """Tells whether a path is a folder that `bigcn partition` wrote."""
    return nodes.is_dir() and (nodes / MANIFEST).exists()


def refuse_options(given: dict[str, Any]) -> None:
    """Refuses options that speak of tables, which shards no longer are."""
    for option, value in given.items():
        if value:
            raise ValueError(f"'{option}' is for tables: shards were read, split and named by 'bigcn partition'")


def train_on_shards(
    folder: Path,
    task: str,
    save: Path | None,
    force: bool,
    seed: int,
    max_epochs: int | None,
    device: str,
    store: Path,
    name: str | None,
    as_json: bool,
) -> None:
    """Trains the default form on shards; the first process writes the model and the store, and says how it went.

    Args:
        folder (Path): The shards.
        task, save, force, seed, max_epochs, device, store, name, as_json: See `bigcn train`.
    """
    training = DEFAULT_TRAINING[task] | ({} if max_epochs is None else {"max_epochs": max_epochs})
    config, model = TrainConfig(**training), dict(DEFAULT_MODEL)
    started = utc_now()

    def tell(processes: Processes, progress: Progress) -> None:
        if processes.leads and (progress.epoch % 10 == 0 or progress.epoch == progress.max_epochs):
            score = "" if progress.score is None else f", validation {100 * progress.score:.1f} %"
            print(f"epoch {progress.epoch}: loss {progress.loss:.4f}{score}", file=sys.stderr, flush=True)

    def work(processes: Processes) -> None:
        run = train_shards(
            folder,
            processes,
            task=task,  # type: ignore[arg-type]
            model=model,
            config=config,
            seed=seed,
            save=save,
            overwrite=force,
            on_epoch=lambda progress: tell(processes, progress),
        )
        sent = processes.gather(run.traffic)
        if processes.leads:
            _remember(run, folder, task, model, config, seed, device, store, name, started)
            _say(run, sent, task, save, as_json)

    run_process(work, device)


def predict_on_shards(model: Path, folder: Path, out: Path, device: str) -> None:
    """Predicts the classes of all nodes of shards.

    Args:
        model (Path): The folder of the model.
        folder (Path): The shards.
        out (Path): The table to write.
        device (str): The device of each process.
    """

    def work(processes: Processes) -> None:
        checkpoint = processes.together(lambda: load_checkpoint(model))
        if checkpoint.task == "link":
            raise ValueError(f"{model} was trained for links: it has no classes to predict")
        predictions = predict_shards(folder, processes, checkpoint.model, encoding=checkpoint.encoding)
        write_predictions(out, predictions, folder, processes)

    run_process(work, device)


def _remember(
    run: ShardedRun,
    folder: Path,
    task: str,
    model: dict[str, Any],
    config: TrainConfig,
    seed: int,
    device: str,
    store: Path,
    name: str | None,
    started: str,
) -> None:
    from dataclasses import asdict

    store.parent.mkdir(parents=True, exist_ok=True)
    spec = RunSpec(
        task=task,
        dataset=PREFIX + (name or folder.resolve().name),
        dataset_fingerprint=hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
        protocol="shards",
        case="clean",
        value=None,
        model="bigcn",
        settings={"model": model, "training": asdict(config)},
        seed=seed,
        device=device,
    )
    validated = {f"val_{key}": value for key, value in run.result.val_metrics.items()}
    result = RunResult(
        metrics=run.result.metrics | validated,
        seconds=run.result.seconds,
        started=started,
        epochs=run.result.epochs,
        details={"best_epoch": run.result.best_epoch, "stopped": run.result.stopped},
    )
    with RunStore(store) as runs:
        runs.append(spec, result)


def _say(run: ShardedRun, sent: list[dict[str, int]], task: str, save: Path | None, as_json: bool) -> None:
    result = run.result
    if as_json:
        print_json(
            {
                "task": task,
                "epochs": result.epochs,
                "best_epoch": result.best_epoch,
                "resumed": run.resumed,
                "val": result.val_metrics,
                "test": result.metrics,
                "sent": sent,
                "model": None if save is None else str(save),
            }
        )
        return
    scores = ", ".join(f"{name.replace('_', ' ')} {100 * value:.1f} %" for name, value in result.metrics.items())
    output.print(f"Best epoch {result.best_epoch} of {result.epochs}; on the test part: {scores}.", soft_wrap=True)
    if save is not None:
        output.print(f"The model: {save}", markup=False, soft_wrap=True)
