"""Populations that see the part of a graph which their answers depend on, against the same that see all of it.

Run:  BIGCN_DATA=... python benchmarks/population_parts.py

Members with noisy features of their own take turns with and without parts, evaluation included; each ratio is the time
on all of the graph over the time on parts, and the median over rounds is given. The nodes seen are those of a training
step and of an evaluation.
"""

import argparse
import statistics
import time
from unittest import mock

from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import _members
from bigcn.experiments.graphs import GraphSource
from bigcn.training import population_state
from bigcn.training.population import Member, train_population
from bigcn.training.population_state import PopulationStep
from common import store

MODELS = "gcn,gdc,sage,gin,gat,mlp"


def make_members(graph: str, model: str, count: int, epochs: int, device: str) -> list[Member]:
    comparison = Comparison(
        dataset=graph,
        models=(model,),
        case="noise-level",
        values=(0.5,),
        seeds=tuple(range(count)),
        device=device,
        training={"max_epochs": epochs, "patience": None},
    )
    return _members(comparison.specs(), GraphSource(), {})


def seconds(members: list[Member], parts: bool) -> float:
    """Returns the time of training alone, without what is made once."""
    whole = mock.patch.object(population_state, "parts_reached", return_value=(None, None))
    start = time.perf_counter()
    if parts:
        train_population(members)
    else:
        with whole:
            train_population(members)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="cora,citeseer,pubmed,computers,photo")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rows = []
    for graph in options.graphs.split(","):
        for model in options.models.split(","):
            members = make_members(graph, model, options.members, options.epochs, options.device)
            step = PopulationStep(members, capture=False)
            trained, scored = (seen.graph.values[0].size(-2) for seen in (step.training, step.scoring))
            del step
            ratios = [seconds(members, parts=False) / seconds(members, parts=True) for _ in range(options.rounds)]
            rows.append(
                {
                    "graph": graph,
                    "model": model,
                    "nodes": members[0].task.x.size(0),
                    "trained": trained,
                    "scored": scored,
                    "ratio": round(statistics.median(ratios), 2),
                    "ratios": [round(ratio, 2) for ratio in ratios],
                }
            )
            print(
                f"{graph:10s} {model:5s} {trained:6d} and {scored:6d} nodes: {rows[-1]['ratio']:.2f} times", flush=True
            )
    words = " ".join(f"--{name} {value}" for name, value in vars(options).items())
    command = f"python benchmarks/population_parts.py {words}"
    print(f"stored in results/{store('population-parts', command, rows).name}")


if __name__ == "__main__":
    main()
