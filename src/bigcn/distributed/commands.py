"""What commands do in one process of those that `torchrun` started, or in the only one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from bigcn.distributed.predictions import write_predictions
from bigcn.distributed.processes import TIMEOUT, Processes, run_process
from bigcn.distributed.running import ShardedRun, predict_shards, train_shards
from bigcn.training.checkpoint import Checkpoint, load_checkpoint
from bigcn.training.config import Progress, TrainConfig


def train_command(
    shards: Path,
    *,
    task: Literal["node", "link"],
    model: dict[str, Any],
    config: TrainConfig,
    seed: int,
    save: Path | None,
    overwrite: bool,
    done: Callable[[ShardedRun, dict[str, Any]], None],
    device: str,
    checkpoint_every: int = 20,
    timeout: float = TIMEOUT,
) -> None:
    """Trains on shards; the first process says how it goes.

    Args:
        shards (Path): The folder that `bigcn partition` wrote.
        task, model, config, seed, save, overwrite, checkpoint_every: See
            :func:`~bigcn.distributed.running.train_shards`.
        done (Callable): Called in the first process with the run and with what machines would want to know of it.
        device, timeout: See :func:`~bigcn.distributed.processes.run_process`.
    """

    def work(processes: Processes) -> None:
        def tell(progress: Progress) -> None:
            if processes.leads and (progress.epoch % 10 == 0 or progress.epoch == progress.max_epochs):
                score = "" if progress.score is None else f", validation {100 * progress.score:.1f} %"
                print(f"epoch {progress.epoch}: loss {progress.loss:.4f}{score}", file=sys.stderr, flush=True)

        run = train_shards(
            shards,
            processes,
            task=task,
            model=model,
            config=config,
            seed=seed,
            save=save,
            overwrite=overwrite,
            checkpoint_every=checkpoint_every,
            on_epoch=tell,
        )
        sent = processes.gather(run.traffic)
        if processes.leads:
            done(run, _document(run, sent, task, save))

    run_process(work, device, timeout)


def predict_command(shards: Path, model: Path, out: Path, device: str, timeout: float = TIMEOUT) -> None:
    """Predicts the classes of all nodes of shards.

    Args:
        shards (Path): The folder that `bigcn partition` wrote.
        model (Path): The folder of a model.
        out (Path): The table to write.
        device, timeout: See :func:`~bigcn.distributed.processes.run_process`.
    """

    def load() -> Checkpoint:
        if out.suffix.lower() != ".csv":
            raise ValueError(f"{out} must end in .csv: predictions for shards are written as nothing else")
        return load_checkpoint(model)

    def work(processes: Processes) -> None:
        checkpoint = processes.together(load)
        if checkpoint.task == "link":
            raise ValueError(f"{model} was trained to tell links, and has no classes to predict")
        predictions = predict_shards(shards, processes, checkpoint.model, encoding=checkpoint.encoding)
        write_predictions(out, predictions, shards, processes, checkpoint.details.get("temperature", 1.0))

    run_process(work, device, timeout)


def _document(run: ShardedRun, sent: list[dict[str, int]], task: str, save: Path | None) -> dict[str, Any]:
    return {
        "task": task,
        "epochs": run.result.epochs,
        "best_epoch": run.result.best_epoch,
        "resumed": run.resumed,
        "val": run.result.val_metrics,
        "test": run.result.metrics,
        "sent": sent,
        "model": None if save is None else str(save),
    }
