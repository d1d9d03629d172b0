"""One process of a run over shards: :obj:`torchrun --nproc-per-node=4 -m bigcn.distributed train shards`."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from bigcn.distributed.commands import predict_command, train_command
from bigcn.distributed.processes import TIMEOUT
from bigcn.distributed.running import ShardedRun
from bigcn.training.config import TrainConfig

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
Shards = Annotated[Path, typer.Argument(help="The folder that 'bigcn partition' wrote.")]
Device = Annotated[str, typer.Option(help="cpu (gloo) or cuda (NCCL, a GPU for each process).")]
Wait = Annotated[float, typer.Option(help="How many seconds to wait for a process that is silent.")]


@app.command()
def train(
    shards: Shards,
    task: Annotated[str, typer.Option(help="node or link.")] = "node",
    save: Annotated[Path | None, typer.Option(help="The folder for the model.")] = None,
    feature_graph: Annotated[str, typer.Option(help="The feature graph.")] = "none",
    hidden: Annotated[int, typer.Option(help="The width of hidden layers.", min=1)] = 16,
    layers: Annotated[int, typer.Option(help="The number of layers.", min=1)] = 2,
    dropout: Annotated[float, typer.Option(help="The share of entries dropped.", min=0, max=1)] = 0.5,
    learning_rate: Annotated[float, typer.Option(help="The step size of Adam.")] = 0.01,
    weight_decay: Annotated[float, typer.Option(help="The weight decay.")] = 5e-4,
    max_epochs: Annotated[int | None, typer.Option(help="The most epochs.", min=1)] = None,
    checkpoint_every: Annotated[int, typer.Option(help="Every how many epochs to write down the state.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Decides weights, dropout, and what the task draws.", min=0)] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an older model.")] = False,
    device: Device = "cpu",
    timeout: Wait = TIMEOUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Train on shards.

    Example:  torchrun --nproc-per-node=4 -m bigcn.distributed train shards --save model
    """
    changed: dict[str, Any] = {"learning_rate": learning_rate, "weight_decay": weight_decay}
    if max_epochs is not None:
        changed["max_epochs"] = max_epochs

    def done(run: ShardedRun, document: dict[str, Any]) -> None:
        if as_json:
            print(json.dumps(document, indent=2))
        else:
            shown = ", ".join(f"{name} {value:.4f}" for name, value in run.result.metrics.items())
            print(f"best epoch {run.result.best_epoch} of {run.result.epochs}: test {shown}")

    train_command(
        shards,
        task=cast(Any, task),
        model={
            "hidden_channels": hidden,
            "num_layers": layers,
            "dropout": dropout,
            "feature_graph": feature_graph,
        },
        config=TrainConfig.published(task, **changed),
        seed=seed,
        save=save,
        overwrite=overwrite,
        done=done,
        device=device,
        checkpoint_every=checkpoint_every,
        timeout=timeout,
    )


@app.command()
def predict(
    shards: Shards,
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="The table of predictions, .csv.")],
    device: Device = "cpu",
    timeout: Wait = TIMEOUT,
) -> None:
    """Predict the classes of all nodes.

    Example:  torchrun --nproc-per-node=4 -m bigcn.distributed predict shards model -o predictions.csv
    """
    predict_command(shards, model, out, device, timeout)


if __name__ == "__main__":
    app()
