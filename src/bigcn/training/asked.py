"""Answers where they are asked for: a loss looks at the training nodes, a score at those of validation and test.

Layers are given the rows that are looked at, another set in training than in evaluation, and models return these alone.
The numbers are the same; on a graph of many nodes most of a last filter is not computed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from bigcn.dense_filter import rows_pay
from bigcn.nn.asked_rows import kept_rows, last_filter, name_of
from bigcn.nn.cache import caches_of
from bigcn.sparse import SparseMatrix
from bigcn.tasks.base import Task
from bigcn.training.stacking import Stack, numbers_of, stack

#: Features, edges and weights of edges.
Graph = tuple[Tensor, Tensor, Tensor | None]


class Asked(NamedTuple):
    """What layers are given besides what they keep, by the name of the cache.

    Args:
        training (dict): In a training step.
        scoring (dict): In an evaluation.
    """

    training: dict[str, Stack]
    scoring: dict[str, Stack]


def rows_suffice(model: torch.nn.Module, task: Task) -> bool:
    """Tells whether a member needs only rows of its last filter, and products with these take less time than its hops.

    Args:
        model (torch.nn.Module): Its model.
        task (Task): Its task.
    """
    last = last_filter(model) if task.by_rows else None
    if last is None:
        return False
    graph = last.graph(task.x, task.edge_index, task.edge_weight)
    trained, scored = (last.parts * rows[0].numel() for rows in (task.questions(), task.scored()))
    return isinstance(graph, SparseMatrix) and rows_pay(graph, last.hops, trained, scored)


@contextmanager
def left_out(models: Sequence[torch.nn.Module], x: Tensor) -> Iterator[None]:
    """For a while, models leave their last filter out, and answer for no node.

    Args:
        models (Sequence[torch.nn.Module]): The models.
        x (torch.Tensor): Features of their graph.
    """
    with ExitStack() as exits:
        for last in map(last_filter, {id(model): model for model in models}.values()):
            assert last is not None
            exits.enter_context(last.cache.giving(x.new_empty(0, last.parts * x.size(0))))
        yield


def asked_of_filters(models: Sequence[torch.nn.Module], graphs: Sequence[Graph], tasks: Sequence[Task]) -> Asked:
    """Returns the rows of the last filter of each member.

    Args:
        models (Sequence[torch.nn.Module]): The models, see :func:`rows_suffice`.
        graphs (Sequence[tuple]): Features, edges and weights of edges of each.
        tasks (Sequence[Task]): Their tasks.
    """
    known: dict[object, tuple[Tensor, ...]] = {}
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for model, (x, edge_index, edge_weight), task in zip(models, graphs, tasks, strict=True):
        last, places = last_filter(model), (task.questions()[0], task.scored()[0])
        assert last is not None
        # Members with the same graph, the same nodes and the same numbers would compute the same.
        key = (id(edge_index), id(edge_weight), *map(id, places), numbers_of(model))
        if key not in known:
            graph = last.graph(x, edge_index, edge_weight)
            assert isinstance(graph, SparseMatrix)
            found = last.rows(torch.cat(places), graph)  # at once: to make the filter may take long
            known[key] = tuple(rows.clone() for rows in found.split([some.numel() for some in places]))
        for part, rows in zip(parts, known[key], strict=True):
            part.append(rows)
        for cache in caches_of(model).values():
            cache.clear()
    first = last_filter(models[0])
    assert first is not None
    name = name_of(models[0], first.cache)
    return Asked(*({name: stack(part)} for part in parts))


def asked_of_kept(model: torch.nn.Module, kept: dict[str, Stack], tasks: Sequence[Task]) -> Asked | None:
    """Returns the rows of what is kept of features, where nothing but weights comes after it.

    Args:
        model (torch.nn.Module): The model that the members share.
        kept (dict): What they keep.
        tasks (Sequence[Task]): Their tasks.
    """
    name = kept_rows(model)
    if name is None or name not in kept or not tasks[0].by_rows:
        return None
    values, dim = kept[name]
    parts = []
    for rows in ([task.questions()[0] for task in tasks], [task.scored()[0] for task in tasks]):
        if all(torch.equal(rows[0], other) for other in rows[1:]):
            parts.append({name: Stack(values.index_select(0 if dim is None else 1, rows[0]), dim)})
        else:
            own = [values if dim is None else values[member] for member in range(len(tasks))]
            parts.append({name: stack([x.index_select(0, some) for x, some in zip(own, rows, strict=True)])})
    return Asked(*parts)


def asked_bytes(models: Sequence[torch.nn.Module], tasks: Sequence[Task]) -> int:
    """Returns what the rows of a filter take for one more member: nothing, if they are the same for all.

    Args:
        models (Sequence[torch.nn.Module]): The models of some members, see :func:`rows_suffice`.
        tasks (Sequence[Task]): Their tasks.
    """
    last, (first, *others) = last_filter(models[0]), tasks
    assert last is not None
    rows, numbers = (first.questions()[0], first.scored()[0]), numbers_of(models[0])
    if all(numbers_of(model) == numbers for model in models) and all(
        task.edge_index is first.edge_index and task.questions()[0] is rows[0] and task.scored()[0] is rows[1]
        for task in others
    ):
        return 0
    return last.parts * sum(some.numel() for some in rows) * first.x.size(0) * first.x.element_size()
