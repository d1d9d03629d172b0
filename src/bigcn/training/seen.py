"""What the layers of a population find in a step: what they would keep of graph and features if each trained alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Self

from torch import Tensor

from bigcn.nn.cache import TensorCache
from bigcn.training.asked import Graph
from bigcn.training.reach import Part
from bigcn.training.stacking import Stack, stack_graphs


class Seen(NamedTuple):
    """What models are given in a training step, or in an evaluation.

    Args:
        kept (dict): What each cache of the model answers, by its name.
        graph (Stack): Features, edges and weights of edges.
        by_place (bool): Whether the first rows of the output are those that are asked for.
    """

    kept: dict[str, Stack]
    graph: Stack
    by_place: bool

    @classmethod
    def of_part(cls, part: Part, kept: dict[str, Stack], graphs: Sequence[Graph]) -> Self:
        """Returns what models are given that see a part of their graph.

        Args:
            part (Part): The part.
            kept (dict): What they keep of all of it.
            graphs (Sequence[tuple]): Features, edges and weights of edges of each.
        """
        features = {id(x): part.of_features(x) for x in {id(x): x for x, *_ in graphs}.values()}
        graph = stack_graphs([(features[id(x)], edges, weights) for x, edges, weights in graphs])
        return cls({name: part.of_stack(stack) for name, stack in kept.items()}, graph, by_place=True)

    @property
    def values(self) -> dict[str, Any]:
        """The tensors of what is kept, to be mapped."""
        return {name: stack.values for name, stack in self.kept.items()}

    @property
    def dims(self) -> dict[str, Any]:
        """Where their members are."""
        return {name: stack.dims for name, stack in self.kept.items()}


def seen_in(
    parts: Sequence[Part | None],
    asked: Sequence[dict[str, Stack]],
    kept: dict[str, Stack],
    graphs: Sequence[Graph],
    by_place: bool,
) -> list[Seen]:
    """Returns what models are given in each of several steps, such as training and evaluation.

    Args:
        parts (Sequence[Part, optional]): The parts of their graph that they see; nothing for all of it.
        asked (Sequence[dict]): What else their layers find, where it is all of it.
        kept (dict): What they keep of all of it.
        graphs (Sequence[tuple]): Features, edges and weights of edges of each.
        by_place (bool): See :class:`Seen`, where it is all of it.
    """
    # All of the graph is held where some step needs it, once.
    whole = [stack_graphs(graphs)] if any(part is None for part in parts) else []
    return [
        Seen(kept | more, whole[0], by_place) if part is None else Seen.of_part(part, kept, graphs)
        for part, more in zip(parts, asked, strict=True)
    ]


def select_seen(several: Sequence[Seen], members: Tensor) -> list[Seen]:
    """Returns the same for some of the members; what is in several stays in all of them once.

    Args:
        several (Sequence[Seen]): What they are given at one time and another.
        members (torch.Tensor): Which of them.
    """
    values = [(seen.values, seen.graph.values) for seen in several]
    picked = Stack(values, [(seen.dims, seen.graph.dims) for seen in several]).select(members).values
    return [
        Seen(
            {name: Stack(kept[name], dims) for name, dims in seen.dims.items()},
            Stack(graph, seen.graph.dims),
            seen.by_place,
        )
        for seen, (kept, graph) in zip(several, picked, strict=True)
    ]


@contextmanager
def giving(caches: Mapping[str, TensorCache], values: Mapping[str, Any]) -> Iterator[None]:
    """Lets the layers of a model find values instead of looking for the tensors that they know.

    Args:
        caches (Mapping): The caches of the model, by name.
        values (Mapping): What they answer.
    """
    with ExitStack() as exits:
        for name, value in values.items():
            exits.enter_context(caches[name].giving(value))
        yield
