"""What the processes of a test do. Loaded by path in each of them, with :obj:`JOB` saying what."""

import os
import signal
from pathlib import Path
from typing import Any

import torch

from bigcn import BiGCN
from bigcn.distributed import (
    DistributedGraph,
    Processes,
    feature_graph_bytes,
    hop_bytes,
    joined,
    predict_shards,
    train_distributed,
    train_shards,
)
from bigcn.distributed.loop import counted_dropout, reduce_gradients, share_parameters
from bigcn.distributed.processes import LostProcess
from bigcn.distributed.running import make_task, open_shard
from bigcn.training import TrainConfig, seeded


def hops(processes: Processes, shards: str, width: int) -> dict[str, Any]:
    """One hop of random rows, and the gradient of another random sum of it."""
    shard = open_shard(shards, processes)
    graph = DistributedGraph.from_shard(shard, processes, torch.float64)
    rows = torch.from_numpy(shard.array("rows").copy())
    whole = torch.randn(2, shard.manifest.nodes, width, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    block = whole[0, rows].requires_grad_()
    before = processes.traffic["hops"]
    out = graph(block)
    (out * whole[1, rows]).sum().backward()
    sent = processes.traffic["hops"] - before
    return {
        "rows": rows,
        "out": out.detach(),
        "grad": block.grad,
        "sent": sent,
        "listed": 2 * graph.exchange.rows_sent * width * 8,
        "sizes": (graph.num_nodes, graph.num_edges),
    }


def counted(processes: Processes) -> dict[str, Any]:
    """Rows for everybody, oneself included, and what is counted of them."""
    send = [rank + 1 for rank in range(processes.size)]
    rows = torch.full((sum(send), 3), processes.rank, dtype=torch.float64)
    received = processes.exchange(rows, send, [processes.rank + 1] * processes.size, "pairs")()
    return {"received": received, "traffic": dict(processes.traffic)}


def learn(
    processes: Processes, shards: str, cases: list[tuple[str, dict, dict, dict]], epochs: int
) -> list[dict[str, Any]]:
    """The first loss and its gradients, then a few epochs of training, for several models."""
    found = []
    for task_name, settings, options, config in cases:
        shard = open_shard(shards, processes)
        task = make_task(task_name, shard, processes, torch.float64, 0, **options)
        with seeded(0):
            model = BiGCN(shard.manifest.features, out_channels=task.num_outputs, **settings).double()
        share_parameters(model, processes)
        model.train()
        with counted_dropout(model, task.rows, 0) as dropout:
            dropout.begin(1)
            before = dict(processes.traffic)
            loss = task.loss(model, 1)
            loss.backward()
            sent = processes.traffic["hops"] - before.get("hops", 0)
            loss = reduce_gradients(list(model.parameters()), loss.detach(), processes)
        predicted = hop_bytes(model, task.graph, task.x, backward=True)
        predicted += feature_graph_bytes(model, task.graph, task.x)
        gradients = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        before = processes.traffic["hops"]
        result = train_distributed(model, task, processes, TrainConfig(max_epochs=epochs, curves=True, **config))
        sent_epochs = processes.traffic["hops"] - before
        one = hop_bytes(model, task.graph, task.x, backward=True) + hop_bytes(model, task.graph, task.x)
        with torch.no_grad():
            outputs = task.outputs(model)
        found.append(
            {
                "rows": task.rows,
                "loss": loss,
                "gradients": gradients,
                "sent": sent,
                "predicted": predicted,
                "sent in training": sent_epochs,
                "predicted in training": epochs * one,
                "outputs": outputs,
                "losses": result.curves["loss"],
                "scores": result.val_metrics | {f"test {k}": v for k, v in result.metrics.items()},
                "best": result.best_epoch,
                "pairs": {p: task.pairs(p) for p in ("train", "val", "test")} if task_name == "link" else None,
                "fresh": task.pairs("train", 5) if task_name == "link" else None,
            }
        )
    return found


def masks(processes: Processes, shards: str, p: float, drops_input: bool) -> dict[str, Any]:
    """Dropout masks of two layers and two epochs, and a training run with dropout."""
    shard = open_shard(shards, processes)
    task = make_task("node", shard, processes, torch.float64, 0)
    model = BiGCN(shard.manifest.features, 8, 2, task.num_outputs, dropout=p, cached=True).double()
    kept = {}
    with counted_dropout(model, task.rows, 7) as dropout:
        for epoch in (1, 2):
            dropout.begin(epoch)
            kept[epoch] = [dropout.mask(layer, 8) for layer in (0, 1)]
    run = train_shards(
        shards,
        processes,
        model={"hidden_channels": 8, "dropout": p, "drops_input": drops_input},
        config=TrainConfig(max_epochs=3, curves=True),
        dtype=torch.float64,
    )
    evaluates = not any(part.training for part in run.model.modules())
    return {"rows": task.rows, "kept": kept, "losses": run.result.curves["loss"], "evaluates": evaluates}


def run(
    processes: Processes, shards: str, save: str | None = None, different: bool = False, epochs: int = 6, **options: Any
) -> dict[str, Any]:
    """A whole run, with its predictions."""
    seed = processes.rank if different else 0
    config = TrainConfig(max_epochs=epochs, curves=True)
    done = train_shards(shards, processes, config=config, seed=seed, save=save, dtype=torch.float64, **options)
    predictions = predict_shards(shards, processes, done.model, dtype=torch.float64)
    return {
        "losses": done.result.curves["loss"],
        "metrics": done.result.metrics,
        "state": done.model.state_dict(),
        "rows": predictions.rows,
        "outputs": predictions.outputs,
    }


def killed(processes: Processes, shards: str) -> dict[str, Any]:
    """A run in which the second process dies in the third epoch."""

    def die(progress: Any) -> None:
        if progress.epoch == 3 and processes.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    train_shards(shards, processes, config=TrainConfig(max_epochs=50), on_epoch=die)
    return {}


def command(words: list[str], out: str) -> None:
    """A command as the shell would start it, what it says in files."""
    from bigcn.distributed.__main__ import app

    rank = os.environ["RANK"]
    with (Path(out) / f"{rank}.out").open("w") as said, (Path(out) / f"{rank}.err").open("w") as complained:
        os.dup2(said.fileno(), 1)
        os.dup2(complained.fileno(), 2)
        app(words)


def main(job: dict[str, Any]) -> None:
    os.environ |= job["environment"]
    torch.set_num_threads(1)
    if job["do"] == "command":
        command(**job["arguments"])
    out = Path(job["out"]) / f"{job['environment'].get('RANK', '0')}.pt"
    try:
        with joined(timeout=60) as processes:
            result = globals()[job["do"]](processes, **job["arguments"])
    except LostProcess as error:
        torch.save({"lost": str(error)}, out)
        os._exit(3)
    except ValueError as error:
        torch.save({"error": str(error)}, out)
        os._exit(2)
    torch.save(result, out)


if "JOB" in globals():
    main(globals()["JOB"])
