"""Which forms of BiGCN validation should choose from: many of them under four weight decays, on validation data alone.

Run on a GPU:  BIGCN_DATA=... python benchmarks/candidate_forms.py

Clean graphs and noise of level 0.5, three seeds, test data never looked at. The three forms that together come closest
to the best form everywhere are what the reproduction lets validation choose from (`bigcn/experiments/contenders.py`).
"""

import argparse
import itertools
from pathlib import Path
from typing import Any

from bigcn.experiments.contenders import WEIGHT_DECAYS, Candidate, Contender
from bigcn.experiments.paper import CHOICE_SEEDS, NODE_GRAPHS, Experiment, Series
from bigcn.experiments.reproduction import Reproduction, Setting
from bigcn.experiments.store import RunStore
from common import store

GRAPHS = ("none", "uniform+code+feature=1", "spectral")
NOISY = ("cora", "citeseer", "pubmed", "photo")

#: Words, hidden units and dropout of a form.
Form = tuple[str, int, float]


def forms(noisy: bool) -> list[Form]:
    """Returns the forms that are tried."""
    two = GRAPHS[:2]
    if noisy:
        return [
            *((f"{graph}+node={s}", 64, 0.5) for graph, s in itertools.product(GRAPHS, (5, 10, 40))),
            *((f"none+node={s}", 64, 0.8) for s in (5, 10, 40)),
            *(
                (f"{graph}+node=0+hidden={s}", 64, 0.5)
                for graph, s in itertools.product(("none", "spectral"), (10, 40))
            ),
        ]
    return [
        *((f"{graph}+node={s}", 64, p) for graph, s, p in itertools.product(GRAPHS, (2, 5, 10), (0.5, 0.8))),
        *((f"{graph}+node={s}", 256, 0.5) for graph, s in itertools.product(two, (2, 5, 10))),
        *((f"{graph}+node=0+hidden={s}", 64, p) for graph, s, p in itertools.product(two, (5, 10), (0.5, 0.8))),
    ]


def decays(form: Form, noisy: bool) -> tuple[float, ...]:
    """Returns the weight decays that a form is tried with: two where it is large, or far behind."""
    if form[1] > 64:
        return WEIGHT_DECAYS[:2]
    return WEIGHT_DECAYS[::2] if noisy and "hidden" in form[0] else WEIGHT_DECAYS


def experiment(noisy: bool) -> Experiment:
    """Returns the forms as an experiment on clean or on noisy graphs."""
    contenders = tuple(
        Contender(
            f"{words}, {hidden} units, dropout {dropout}, weight decay {decay}",
            words,
            "fixed",
            (
                Candidate(
                    f"bigcn:exact+{words}",
                    {"hidden_channels": hidden, "dropout": dropout, "tolerance": 1e-3},
                    {"weight_decay": decay, "max_epochs": 2_000},
                ),
            ),
        )
        for words, hidden, dropout in forms(noisy)
        for decay in decays((words, hidden, dropout), noisy)
    )
    clean = tuple(Series("node", graph) for graph in NODE_GRAPHS)
    noise = tuple(Series("node", graph, "noise-level", (0.5,)) for graph in NOISY)
    return Experiment("forms", "Forms", noise if noisy else clean, contenders)


def rows_of(work: Reproduction) -> list[dict[str, Any]]:
    """Returns the mean validation accuracy of everything that has run."""
    return [
        {
            "graph": cell.series.graph,
            "case": cell.series.case,
            "form": cell.contender.title,
            "hidden_channels": cell.candidate.settings["hidden_channels"],
            "dropout": cell.candidate.settings["dropout"],
            "weight_decay": cell.candidate.training["weight_decay"],
            "validation": cell.row()["validation"],
        }
        for cell in work.cells()
    ]


def best_triples(rows: list[dict[str, Any]], count: int = 10) -> list[tuple[float, tuple[Form, ...]]]:
    """Returns the sets of three forms by how far their best lies below the best of all, averaged over the cells."""
    best: dict[tuple[str, str], dict[Form, float]] = {}
    for row in rows:
        cell = best.setdefault((row["graph"], row["case"]), {})
        form = (row["form"], row["hidden_channels"], row["dropout"])
        cell[form] = max(cell.get(form, 0.0), row["validation"])
    everything = sorted({form for cell in best.values() for form in cell})
    found: list[tuple[float, tuple[Form, ...]]] = []
    for triple in itertools.combinations(everything, 3):
        gaps = [max(cell.values()) - max(cell.get(form, 0.0) for form in triple) for cell in best.values()]
        found.append((sum(gaps) / len(gaps), triple))
    return sorted(found)[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("runs/forms.sqlite"))
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    options.store.parent.mkdir(parents=True, exist_ok=True)
    with RunStore(options.store) as runs:
        work = Reproduction([experiment(False), experiment(True)], runs, Setting(options.device, CHOICE_SEEDS))
        work.run()
        rows = rows_of(work)
    tell(rows)
    print(f"stored in results/{store('candidate-forms', 'python benchmarks/candidate_forms.py', rows).name}")


def tell(rows: list[dict[str, Any]]) -> None:
    """Prints the best sets of three."""
    for gap, triple in best_triples(rows):
        described = "; ".join(f"{words}, {hidden} units, dropout {dropout}" for words, hidden, dropout in triple)
        print(f"{100 * gap:.2f} points below the best: {described}")


if __name__ == "__main__":
    main()
