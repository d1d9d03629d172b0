"""Node classification on a graph that is spread over processes."""

import torch
import torch.nn.functional as F
from torch import Tensor

from bigcn.distributed.counters import draw, fractions, key
from bigcn.distributed.graph import DistributedGraph, entries_of
from bigcn.distributed.processes import Processes
from bigcn.distributed.shards import SPLIT, Shard
from bigcn.distributed.task import DistributedTask
from bigcn.tasks.base import Scores, evaluating
from bigcn.tasks.nodes import LOW_DEGREE

#: Draws from the seed that must not repeat each other.
SPLIT_STREAM = 100


class DistributedNodes(DistributedTask):
    """Predicts the class of each node, each process those of its own; see :class:`bigcn.tasks.NodeClassification`.

    :meth:`loss` is what the training nodes of this process add to the mean over all of them, so that the losses, and
    the gradients, of all processes add up to those of a single one. Scores are counted on all processes together.

    Without a split in the shards, each labelled node goes to training, validation or test by a hash of the seed and of
    its place in the node table, which does not depend on the number of processes.

    Args:
        shard (Shard): The shard of this process.
        processes (Processes): The processes.
        dtype (torch.dtype, optional): The precision. (default: :obj:`torch.float32`)
        seed (int, optional): The seed of the split, if one is drawn. (default: :obj:`0`)
        shares (tuple[float, float], optional): The shares of training and validation nodes in a split that is drawn.
            (default: :obj:`(0.6, 0.2)`)
        low_degree (int, optional): The bound of low degrees. (default: :obj:`2`)
    """

    name = "node"
    monitor = "accuracy"

    def __init__(
        self,
        shard: Shard,
        processes: Processes,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        shares: tuple[float, float] = (0.6, 0.2),
        low_degree: int = LOW_DEGREE,
    ) -> None:
        if not shard.manifest.labelled:
            raise ValueError(
                f"{shard.folder}: the shards have no labels ('bigcn partition --label' names their column)"
            )
        self.processes = processes
        self.num_outputs = len(shard.manifest.classes)
        self.rows = shard.tensor("rows").to(processes.device)
        label = shard.tensor("y")
        part = _parts(shard, label, seed, shares)
        degree = torch.stack([entries.crow.diff() for entries in entries_of(shard)]).sum(dim=0)

        self._train = (part == 0).nonzero().view(-1).to(processes.device)
        self._train_labels = label[self._train.cpu()].to(processes.device)
        scored = [(part == number).nonzero().view(-1) for number in (1, 2)]
        self._scored = torch.cat(scored).to(processes.device)
        self._labels = [label[nodes].to(processes.device) for nodes in scored]
        groups = {"accuracy_isolated": degree == 0, "accuracy_low_degree": degree <= low_degree}
        self._groups = {name: members[scored[1]].to(processes.device) for name, members in groups.items()}
        sizes = processes.total(torch.tensor([len(self._train), *map(len, scored)], device=processes.device)).tolist()
        for size, name in zip(sizes, SPLIT, strict=True):
            if size == 0:
                raise ValueError(f"{shard.folder}: no labelled node is in the {name} part of the split")
        self._num_train = sizes[0]
        self.graph = DistributedGraph.from_shard(shard, processes, dtype)
        self.x = shard.features(dtype).to(processes.device)

    def loss(self, model: torch.nn.Module, epoch: int = 0) -> Tensor:
        chosen = self.outputs(model).index_select(0, self._train)
        return F.cross_entropy(chosen, self._train_labels, reduction="sum") / self._num_train

    def evaluate(self, model: torch.nn.Module) -> Scores:
        with evaluating(model):
            predicted = self.outputs(model).index_select(0, self._scored).argmax(dim=-1)
        classes = self.num_outputs
        counts, groups = [], []
        for label, guess in zip(self._labels, predicted.split([len(label) for label in self._labels]), strict=True):
            hit = label == guess
            counts += [torch.bincount(values, minlength=classes) for values in (label[hit], label, guess)]
        for members in self._groups.values():  # of the test nodes, which come last
            groups += [(hit & members).sum(), members.sum()]
        totals = self.processes.total(torch.cat([*counts, torch.stack(groups)])).cpu()
        found = totals[: 6 * classes].view(2, 3, classes).double()
        scores = {part: _scores(*found[i]) for i, part in enumerate(("val", "test"))}
        for name, (hits, members) in zip(self._groups, totals[6 * classes :].view(-1, 2).tolist(), strict=True):
            if members:
                scores["test"][name] = hits / members
        return scores


def _parts(shard: Shard, label: Tensor, seed: int, shares: tuple[float, float]) -> Tensor:
    """Returns the part of the split that each node is in, -1 for none."""
    if shard.manifest.split:
        part = shard.tensor("split").long()
    else:
        place = fractions(draw(key(SPLIT_STREAM, seed), shard.tensor("rows")))
        part = torch.bucketize(place, torch.tensor([shares[0], sum(shares)], dtype=torch.float64), right=True)
    return torch.where(label >= 0, part, -1)


def _scores(hits: Tensor, labels: Tensor, predicted: Tensor) -> dict[str, float]:
    """Returns accuracy and macro-averaged F1, as :func:`bigcn.tasks.nodes.classification_scores` counts them."""
    occurs = labels + predicted > 0
    f1 = 2 * hits[occurs] / (labels + predicted)[occurs]
    return {"accuracy": float(hits.sum() / labels.sum()), "macro_f1": float(f1.mean())}
