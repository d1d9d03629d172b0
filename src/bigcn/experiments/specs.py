"""From the name of a model and a graph to a run."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bigcn.datasets import fingerprint, get_spec
from bigcn.experiments.records import RunSpec
from bigcn.nn.registry import ModelContext, get_model
from bigcn.training import TrainConfig

#: The metric that each task is judged by.
METRICS: dict[str, str] = {"node": "accuracy", "link": "roc_auc"}
#: The only way that link prediction divides a graph.
LINK_PROTOCOL = "links-80-10-10"


def make_run(
    model: str,
    *,
    task: str,
    dataset: str,
    protocol: str,
    case: str,
    value: float | None,
    seed: int,
    device: str,
    settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    negatives: str = "fresh",
) -> RunSpec:
    """Returns a run with everything that decides its result written out.

    Args:
        model (str): The name of a model, see :func:`bigcn.nn.registry.get_model`.
        task, dataset, protocol, case, value, seed, device: See :class:`~bigcn.experiments.records.RunSpec`.
        settings (Mapping, optional): Changes to the arguments of the model. (default: :obj:`None`)
        training (Mapping, optional): Changes to how it is trained. (default: :obj:`None`)
        negatives (str, optional): Of link prediction, :obj:`"fresh"` or :obj:`"fixed"`. (default: :obj:`"fresh"`)
    """
    entry, graph = get_model(model), get_spec(dataset)
    context = ModelContext(dataset, case, task, graph.features, graph.classes)
    # Runs are judged by what is stored at their best epoch; nobody asks for the parameters.
    changes = {**asdict(entry.training(context)), "restore_best": False, **(training or {})}
    written: dict[str, Any] = {
        "model": {**entry.settings(context), **(settings or {})},
        "training": asdict(TrainConfig.published(task, **changes)),
    }
    if task == "link":
        written["negatives"] = negatives
    return RunSpec(
        task=task,
        dataset=dataset,
        dataset_fingerprint=fingerprint(dataset),
        protocol=protocol,
        case=case,
        value=value,
        model=entry.name,
        settings=written,
        seed=seed,
        device=device,
    )
