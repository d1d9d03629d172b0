"""Runs on a graph of one's own: a trained BiGCN, and what it is compared with on the same split."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.own import OwnGraph
from bigcn.estimators.base import GraphEstimator
from bigcn.estimators.candidates import WEIGHT_DECAYS
from bigcn.estimators.classifier import BiGCNClassifier
from bigcn.estimators.scoring import assess_majority, assess_nodes, node_logits, validation_loss
from bigcn.experiments.comparison import Pair
from bigcn.experiments.own import MAJORITY, PREFIX, RIVALS, OwnResult, count_test_nodes, own_result
from bigcn.experiments.records import RunResult, RunSpec, utc_now
from bigcn.experiments.store import RunStore
from bigcn.nn.bigcn import BiGCN
from bigcn.nn.registry import ModelContext, get_model
from bigcn.tasks import NodeClassification, Task
from bigcn.training import TrainConfig, seeded, train

OnRun = Callable[[RunSpec, RunResult, bool], None]


def run_own(
    estimator: GraphEstimator,
    graph: OwnGraph,
    store: RunStore,
    rivals: Sequence[str] = RIVALS,
    *,
    force: bool = False,
    on_run: OnRun | None = None,
    stop: Callable[[], bool] = lambda: False,
    command: str = "",
) -> OwnResult | None:
    """Stores the run of a fitted estimator, trains its rivals on the same split, and returns them side by side.

    With a search, rivals choose their weight decay on validation as BiGCN does. Probabilities of all are calibrated
    alike.

    Args:
        estimator (GraphEstimator): The estimator, fitted on the graph.
        graph (OwnGraph): The graph.
        store (RunStore): Where runs are kept; rivals that are in it are not trained again.
        rivals (Sequence[str], optional): Names of models, see :func:`bigcn.nn.registry.get_model`.
            (default: GCN and MLP)
        force (bool, optional): If set to :obj:`True`, repeats runs that are stored. (default: :obj:`False`)
        on_run (Callable, optional): Called with each run, its result and whether it came from the store.
        stop (Callable, optional): Asked after each epoch; if it answers :obj:`True`, :obj:`None` is returned.
        command (str, optional): The command that repeats it all, for the page. (default: :obj:`""`)
    """
    if estimator.report_ is None:
        raise ValueError("'estimator' has not been trained to its end")
    runs = _Runs(estimator, graph, store, force, on_run)
    chosen = estimator.chosen_
    settings = {"model": chosen.model, "training": chosen.training, "search": estimator.search}
    runs.add("bigcn", settings, lambda: _trained(estimator, graph, command), repeat=True)
    if estimator.task == "node":
        runs.add(MAJORITY, {}, lambda: _majority(estimator))
    for name in rivals:
        if stop():
            return None
        base = runs.rival_settings(name)
        if not runs.add(name, base, lambda: _rival(estimator, name, base, stop)):  # noqa: B023
            return None
    return own_result(runs.pairs)


class _Runs:
    """The runs on one graph, from the store where they are in it."""

    def __init__(
        self, estimator: GraphEstimator, graph: OwnGraph, store: RunStore, force: bool, on_run: OnRun | None
    ) -> None:
        self.estimator, self.graph, self.store, self.force, self.on_run = estimator, graph, store, force, on_run
        self.pairs: list[Pair] = []

    def add(
        self, model: str, settings: dict[str, Any], run: Callable[[], RunResult | None], repeat: bool = False
    ) -> bool:
        estimator = self.estimator
        spec = RunSpec(
            task=estimator.task,
            dataset=PREFIX + self.graph.name,
            dataset_fingerprint=estimator.fingerprint_,
            protocol=estimator.protocol_,
            case="clean",
            value=None,
            model=model,
            settings=settings,
            seed=estimator.seed,
            device=torch.device(estimator.device).type,
        )
        known = None if self.force or repeat else self.store.get(spec)
        result = known or run()
        if result is None:
            return False
        if known is None:
            self.store.append(spec, result)
        if self.on_run is not None:
            self.on_run(spec, result, known is not None)
        self.pairs.append((spec, result))
        return True

    def rival_settings(self, name: str) -> dict[str, Any]:
        estimator, plan = self.estimator, self.estimator.plan()
        task = estimator.make_task()
        context = ModelContext(
            self.graph.name,
            "clean",
            estimator.task,
            task.num_features,
            task.num_outputs,
            hidden_channels=plan.model["hidden_channels"],
        )
        decays = WEIGHT_DECAYS if plan.searches else (plan.training["weight_decay"],)
        return {
            "model": get_model(name).settings(context),
            "training": plan.training,
            "weight_decays": list(decays),
        }


def _trained(estimator: GraphEstimator, graph: OwnGraph, command: str) -> RunResult:
    report = estimator.report_
    assert report is not None
    trials, task = estimator.trials_, estimator.make_task()
    own = {
        "data": estimator.data_,
        "classes": list(estimator.encoding_.classes),
        "report": report,
        "trials": [{"name": t.name, "score": t.score, "epochs": t.epochs, "seconds": t.seconds} for t in trials],
        "chosen": estimator.chosen_.name,
        "feature_graph": estimator.chosen_.model.get("feature_graph", "none"),
        "feature_edges": feature_edges(estimator.model_, graph.feature_names),
        "command": command,
    }
    if isinstance(task, NodeClassification):
        own["test_nodes"] = count_test_nodes(Data(x=task.x, edge_index=task.edge_index), task.split.test)
    return RunResult(
        metrics=_metrics(report, _lonely(task, estimator.model_)),
        seconds=sum(trial.seconds for trial in trials),
        started=utc_now(),
        epochs=sum(trial.epochs for trial in trials),
        details={"own": own},
    )


def _majority(estimator: GraphEstimator) -> RunResult:
    assert isinstance(estimator, BiGCNClassifier)
    label = _labels(estimator)
    assert label is not None
    report = assess_majority(label, estimator.split_, len(estimator.classes_))
    return RunResult(metrics=_metrics(report, {}), seconds=0.0, started=utc_now())


def _rival(
    estimator: GraphEstimator, name: str, settings: dict[str, Any], stop: Callable[[], bool]
) -> RunResult | None:
    entry, label = get_model(name), _labels(estimator)
    task = estimator.make_task(entry.prepare)
    started, seconds, epochs = utc_now(), 0.0, 0
    best: tuple[float, float, torch.nn.Module] | None = None
    for decay in settings["weight_decays"]:
        config = TrainConfig(**{**settings["training"], "weight_decay": decay})
        with seeded(estimator.seed, task.x.device):
            model = entry.model(task.num_features, out_channels=task.num_outputs, **settings["model"])
            model = model.to(task.x.device)
        try:
            outcome = train(model, task, config, estimator.seed, lambda _: stop())
        except FloatingPointError as error:
            return RunResult(metrics={}, status="failed", error=str(error), seconds=seconds, started=started)
        if outcome.stopped == "callback":
            return None
        seconds, epochs = seconds + outcome.seconds, epochs + outcome.epochs
        loss = validation_loss(task, model, label)
        if best is None or (outcome.score, -loss) > best[:2]:
            best = outcome.score, -loss, model
    assert best is not None
    model = best[2]
    if isinstance(estimator, BiGCNClassifier) and label is not None:
        report = assess_nodes(node_logits(task, model), label, estimator.split_)
    else:
        scores = task.evaluate(model)
        report = {"scores": scores["test"], "val_scores": scores["val"]}
    return RunResult(metrics=_metrics(report, _lonely(task, model)), seconds=seconds, started=started, epochs=epochs)


def feature_edges(model: BiGCN, names: Sequence[str], count: int = 12) -> list[list[Any]]:
    """Returns the strongest edges of the feature graph of a model's first layer, by the names of the features.

    Args:
        model (BiGCN): The model; a feature graph that is computed from its input, or has no edges worth telling, gives
            none.
        names (Sequence[str]): The names of the features.
        count (int, optional): How many. (default: :obj:`12`)
    """
    graph = model.convs[0].feature_graph
    if graph.from_input or not graph.filters or type(graph).__name__ in ("UniformGraph", "IdentityGraph"):
        return []
    return [list(edge) for edge in graph.top_edges(count, names)]


def _labels(estimator: GraphEstimator) -> Tensor | None:
    return estimator._label


def _lonely(task: Task, model: torch.nn.Module) -> dict[str, float]:
    """Returns the scores on nodes with few neighbours."""
    if task.name != "node":
        return {}
    scores = task.evaluate(model)["test"]
    return {name: score for name, score in scores.items() if name.startswith("accuracy_")}


def _metrics(report: dict[str, Any], more: dict[str, float]) -> dict[str, float]:
    val = {f"val_{name}": score for name, score in report["val_scores"].items()}
    return report["scores"] | more | val
