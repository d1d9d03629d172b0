"""Graphs of one's own in the store of runs: their names there, and their runs side by side."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from bigcn.experiments.comparison import ComparisonResult, Pair
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.specs import METRICS
from bigcn.nn.registry import title_of
from bigcn.tasks.nodes import LOW_DEGREE, degrees

#: What the names of graphs of one's own begin with in the store, so that none is taken for a graph of the registry.
PREFIX = "own:"
#: What a trained BiGCN is compared with.
RIVALS = ("gcn", "mlp")
#: The model that predicts the most frequent class for every node.
MAJORITY = "majority"


@dataclass(frozen=True, kw_only=True)
class OwnComparison:
    """What was compared, like :class:`~bigcn.experiments.comparison.Comparison`, for a graph that no registry knows.

    Args:
        dataset (str): The name of the graph in the store.
        models (tuple[str, ...]): The names of the models.
        task (str): :obj:`"node"` or :obj:`"link"`.
        protocol (str): How the graph was split.
        seeds (tuple[int, ...]): The seeds.
        device (str): The device.
        note (str, optional): What tells it from others on the same graph, for the title. (default: :obj:`""`)
    """

    dataset: str
    models: tuple[str, ...]
    task: str
    protocol: str
    seeds: tuple[int, ...]
    device: str
    case: str = "clean"
    values: tuple[float, ...] = ()
    note: str = ""

    @property
    def metric(self) -> str:
        """The metric that the models are judged by."""
        return METRICS[self.task]

    @property
    def title(self) -> str:
        """The comparison in a few words."""
        task = "node classification" if self.task == "node" else "link prediction"
        return f"{self.dataset.removeprefix(PREFIX)}, {task}" + (f", {self.note}" if self.note else "")


class OwnResult(ComparisonResult):
    """What a comparison on a graph of one's own found."""

    @property
    def about(self) -> dict[str, Any]:
        """What is known of the graph and of the trained model; empty if its run is not there."""
        found = [run.details["own"] for spec, run in self.pairs if spec.model == "bigcn" and "own" in run.details]
        return found[-1] if found else {}

    def verdict(self) -> str:
        """Says in a sentence how good the trained model is, and the others beside it."""
        metric, name = self.comparison.metric, self.comparison.dataset.removeprefix(PREFIX)
        scores: dict[str, list[float]] = {}
        for spec, run in self.pairs:
            if run.status == "ok":
                scores.setdefault(spec.model, []).append(run.metrics[metric])
        means = {model: 100 * sum(found) / len(found) for model, found in scores.items()}
        if "bigcn" not in means:
            return f"No BiGCN was trained on {name}."
        judged = "of the test nodes right" if self.comparison.task == "node" else "ROC-AUC on held-out links"
        verb = "gets" if self.comparison.task == "node" else "reaches"
        sentence = f"On {name}, BiGCN {verb} {means.pop('bigcn'):.1f} % {judged}"
        titles = {model: "the largest class alone" if model == MAJORITY else title_of(model) for model in means}
        beside = [f"{titles[model]} {mean:.1f} %" for model, mean in means.items()]
        return sentence + (f"; beside it: {', '.join(beside)}." if beside else ".")


def own_result(pairs: Sequence[Pair]) -> OwnResult:
    """Returns runs on one graph of one's own as a comparison.

    Args:
        pairs (Sequence): The runs with their results.
    """
    first = pairs[0][0]
    comparison = OwnComparison(
        dataset=first.dataset,
        models=tuple(dict.fromkeys(spec.model for spec, _ in pairs)),
        task=first.task,
        protocol=first.protocol,
        seeds=tuple(sorted({spec.seed for spec, _ in pairs})),
        device=first.device,
    )
    return OwnResult(comparison, tuple(pairs))  # type: ignore[arg-type]


def own_results(pairs: Sequence[Pair]) -> list[OwnResult]:
    """Sorts runs from a store into comparisons: each trained BiGCN, and what was trained in the same way on its split.

    The largest class stands beside each of them, since it is the same however long the others trained. Runs that no
    BiGCN was trained beside are comparisons of their own.

    Args:
        pairs (Sequence): Runs on graphs of one's own with their results, as :meth:`RunStore.rows` gives them.
    """
    trained: dict[tuple[Any, ...], list[Pair]] = {}
    others: list[Pair] = []
    for spec, run in pairs:
        if spec.model == "bigcn" and "weight_decays" not in spec.settings:
            key = (*_split(spec), json.dumps(spec.settings, sort_keys=True))
            trained.setdefault(key, []).append((spec, run))
        else:
            others.append((spec, run))
    groups = []
    for runs in trained.values():
        beside = [pair for pair in others if any(_is_beside(pair, run) for run in runs)]
        groups.append([*runs, *sorted(beside, key=lambda pair: pair[0].model != MAJORITY)])
    taken = {spec.key for group in groups for spec, _ in group}
    alone: dict[tuple[Any, ...], list[Pair]] = {}
    for spec, run in others:
        if spec.key not in taken:
            alone.setdefault((*_split(spec), *_way(spec, run)), []).append((spec, run))
    return [own_result(group) for group in (*groups, *alone.values())]


def is_own(dataset: str) -> bool:
    """Tells whether a name in the store is that of a graph of one's own."""
    return dataset.startswith(PREFIX)


def count_test_nodes(data: Data, test: Tensor) -> dict[str, int]:
    """Returns how many test nodes there are, and how many of them have few neighbours, by the scores over them.

    Args:
        data (Data): The graph.
        test (torch.Tensor): The test nodes.
    """
    degree = degrees(data)[test.cpu()]
    groups = {"accuracy_isolated": degree == 0, "accuracy_low_degree": degree <= LOW_DEGREE}
    return {"accuracy": len(degree)} | {name: int(members.sum()) for name, members in groups.items()}


def folder_name(graph: str, task: str) -> str:
    """Returns the name of the folder for reports on a graph, whatever its own name holds.

    Args:
        graph (str): The name of the graph.
        task (str): The task.
    """
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in graph).strip(".")
    return f"{plain[:100] or 'graph'}-{task}"


def _split(spec: RunSpec) -> tuple[str, ...]:
    return spec.dataset, spec.dataset_fingerprint, spec.task, spec.protocol, spec.device


def _way(spec: RunSpec, run: RunResult) -> tuple[Any, ...]:
    """Returns how a model was asked to be trained; a weight decay that a search has chosen was not asked for."""
    training = dict(spec.settings.get("training", {}))
    tried = spec.settings.get("weight_decays") or run.details.get("own", {}).get("trials", ())
    searched = len(tried) > 1
    if searched:
        training.pop("weight_decay", None)
    return searched, json.dumps(training, sort_keys=True)


def _is_beside(pair: Pair, trained: Pair) -> bool:
    """Tells whether a run is one that a trained BiGCN was compared with."""
    spec, ours = pair[0], trained[0]
    if (*_split(spec), spec.seed) != (*_split(ours), ours.seed):
        return False
    if spec.model == MAJORITY:
        return True
    # Not every model has a width, but those that do have ours.
    width = ours.settings.get("model", {}).get("hidden_channels")
    return _way(*pair) == _way(*trained) and spec.settings.get("model", {}).get("hidden_channels", width) == width
