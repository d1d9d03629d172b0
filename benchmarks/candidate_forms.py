"""Which forms of BiGCN validation should choose from: many of them under four weight decays, on validation data alone.

Run on a GPU:  BIGCN_DATA=... python benchmarks/candidate_forms.py

Clean graphs, noise of level 0.5 and wrong edges, three seeds, test data never looked at. The twelve candidates that
together come closest to the best everywhere (six forms under two weight decays, four under three or three under four)
are what the reproduction lets validation choose from (`bigcn/experiments/contenders.py`). What runs is added to the
results that are there; `--stored` tells the best of them, runs nothing and writes nothing.
"""

import argparse
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bigcn.experiments.contenders import WEIGHT_DECAYS, Candidate, Contender
from bigcn.experiments.paper import CHOICE_SEEDS, LEVELS, MISTAKES, NODE_GRAPHS, PUBMED_MISTAKES, Experiment, Series
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.experiments.store import RunStore
from common import RESULTS, store, this_host

GRAPHS = ("none", "uniform+code+feature=1", "spectral")

#: Words, hidden units and dropout of a form.
Form = tuple[str, int, float]
#: How far below the best, the forms, their weight decays.
Pool = tuple[float, tuple[Form, ...], tuple[float, ...]]
#: How many candidates every model has; how many pools are told.
SIZE, SHOWN = 12, 6
NAME = "candidate-forms"


def forms(case: str) -> list[Form]:
    """Returns the forms that are tried on clean data or under a kind of noise."""
    two = GRAPHS[:2]
    # A small p keeps more of what a node has itself.
    kept = [
        (f"{graph}+node=5+p={p}", 64, dropout)
        for graph, (p, dropout) in itertools.product(
            ("none", "spectral"), ((0.03, 0.5), (0.1, 0.5), (0.1, 0.8), (0.3, 0.5))
        )
    ]
    if case == "structure-mistakes":
        mild = [(f"{graph}+node={s}", 64, 0.5) for graph, s in itertools.product(GRAPHS, (2, 5, 40))]
        return [*kept, *mild, ("none+node=40", 64, 0.8), ("none+node=0+hidden=10", 64, 0.5)]
    if case == "noise-level":
        return [
            *kept,
            *((f"{graph}+node={s}", 64, 0.5) for graph, s in itertools.product(GRAPHS, (2, 5, 10, 40))),
            *((f"none+node={s}", 64, 0.8) for s in (5, 10, 40)),
            *(
                (f"{graph}+node=0+hidden={s}", 64, 0.5)
                for graph, s in itertools.product(("none", "spectral"), (10, 40))
            ),
        ]
    return [
        *kept,
        *((f"{graph}+node={s}", 64, p) for graph, s, p in itertools.product(GRAPHS, (2, 5, 10), (0.5, 0.8))),
        *((f"{graph}+node={s}", 256, 0.5) for graph, s in itertools.product(two, (2, 5, 10))),
        *((f"{graph}+node=0+hidden={s}", 64, p) for graph, s, p in itertools.product(two, (5, 10), (0.5, 0.8))),
    ]


def decays(form: Form, case: str) -> tuple[float, ...]:
    """Returns the weight decays that a form is tried with: two where it is large, or far behind."""
    if form[1] > 64:
        return WEIGHT_DECAYS[:2]
    return WEIGHT_DECAYS[::2] if case == "noise-level" and "hidden" in form[0] else WEIGHT_DECAYS


def experiment(case: str, only: str) -> Experiment:
    """Returns the forms on clean graphs or under a kind of noise as an experiment."""
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
        for words, hidden, dropout in forms(case)
        if re.search(only, words)
        for decay in decays((words, hidden, dropout), case)
    )
    return Experiment("forms", "Forms", tuple(places(case)), contenders)


def places(case: str) -> Iterator[Series]:
    """Gives the graphs that forms are tried on, at the amount of noise where the reproduction chooses."""
    for graph in NODE_GRAPHS:
        mistakes = PUBMED_MISTAKES if graph == "pubmed" else MISTAKES
        whole = Series("node", graph, case, {"clean": (), "noise-level": LEVELS, "structure-mistakes": mistakes}[case])
        value = whole.decided_at[1]
        yield replace(whole, values=() if value is None else (value,))


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


def best_pools(rows: list[dict[str, Any]]) -> list[Pool]:
    """Returns pools of twelve candidates by how far their best lies below the best of all, averaged over the cells:
    the best one for each set of weight decays.
    """
    cells = sorted({(row["graph"], row["case"]) for row in rows})
    everything = sorted({(row["form"], row["hidden_channels"], row["dropout"]) for row in rows})
    scores = np.zeros((len(everything), len(WEIGHT_DECAYS), len(cells)))
    for row in rows:
        form = everything.index((row["form"], row["hidden_channels"], row["dropout"]))
        cell = cells.index((row["graph"], row["case"]))
        scores[form, WEIGHT_DECAYS.index(row["weight_decay"]), cell] = row["validation"]
    behind = scores.max((0, 1)) - scores
    found: list[Pool] = []
    for size in (2, 3, 4):
        for chosen in itertools.combinations(range(len(WEIGHT_DECAYS)), size):
            gap, some = _closest(behind[:, list(chosen)].min(1), SIZE // size)
            found.append((gap, tuple(everything[form] for form in some), tuple(WEIGHT_DECAYS[i] for i in chosen)))
    return sorted(found)


def _closest(behind: np.ndarray, count: int, starts: int = 10) -> tuple[float, tuple[int, ...]]:
    """Returns the forms whose best lies least behind, found from several starts by exchanging one for another."""
    found = []
    for seed in range(starts):
        chosen = np.random.default_rng(seed).choice(len(behind), count, replace=False).tolist()
        gap = np.inf
        while True:
            # Without the one that leaves, the others' best; with each that could come, the mean.
            tried = [(np.minimum(behind, behind[chosen[:i] + chosen[i + 1 :]].min(0)).mean(1), i) for i in range(count)]
            means, leaving = min(tried, key=lambda pair: pair[0].min())
            if means.min() >= gap - 1e-12:
                break
            gap, chosen[leaving] = float(means.min()), int(means.argmin())
        found.append((gap, tuple(sorted(chosen))))
    return min(found)


def added(stored: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns stored rows and new ones, the new one of two that are about the same."""
    found = {tuple(value for key, value in row.items() if key != "validation"): row for row in [*stored, *new]}
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("runs/reproduce.sqlite"), help="runs that are there count")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", metavar="PATTERN", help="forms whose words this is found in, as in p=")
    parser.add_argument("--stored", action="store_true", help="run nothing")
    options = parser.parse_args()
    known = json.loads((RESULTS / f"{NAME}.json").read_text())
    rows, hosts = known["rows"], known["hosts"]
    if not options.stored:
        options.store.parent.mkdir(parents=True, exist_ok=True)
        with RunStore(options.store) as runs:
            experiments = [experiment(case, options.only) for case in ("clean", "noise-level", "structure-mistakes")]
            work = Reproduction(experiments, runs, Setting(options.device, CHOICE_SEEDS))
            work.run()
            rows = added(rows, rows_of(work))
        hosts += [host for host in [this_host()] if host not in hosts]
        print(f"stored in results/{store(NAME, 'python benchmarks/candidate_forms.py', rows, hosts).name}")
    print(f"{len({(row['form'], row['hidden_channels'], row['dropout']) for row in rows})} forms, {len(rows)} scores")
    for gap, some, decays in best_pools(rows)[:SHOWN]:
        described = "; ".join(f"{words}, {hidden} units, dropout {dropout}" for words, hidden, dropout in some)
        print(f"{100 * gap:.2f} points below the best: {described}; weight decay {', '.join(map(str, decays))}")


if __name__ == "__main__":
    main()
