"""What the paper may have meant where it does not say.

Readings of its link prediction (of a GCN as well), of its fixed feature graph, of its GIN and GAT and of the published
form on Computers, ten seeds each, beside what it prints.

Run on a GPU:  BIGCN_DATA=... python benchmarks/readings.py
The table again:  python benchmarks/readings.py --stored

No code is public for the first two. A reading is judged by all published numbers together, not one by one.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bigcn.experiments.cells import protocol_of
from bigcn.experiments.contenders import PUBLISHED
from bigcn.experiments.execution import execute
from bigcn.experiments.paper import LEVELS, LINK_GRAPHS, RATES, SEEDS, Series
from bigcn.experiments.process_executor import ProcessExecutor
from bigcn.experiments.published import published_number
from bigcn.experiments.records import RunSpec
from bigcn.experiments.specs import METRICS, make_run
from bigcn.experiments.store import RunStore
from common import RESULTS, added, made_by, store

NAME = "readings"
KEYS = ("about", "reading", "graph", "case", "value")
Place = tuple[Series, float | None]


class Reading(NamedTuple):
    """One way to read what the paper leaves open.

    Args:
        about (str): What is read.
        words (str): How.
        row (str): The name of the paper's numbers.
        places (tuple): Where it prints them.
        model (str): A model by name.
        settings, training (dict): Changes to the model and to how it is trained.
        negatives (str): Of link prediction.
    """

    about: str
    words: str
    row: str
    places: tuple[Place, ...]
    model: str
    settings: dict[str, Any]
    training: dict[str, Any]
    negatives: str = "fresh"


def of_links() -> Iterator[Reading]:
    """Gives readings of link prediction."""
    places = tuple((Series("link", graph), None) for graph in LINK_GRAPHS)
    released = {"init": "released"}  # as in the code for nodes, where nothing else is said
    for operator, negatives, decay in product(("code", "text"), ("fresh", "fixed"), (0.0, 5e-4, 2e-3, 7e-3)):
        words = f"{operator} form, {negatives} negatives, weight decay {decay:g}"
        model = f"bigcn:published+{operator}"
        yield Reading("links", words, PUBLISHED.name, places, model, released, {"weight_decay": decay}, negatives)
    # The text has a penalty on every layer's graph, and says nothing of initial values.
    others: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "penalty on both layers": (released | {"penalty_layers": "all"}, {}),
        "no penalty": (released, {"penalty": 0.0}),
        "initial values of PyG's layers": ({"init": "glorot"}, {}),
        "no dropout": (released | {"dropout": 0.0}, {}),
    }
    for words, (settings, training) in others.items():
        words = f"code form, fresh negatives, weight decay 0.0005, {words}"
        yield Reading("links", words, PUBLISHED.name, places, "bigcn:published+code", settings, training)
    words = "code form, fixed negatives, weight decay 0.0005, initial values of PyG's layers"
    yield Reading("links", words, PUBLISHED.name, places, "bigcn:published+code", {"init": "glorot"}, {}, "fixed")
    for negatives in ("fresh", "fixed"):
        yield Reading("links of GCN", f"{negatives} negatives", "gcn", places, "gcn", {}, {}, negatives)


def of_the_fixed_graph() -> Iterator[Reading]:
    """Gives readings of the fixed feature graph."""
    series = (Series("node", "cora", "noise-rate", RATES), Series("node", "cora", "noise-level", LEVELS))
    places = tuple((one, value) for one in series for value in one.values)
    # Of what is computed from a hidden layer or learned there, the decays of the text and of the code alone.
    for hidden, decay, loops in product(("identity", "none", "uniform"), (5e-4, 7e-3, 2e-2), (True, False)):
        if loops or decay == 7e-3:
            yield _fixed(places, hidden, decay, loops)
    for hidden, decay in product(("learnable", "correlation"), (5e-4, 7e-3)):
        yield _fixed(places, hidden, decay)


def _fixed(places: tuple[Place, ...], hidden: str, decay: float, loops: bool = True) -> Reading:
    words = f"{hidden} above, weight decay {decay:g}" + ("" if loops else ", without self-loops")
    settings = {"hidden_feature_graph": hidden} | ({} if loops else {"feature_graph_kwargs": {"self_loops": False}})
    return Reading("fixed", words, "fixed", places, "bigcn:published+correlation", settings, {"weight_decay": decay})


def of_the_published_form() -> Iterator[Reading]:
    """Gives readings of the published form on the graph where it lies furthest from the paper."""
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "as it is": ({}, {}),
        "weight decay 0.002": ({}, {"weight_decay": 2e-3}),
        "weight decay 0.007": ({}, {"weight_decay": 7e-3}),
        "no weight decay": ({}, {"weight_decay": 0.0}),
        "penalty on both layers": ({"penalty_layers": "all"}, {}),
        "no penalty": ({}, {"penalty": 0.0}),
        "initial values of PyG's layers": ({"init": "glorot"}, {}),
    }
    for words, (settings, training) in changes.items():
        yield Reading("nodes", words, PUBLISHED.name, _of_nodes("computers"), PUBLISHED.name, settings, training)


def of_gat() -> Iterator[Reading]:
    """Gives readings of GAT on the graphs where it lies far above the paper."""
    changes: dict[str, dict[str, Any]] = {"rows scaled": {"scales_rows": True}, "dropout 0.6": {"dropout": 0.6}}
    for words, settings in changes.items():
        yield Reading("gat", words, "gat", _of_nodes("computers", "photo"), "gat", settings, {})


def of_gin_on_citeseer() -> Iterator[Reading]:
    """Gives readings of GIN on the graph where it lies far above the paper."""
    for layers, scaled in product((1, 2), (False, True)):
        words = f"{layers} layers in a perceptron" + ", rows scaled" * scaled
        settings = {"perceptron_layers": layers, "scales_rows": scaled}
        yield Reading("gin on citeseer", words, "gin", _of_nodes("citeseer"), "gin", settings, {})


def _of_nodes(*graphs: str) -> tuple[Place, ...]:
    return tuple((Series("node", graph), None) for graph in graphs)


def of_gin() -> Iterator[Reading]:
    """Gives readings of GIN on the graphs where it hardly learns."""
    places = _of_nodes("computers", "photo")
    for layers, scaled, decay in product((1, 2), (False, True), (0.0, 5e-4, 7e-3)):
        words = f"{layers} layers in a perceptron, weight decay {decay:g}" + ", rows scaled" * scaled
        settings = {"perceptron_layers": layers} | ({"scales_rows": True} if scaled else {})
        yield Reading("gin", words, "gin", places, "gin", settings, {"weight_decay": decay, "max_epochs": 2_000})


READINGS = {
    "links": of_links,
    "fixed": of_the_fixed_graph,
    "gin": of_gin,
    "gin on citeseer": of_gin_on_citeseer,
    "gat": of_gat,
    "nodes": of_the_published_form,
}


def specs(reading: Reading, device: str) -> dict[tuple[int, int], RunSpec]:
    """Returns the runs of a reading, by the number of their place and their seed."""
    return {
        (number, seed): make_run(
            reading.model,
            task=series.task,
            dataset=series.graph,
            protocol=protocol_of(series),
            case=series.case,
            value=value,
            seed=seed,
            device=device,
            settings=reading.settings,
            training=reading.training,
            negatives=reading.negatives,
        )
        for number, (series, value) in enumerate(reading.places)
        for seed in SEEDS
    }


def rows_of(reading: Reading, runs: dict[tuple[int, int], RunSpec], kept: RunStore) -> Iterator[dict[str, Any]]:
    """Gives the mean of a reading in each place, beside the paper's."""
    scores = defaultdict(list)
    for (number, _), spec in runs.items():
        if (result := kept.get(spec)) is not None and result.status == "ok":
            scores[number].append(100 * result.metrics[METRICS[spec.task]])
    for number, (series, value) in enumerate(reading.places):
        if len(scores[number]) == len(SEEDS):
            yield {
                "about": reading.about,
                "reading": reading.words,
                "graph": series.graph,
                "case": series.case,
                "value": value,
                "mean": round(float(np.mean(scores[number])), 2),
                "std": round(float(np.std(scores[number], ddof=1)), 2),
                "published": published_number(reading.row, series.task, series.graph, series.case, value),
            }


def print_table(rows: list[dict[str, Any]]) -> None:
    """Prints how far each reading lies from the paper, the nearest first."""
    gaps = defaultdict(list)
    for row in rows:
        gaps[row["about"], row["reading"]].append(row["mean"] - row["published"])
    for about in dict.fromkeys(row["about"] for row in rows):
        print(about)
        some = {words: np.array(gap) for (of, words), gap in gaps.items() if of == about}
        for words, gap in sorted(some.items(), key=lambda item: float(np.abs(item[1]).max())):
            each = " ".join(f"{g:+.1f}" for g in gap)
            print(f"  furthest {np.abs(gap).max():4.1f}, mean distance {np.abs(gap).mean():4.1f}  {words}: {each}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("runs/readings.sqlite"), help="runs that are there count")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--about", choices=READINGS, help="only these; what results/ has of others stays")
    parser.add_argument("--only", default="", help="only readings whose words match this regular expression")
    parser.add_argument("--processes", type=int, default=1, help="how many train at once")
    parser.add_argument("--stored", action="store_true", help="print the table of what results/ has")
    options = parser.parse_args()
    known = json.loads((RESULTS / f"{NAME}.json").read_text(encoding="utf-8"))
    rows = known["rows"]
    if options.stored:
        print_table(rows)
        return
    some = [
        reading
        for about in READINGS
        if options.about in (None, about)
        for reading in READINGS[about]()
        if re.search(options.only, reading.words)
    ]
    part = bool(options.about or options.only)
    options.store.parent.mkdir(parents=True, exist_ok=True)
    with RunStore(options.store) as kept, ProcessExecutor(options.processes) as executor:
        runs = [specs(reading, options.device) for reading in some]
        execute([spec for one in runs for spec in one.values()], kept, executor=executor)
        new = [row for reading, one in zip(some, runs, strict=True) for row in rows_of(reading, one, kept)]
        results = (kept.get(spec) for one in runs for spec in one.values())
        made = made_by(filter(None, results), known if part else {})
    rows = added(rows, new, KEYS) if part else new
    print_table(rows)
    print(f"stored in results/{store(NAME, 'python benchmarks/readings.py', rows, made).name}")
    if lost := sum(len(reading.places) for reading in some) - len(new):
        print(f"{lost} numbers lack: not all of their runs ended well")


if __name__ == "__main__":
    main()
