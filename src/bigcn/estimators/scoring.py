"""How good predictions are: accuracy, confusion and calibration."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from torch import Tensor

from bigcn.datasets.splits import Split
from bigcn.tasks import NodeClassification, Task
from bigcn.tasks.base import evaluating
from bigcn.tasks.nodes import classification_scores

#: The bins of the reliability table.
BINS = 10


def node_logits(task: Task, model: torch.nn.Module) -> Tensor:
    """Returns what a model says about all nodes, on the CPU and in double precision."""
    with evaluating(model):
        return task.outputs(model).detach().cpu().double()


def validation_loss(task: Task, model: torch.nn.Module, label: Tensor | None) -> float:
    """Returns the cross-entropy on the validation nodes; zero for other tasks, whose scores hardly ever tie.

    Args:
        task (Task): The task.
        model (torch.nn.Module): The model.
        label (torch.Tensor, optional): The class of each node.
    """
    if label is None or not isinstance(task, NodeClassification):
        return 0.0
    nodes = task.split.val.cpu()
    return float(F.cross_entropy(node_logits(task, model)[nodes], label[nodes]))


def fit_temperature(logits: Tensor, label: Tensor) -> float:
    r"""Returns the temperature by which logits should be divided so that probabilities mean what they say.

    It minimises the log-loss, with a standard normal prior on the logarithm of the temperature: a few validation nodes
    that were all got right must not make a model certain.

    Args:
        logits (torch.Tensor): The logits of validation nodes.
        label (torch.Tensor): Their classes.
    """

    def objective(log_temperature: float) -> float:
        nll = F.cross_entropy(logits / math.exp(log_temperature), label, reduction="sum")
        return float(nll) + log_temperature**2 / 2

    found = minimize_scalar(objective, bounds=(-3.0, 3.0), method="bounded")
    return float(math.exp(found.x))


def assess(probabilities: Tensor, label: Tensor) -> dict[str, Any]:
    """Returns everything that is reported about predicted probabilities, as plain values.

    The expected calibration error is the mean gap between confidence and accuracy over ten bins of equal width. The
    confusion lists the pairs of true and predicted class that occur, with their counts.

    Args:
        probabilities (torch.Tensor): One row per node.
        label (torch.Tensor): The classes.
    """
    num_classes = probabilities.size(1)
    confidence, predicted = (tensor.numpy() for tensor in probabilities.max(dim=1))
    truth = label.numpy()
    scores = classification_scores(truth, predicted, num_classes)
    cells, counts = np.unique(truth * num_classes + predicted, return_counts=True)
    hit = truth == predicted
    # The upper end belongs to a bin, so that certainty falls into the last one.
    place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    reliability = [
        {
            "from": low / BINS,
            "to": (low + 1) / BINS,
            "nodes": int(inside.sum()),
            "confidence": float(confidence[inside].mean()),
            "accuracy": float(hit[inside].mean()),
        }
        for low in range(BINS)
        if (inside := place == low).any()
    ]
    gaps = sum(row["nodes"] * abs(row["confidence"] - row["accuracy"]) for row in reliability)
    chosen = probabilities.gather(1, label.unsqueeze(1)).clamp(min=1e-12)
    return {
        "scores": scores | {"ece": float(gaps / len(truth)), "log_loss": float(-chosen.log().mean())},
        "nodes": len(truth),
        "confusion": [
            [int(cell // num_classes), int(cell % num_classes), int(count)]
            for cell, count in zip(cells, counts, strict=True)
        ],
        "reliability": reliability,
    }


def assess_nodes(logits: Tensor, label: Tensor, split: Split) -> dict[str, Any]:
    """Calibrates logits on the validation nodes and returns :func:`assess` of the test nodes, with the temperature.

    Args:
        logits (torch.Tensor): What :func:`node_logits` returned.
        label (torch.Tensor): The class of each node.
        split (Split): The parts.
    """
    temperature = fit_temperature(logits[split.val], label[split.val])
    val, test = (
        assess(torch.softmax(logits[nodes] / temperature, dim=1), label[nodes]) for nodes in (split.val, split.test)
    )
    return test | {"val_scores": val["scores"], "temperature": temperature}


def assess_majority(label: Tensor, split: Split, num_classes: int) -> dict[str, Any]:
    """Returns the same for predicting the shares of the classes among the training nodes, for every node alike.

    Args:
        label (torch.Tensor): The class of each node.
        split (Split): The parts.
        num_classes (int): The number of classes.
    """
    shares = torch.bincount(label[split.train], minlength=num_classes).double()
    shares = shares / shares.sum()
    val, test = (assess(shares.expand(len(nodes), -1), label[nodes]) for nodes in (split.val, split.test))
    return test | {"val_scores": val["scores"], "temperature": 1.0}
