"""`bigcn train` on shards, and what it leaves in the store."""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from bigcn.cli import own
from bigcn.cli.common import errors, output, print_json
from bigcn.distributed.commands import train_command
from bigcn.distributed.running import ShardedRun
from bigcn.distributed.shards import MANIFEST
from bigcn.estimators.candidates import DEFAULT_MODEL, DEFAULT_TRAINING
from bigcn.experiments.own import PREFIX
from bigcn.experiments.records import RunResult, RunSpec, utc_now
from bigcn.experiments.store import RunStore
from bigcn.training.config import TrainConfig


def is_sharded(nodes: Path) -> bool:
    """Tells whether a path is a folder that `bigcn partition` wrote."""
    return nodes.is_dir() and (nodes / MANIFEST).exists()


def refuse_options(context: typer.Context, *allowed: str) -> None:
    """Refuses options that were given and speak of tables, which shards no longer are.

    Args:
        context (typer.Context): The running command.
        *allowed (str): The names of the parameters that shards have a use for.
    """
    for parameter in context.command.params:
        assert parameter.name is not None
        source = context.get_parameter_source(parameter.name)
        if parameter.name in allowed or source is None or source.name == "DEFAULT":
            continue
        named = parameter.name.upper() if parameter.param_type_name == "argument" else parameter.opts[0]
        raise ValueError(f"'{named}' is for tables: shards were read, split and named by 'bigcn partition'")


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
    store.parent.mkdir(parents=True, exist_ok=True)  # before anything is trained, not after
    training = DEFAULT_TRAINING[task] | ({} if max_epochs is None else {"max_epochs": max_epochs})
    config, model = TrainConfig(**training), dict(DEFAULT_MODEL[task])
    started = utc_now()

    def done(run: ShardedRun, document: dict[str, Any]) -> None:
        _remember(run, folder, task, model, config, seed, device, store, name, started)
        if as_json:
            print_json(document)
        else:
            _say(run)
        own.print_model(save, errors if as_json else output)

    train_command(
        folder,
        task=task,  # type: ignore[arg-type]
        model=model,
        config=config,
        seed=seed,
        save=save,
        overwrite=force,
        done=done,
        device=device,
    )


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


def _say(run: ShardedRun) -> None:
    result = run.result
    scores = ", ".join(f"{name.replace('_', ' ')} {100 * value:.1f} %" for name, value in result.metrics.items())
    output.print(f"Best epoch {result.best_epoch} of {result.epochs}; on the test part: {scores}.", soft_wrap=True)
