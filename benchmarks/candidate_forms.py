"""Which forms of BiGCN validation should choose from: many of them under four weight decays, on validation data alone.

Run on a GPU:  BIGCN_DATA=... python benchmarks/candidate_forms.py

Clean graphs, noise of level 0.5 and wrong edges, three seeds, test data never looked at. Sixteen pairs of a form and a
weight decay are what the reproduction lets validation choose from (`bigcn/experiments/contenders.py`): here is told how
far the best of them lies below the best of all, and which sixteen would come closest everywhere. What runs is added to
the results that are there; `--stored` runs nothing and writes nothing.
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

from bigcn.experiments.contenders import TUNED, WEIGHT_DECAYS, Candidate, Contender
from bigcn.experiments.paper import CHOICE_SEEDS, LEVELS, MISTAKES, NODE_GRAPHS, PUBMED_MISTAKES, Experiment, Series
from bigcn.experiments.process_executor import ProcessExecutor
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.experiments.store import RunStore
from common import RESULTS, added, made_by, store

GRAPHS = ("none", "uniform+code+feature=1", "spectral")

#: What names a candidate: words, hidden units, dropout, whether the input is dropped as well, normalisation of the
#: hidden layer, and weight decay.
KEYS = ("form", "hidden_channels", "dropout", "drops_input", "norm", "weight_decay")
#: Words, hidden units, dropout, whether the input is dropped as well, and normalisation.
Form = tuple[str, int, float, bool, str]
#: How many candidates every model has.
SIZE = 16
NAME = "candidate-forms"
#: The weight decays that forms with dropout on the input are tried with, by that dropout.
DECAYS_WITH_DROPPED_INPUT = {0.5: (2e-3,), 0.8: (2e-3, 7e-3)}
#: What came later, with its weight decays: local filters, batch normalisation, filters that keep nothing of a node
#: beside (a large p, one round), sharp ones in a single layer, which has no place for dropout, dropout on the input of
#: filters in both directions, and features without the mean of their node (uniform, in the code's form).
LATE: dict[Form, tuple[float, ...]] = {
    ("spectral+node=9+p=30+k=1+top=64", 64, 0.5, False, ""): (2e-3,),
    ("spectral+node=9+p=30+k=1+top=64", 64, 0.5, False, "batch_norm"): (2e-3,),
    ("spectral+node=9+p=30+k=1+top=64", 64, 0.8, True, ""): (2e-3,),
    ("spectral+node=3+p=30+k=1+top=64", 64, 0.5, False, ""): (2e-3,),
    ("none+node=9+p=30+k=1+top=64", 64, 0.5, True, ""): (2e-3,),
    ("none+node=0+hidden=9+p=30+k=1+top=64", 64, 0.5, True, ""): (2e-3,),
    ("uniform+code+feature=1+node=9+p=30+k=1+top=64", 64, 0.5, False, ""): (2e-3,),
    ("uniform+code+feature=1+node=2", 64, 0.5, True, ""): (5e-4, 2e-3),
    ("uniform+code+feature=1+node=5+p=0.1", 64, 0.5, False, ""): (2e-3,),
    ("uniform+code+feature=1+node=5+p=0.1", 64, 0.5, False, "batch_norm"): (2e-3,),
    ("uniform+code+feature=1+node=0+hidden=5", 64, 0.5, True, ""): (2e-3,),
    ("spectral+node=5", 64, 0.5, False, "batch_norm"): (2e-3,),
    ("spectral+node=5+p=0.1", 64, 0.5, False, "batch_norm"): (2e-3,),
    ("spectral+node=5", 64, 0.8, True, ""): (2e-3, 7e-3),
    ("spectral+node=5+p=30+k=1", 64, 0.5, False, ""): (2e-3, 7e-3),
    ("spectral+node=5+p=30+k=1", 64, 0.8, True, ""): (2e-3, 7e-3),
    ("spectral+node=2+hidden=10", 64, 0.5, False, ""): (2e-3,),
    ("spectral+node=2+hidden=10", 64, 0.8, True, ""): (2e-3,),
    ("spectral+node=0+hidden=10", 64, 0.8, True, ""): (2e-3, 7e-3),
    ("none+node=0+hidden=10+p=30+k=1", 64, 0.5, True, ""): (2e-3, 7e-3),
    ("none+node=0+hidden=10+p=30+k=1", 64, 0.8, True, ""): (2e-3, 7e-3),
    ("none+node=0+hidden=5", 64, 0.5, True, ""): (2e-3,),
    ("none+node=0+hidden=20", 64, 0.8, True, ""): (2e-3,),
    ("none+node=15+p=30+k=4", 64, 0.0, False, ""): (5e-4,),
}


def forms(case: str) -> list[Form]:
    """Returns the forms that are tried on clean data or under a kind of noise."""
    usual: list[Form] = [(*form, False, "") for form in _usual_forms(case)]
    if case == "clean":
        usual += [("none+node=0+hidden=10", 64, dropout, True, "") for dropout in DECAYS_WITH_DROPPED_INPUT]
    return [*usual, *LATE]


def _usual_forms(case: str) -> list[tuple[str, int, float]]:
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
    if form in LATE:
        return LATE[form]
    if form[3]:
        return DECAYS_WITH_DROPPED_INPUT[form[2]]
    if form[1] > 64:
        return WEIGHT_DECAYS[:2]
    return WEIGHT_DECAYS[::2] if case == "noise-level" and "hidden" in form[0] else WEIGHT_DECAYS


def experiment(case: str, only: str) -> Experiment:
    """Returns the forms on clean graphs or under a kind of noise as an experiment."""
    contenders = tuple(
        Contender(f"{form}, weight decay {decay}", form[0], "fixed", (_candidate(form, decay),))
        for form in forms(case)
        if re.search(only, f"{form[0]}{' input' * form[3]} {form[4]}")
        for decay in decays(form, case)
    )
    return Experiment("forms", "Forms", tuple(places(case)), contenders)


def _candidate(form: Form, decay: float) -> Candidate:
    words, hidden, dropout, drops_input, norm = form
    settings: dict[str, Any] = {"hidden_channels": hidden, "dropout": dropout, "tolerance": 1e-3}
    if drops_input:
        settings["drops_input"] = True
    if dropout == 0:
        settings["num_layers"] = 1
    if norm:  # over all nodes, in evaluation too
        settings |= {"norm": norm, "norm_kwargs": {"track_running_stats": False}}
    return Candidate(f"bigcn:exact+{words}", settings, {"weight_decay": decay, "max_epochs": 2_000})


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
            "drops_input": cell.candidate.settings.get("drops_input", False),
            "norm": cell.candidate.settings.get("norm", ""),
            "weight_decay": cell.candidate.training["weight_decay"],
            "validation": cell.row()["validation"],
        }
        for cell in work.cells()
    ]


def how_far(rows: list[dict[str, Any]]) -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """Returns all candidates, and how far each lies below the best in each cell; all the way where it has not run."""
    cells = sorted({(row["graph"], row["case"]) for row in rows})
    everything = sorted({_key(row) for row in rows})
    scores = np.zeros((len(everything), len(cells)))
    for row in rows:
        scores[everything.index(_key(row)), cells.index((row["graph"], row["case"]))] = row["validation"]
    return everything, scores.max(0) - scores


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in KEYS)


def pool_in_use() -> list[tuple[Any, ...]]:
    """Returns the candidates of the reproduction."""
    (ours,) = (contender for contender in TUNED if contender.name == "bigcn")
    return [
        _key(
            {
                "form": candidate.model.removeprefix("bigcn:exact+"),
                "drops_input": False,
                "norm": "",
                **candidate.settings,
                **candidate.training,
            }
        )
        for candidate in ours.candidates
    ]


def closest(behind: np.ndarray, count: int, starts: int = 10) -> tuple[float, tuple[int, ...]]:
    """Returns the candidates whose best lies least behind, found from several starts by exchanging one for another."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("runs/reproduce.sqlite"), help="runs that are there count")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", metavar="PATTERN", help="forms whose words this is found in, as in p=")
    parser.add_argument("--processes", type=int, default=1, help="how many train at once")
    parser.add_argument("--stored", action="store_true", help="run nothing")
    options = parser.parse_args()
    known = json.loads((RESULTS / f"{NAME}.json").read_text())
    rows = known["rows"]
    if not options.stored:
        options.store.parent.mkdir(parents=True, exist_ok=True)
        with RunStore(options.store) as runs, ProcessExecutor(options.processes) as executor:
            experiments = [experiment(case, options.only) for case in ("clean", "noise-level", "structure-mistakes")]
            work = Reproduction(experiments, runs, Setting(options.device, CHOICE_SEEDS))
            work.run(executor=executor)
            rows, made = added(rows, rows_of(work), ("graph", "case", *KEYS)), made_by(work.used().values(), known)
        print(f"stored in results/{store(NAME, 'python benchmarks/candidate_forms.py', rows, made).name}")
    everything, behind = how_far(rows)
    print(f"{len({candidate[:-1] for candidate in everything})} forms, {len(rows)} scores")
    used = [everything.index(candidate) for candidate in pool_in_use() if candidate in everything]
    print(f"in use: {100 * behind[used].min(0).mean():.2f} points below the best on average")
    gap, some = closest(behind, SIZE)
    print(f"closest: {100 * gap:.2f} points below the best on average")
    for index in some:
        words, hidden, dropout, drops_input, norm, decay = everything[index]
        where = (" on the input as well" if drops_input else "") + (f", {norm}" if norm else "")
        print(f"  {words}, {hidden} units, dropout {dropout}{where}, weight decay {decay}")


if __name__ == "__main__":
    main()
