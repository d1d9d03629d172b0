"""Populations against the same models one after the other.

Run:  BIGCN_DATA=... python benchmarks/population.py --device cuda

Each population trains some members with noise of their own for some epochs, evaluation included; one member alone is
trained as many epochs for comparison. Times are milliseconds per member and epoch.
"""

import argparse
import time

import torch

from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import Unit, run_unit
from bigcn.experiments.graphs import GraphSource
from bigcn.experiments.records import RunSpec
from common import store

MODELS = "gcn,sage,gat,gin,gdc,appnp,sgc,mlp,bigcn,bigcn:exact+spectral,bigcn:published"


def specs(graph: str, model: str, members: int, epochs: int, device: str, case: str, task: str) -> tuple[RunSpec, ...]:
    values = {"clean": (), "noise-level": (0.5,), "structure-mistakes": (0.0001 if graph == "pubmed" else 0.003,)}[case]
    comparison = Comparison(
        dataset=graph,
        models=(model,),
        task="link" if task == "link" else "node",
        case=case,
        values=values,
        seeds=tuple(range(members)),
        device=device,
        training={"max_epochs": epochs, "patience": None},
    )
    return tuple(comparison.specs())


def milliseconds(unit: Unit, graphs: GraphSource, epochs: int) -> float:
    """Returns the time of a unit per member and epoch; graphs and models are made before."""
    graphs.tasks(unit.specs)
    start = time.perf_counter()
    results = run_unit(unit, graphs)
    if unit.specs[0].device == "cuda":
        torch.cuda.synchronize()
    whole = time.perf_counter() - start
    trained = sum(result.seconds for result in results)
    return 1000 * min(whole, trained) / len(results) / epochs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="cora,citeseer,pubmed,computers")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--case", default="noise-level")
    parser.add_argument("--task", default="node")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rows = []
    for graph in options.graphs.split(","):
        graphs = GraphSource()
        for model in options.models.split(","):
            listed = specs(graph, model, options.members, options.epochs, options.device, options.case, options.task)
            run_unit(Unit(listed[:2], together=True), graphs)  # what is made once is made now
            together = milliseconds(Unit(listed, together=True), graphs, options.epochs)
            alone = milliseconds(Unit(listed[:1]), graphs, options.epochs)
            rows.append(
                {
                    "graph": graph,
                    "model": model,
                    "case": options.case,
                    "members": options.members,
                    "together_ms": together,
                    "alone_ms": alone,
                    "ratio": alone / together,
                }
            )
            print(
                f"{graph:10s} {model:22s} {together:8.3f} ms together {alone:8.3f} alone: {alone / together:6.1f} times"
            )
            if options.device == "cuda":
                torch.cuda.empty_cache()
    command = f"python benchmarks/population.py --device {options.device}"
    print(f"stored in results/{store('population', command, rows).name}")


if __name__ == "__main__":
    main()
