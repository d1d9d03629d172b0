"""Many models and graphs as one: parameters, features and what layers keep, stacked in a new first dimension."""

from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bigcn.nn.attention import AttentionGraph, fill_up
from bigcn.nn.cache import caches_of
from bigcn.nn.kept_input import KeepsInput
from bigcn.nn.two_way_filter import TwoWayFilter
from bigcn.sparse import SparseMatrix
from bigcn.sparse_diagonal import make_room

#: The settings of a filter that are nothing but numbers in its buffers.
OWN_NUMBERS = ("p", "node_strength", "feature_strength")
#: Tensors with more entries than this are the same only if they are one.
FEW_NUMBERS = 4096


class CannotStack(ValueError):
    """Members that differ in more than the numbers in their tensors."""


class Stack(NamedTuple):
    """Nested tensors of all members.

    Args:
        values (Any): The tensors: those that differ between members stacked, the others as they are.
        dims (Any): The same nesting with zero where a tensor is stacked and :obj:`None` elsewhere.
    """

    values: Any
    dims: Any

    def select(self, members: Tensor) -> "Stack":
        """Returns the same for some of the members."""
        leaves, nesting = pytree.tree_flatten(self.values)
        dims = _leaves_like(self.dims, nesting)
        picked = _once_each(lambda leaf, dim: leaf if dim is None else leaf.index_select(0, members), leaves, dims)
        return Stack(pytree.tree_unflatten(picked, nesting), self.dims)


def stack(values: Sequence[Any]) -> Stack:
    """Stacks the nested tensors of all members; what is the very same tensor for all is kept once.

    Sparse matrices and graphs of different numbers of edges are filled up with entries that count nothing.

    Args:
        values (Sequence): One nesting of tensors for each member.
    """
    values = _filled_up(list(values))
    flat, nestings = zip(*(pytree.tree_flatten(value) for value in values), strict=True)
    if any(nesting != nestings[0] for nesting in nestings):
        raise CannotStack("the members keep different things")
    leaves: list[Any] = []
    dims: list[int | None] = []
    known: dict[tuple[int, ...], Tensor] = {}
    for members in zip(*flat, strict=True):
        first = members[0]
        if any(isinstance(leaf, Tensor) is not isinstance(first, Tensor) for leaf in members):
            raise CannotStack("the members keep different things")
        if all(leaf is first for leaf in members) or not isinstance(first, Tensor):
            if not isinstance(first, Tensor) and any(leaf != first for leaf in members):
                raise CannotStack("the members keep different numbers")
            leaves.append(first)
            dims.append(None)
            continue
        if any(leaf.shape != first.shape or leaf.dtype != first.dtype for leaf in members):
            raise CannotStack("the members keep tensors of different shapes")
        # An array that stands in two places, such as a symmetric matrix and its transpose, is stacked once.
        key = tuple(id(leaf) for leaf in members)
        if key not in known:
            known[key] = torch.stack([leaf.detach() for leaf in members])
        leaves.append(known[key])
        dims.append(0)
    return Stack(*(pytree.tree_unflatten(part, nestings[0]) for part in (leaves, dims)))


def stack_graphs(graphs: Sequence[tuple[Tensor, Tensor, Tensor | None]]) -> Stack:
    """Stacks features, edges and weights of edges; edges that differ are known to the layers by what they keep, and
    stand here as tensors without values, so that a layer which keeps nothing fails instead of taking another's.
    """
    edges: list[tuple[Any, ...]] = [graph[1:] for graph in graphs]
    if any(member[i] is not edges[0][i] for member in edges for i in range(2)):
        blank = tuple(None if part is None else torch.empty_like(part, device="meta") for part in edges[0])
        edges = [blank] * len(graphs)
    return stack([(graph[0], *member) for graph, member in zip(graphs, edges, strict=True)])


def stack_kept(
    models: Sequence[torch.nn.Module], graphs: Sequence[tuple[Tensor, Tensor, Tensor | None]]
) -> dict[str, Stack]:
    """Lets each member see its graph once and stacks what it keeps of it.

    Args:
        models (Sequence[torch.nn.Module]): The members.
        graphs (Sequence[tuple]): Features, edges and weights of edges of each.
    """
    structure = _structure(models[0])
    if any(_structure(model) != structure for model in models[1:]):
        raise CannotStack("the members differ in more than numbers")
    kept: list[dict[str, Any]] = []
    known: dict[Any, dict[str, Any]] = {}
    results: dict[Any, Any] = {}
    for model, graph in zip(models, graphs, strict=True):
        # Members with the same graph and the same numbers would compute the same.
        filters = numbers_of(model)
        key = tuple(id(tensor) for tensor in graph), filters
        if key not in known:
            known[key] = {
                # So would layers that look at the edges alone, when only the features differ.
                name: results.setdefault((name, filters, tuple(id(tensor) for tensor in asked)), (asked, result))[1]
                for name, (asked, result) in _kept_by(model, graph).items()
            }
        kept.append(known[key])
    names = [name for name in kept[0] if all(name in member for member in kept)]
    return {name: stack([member[name] for member in kept]) for name in names}


def _structure(model: torch.nn.Module) -> list[tuple[Any, ...]]:
    """Returns all settings of a model; of those that members may have of their own, whether they are zero."""
    found: list[tuple[Any, ...]] = []
    for name, part in model.named_modules():
        plain = {key: known[0] for key, value in vars(part).items() if (known := _plain(value))}
        del plain["training"]
        if isinstance(part, TwoWayFilter):
            plain |= {key: plain[key] == 0 for key in OWN_NUMBERS}
        found.append((name, type(part), plain))
    return found


def _plain(value: Any) -> tuple[Any] | None:
    """Returns a setting in a way that can be compared, in brackets; :obj:`None` for what is no setting."""
    if isinstance(value, int | float | str | None | FunctionType | BuiltinFunctionType):
        return (value,)
    if isinstance(value, Tensor):
        return (_number(value),)
    if isinstance(value, tuple | list):
        parts = [_plain(part) for part in value]
        return None if None in parts else (tuple(part[0] for part in parts if part),)
    return None


def numbers_of(model: torch.nn.Module) -> tuple[Any, ...]:
    """Returns what a model may have of its own besides its parameters: its buffers, large ones by their identity."""
    return tuple(_number(buffer) for buffer in model.buffers())


def _number(tensor: Tensor) -> Any:
    return tuple(tensor.flatten().tolist()) if tensor.numel() <= FEW_NUMBERS else id(tensor)


def _kept_by(model: torch.nn.Module, graph: tuple[Tensor, Tensor, Tensor | None]) -> dict[str, tuple[Any, Any]]:
    """Returns what each cache of a model was asked, and what it answered."""
    training = model.training
    model.eval()
    for part in model.modules():
        if isinstance(part, KeepsInput) or getattr(part, "products", None) is not None:
            part.training = True  # it keeps more then; what is in it has nothing to drop
    # With gradients, so that hidden layers do as in training, and take nothing for an input that stays the same.
    with torch.enable_grad():
        model(*graph)
    model.train(training)
    # What depends on the graph alone, directly or through what else is kept; not what was made of a hidden layer.
    given = {id(tensor) for tensor in graph}
    kept: dict[str, tuple[Any, Any]] = {}
    for name, cache in caches_of(model).items():
        last = cache.last()
        if last is not None and all(id(tensor) in given for tensor in last[0]):
            kept[name] = last
            given |= {id(leaf) for leaf in pytree.tree_leaves(last[1])}
        cache.clear()
    return kept


def _filled_up(values: list[Any]) -> list[Any]:
    if all(value is values[0] for value in values):
        return values
    if all(isinstance(value, SparseMatrix) for value in values):
        entries = max(value.col.numel() for value in values)
        return _once_each(lambda value, _: _fill_up(value, entries), values, [None] * len(values))
    if all(isinstance(value, AttentionGraph) for value in values):
        entries = max(value.source.numel() for value in values)
        if all(value.source.numel() == entries for value in values):
            return values
        return _once_each(lambda value, _: fill_up(value, entries), values, [None] * len(values))
    return values


def _fill_up(matrix: SparseMatrix, entries: int) -> SparseMatrix:
    """Returns the matrix with zeros in all its rows, up to a number of entries."""
    more = entries - matrix.col.numel()
    if more == 0:
        return matrix
    arrays = matrix[:3]
    filled = _fill_up_arrays(*arrays, more, matrix.num_cols)
    symmetric = all(a is b for a, b in zip(arrays, matrix[3:6], strict=True))
    filled_t = filled if symmetric else _fill_up_arrays(*matrix[3:6], more, matrix.num_rows)
    return SparseMatrix(*filled, *filled_t, matrix.num_rows, matrix.num_cols)


def _fill_up_arrays(
    crow: Tensor, col: Tensor, value: Tensor, more: int, num_cols: int
) -> tuple[Tensor, Tensor, Tensor]:
    pointers, row, old = make_room(crow, more)
    columns = row.clamp(max=num_cols - 1).to(col.dtype).index_copy(0, old, col)
    return pointers, columns, value.new_zeros(row.numel()).index_copy(0, old, value)


def _leaves_like(dims: Any, nesting: Any) -> list[int | None]:
    """Returns the dimensions as a flat list; :obj:`None` would otherwise count as no leaf."""
    leaves = pytree.tree_leaves(dims, is_leaf=lambda leaf: leaf is None)
    assert len(leaves) == nesting.num_leaves
    return leaves


def _once_each(change: Callable[[Any, int | None], Any], leaves: list[Any], dims: list[int | None]) -> list[Any]:
    """Changes every leaf, one that stands in two places once, so that it stays one."""
    done: dict[int, Any] = {}
    for leaf, dim in zip(leaves, dims, strict=True):
        if id(leaf) not in done:
            done[id(leaf)] = change(leaf, dim)
    return [done[id(leaf)] for leaf in leaves]
