"""A cache that never answers for another tensor than the one it was asked about."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from bigcn.sparse_ops import own_precision

Key = tuple[Tensor | None, ...]


class TensorCache:
    """Remembers what was computed from tensors, by identity and version.

    PyG's :obj:`cached=True` reuses the first graph for every later one. This cache compares: another tensor, or the
    same one edited in place, is computed anew. The comparison reads no values, so it costs nothing on a GPU, and edits
    behind PyTorch's back, through :obj:`.data` or a NumPy array over the same memory, are not seen.

    Args:
        size (int, optional): How many results are kept; two suit a loop that alternates between a training and a
            test graph. (default: :obj:`2`)
    """

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._entries: list[tuple[Key, Hashable, Any]] = []
        self._given: tuple[Any, ...] = ()

    @contextmanager
    def giving(self, result: Any) -> Iterator[None]:
        """For a while answers with what is given, whatever it is asked: for the members of a population, whose
        tensors are mapped and cannot be told apart.
        """
        self._given = (result,)
        try:
            yield
        finally:
            self._given = ()

    @property
    def given(self) -> bool:
        """Whether it answers with what it was given."""
        return len(self._given) > 0

    @property
    def result(self) -> Any:
        """What it was given."""
        return self._given[0]

    def knows(self, tensors: Key) -> bool:
        """Tells whether it was asked about these very tensors, edited since or not."""
        return any(all(a is b for a, b in zip(known, tensors, strict=True)) for known, _, _ in self._entries)

    def last(self) -> tuple[Key, Any] | None:
        """Returns the tensors and the result of the last answer, if there is one."""
        return (self._entries[-1][0], self._entries[-1][2]) if self._entries else None

    def get(self, tensors: Key, extra: Hashable, compute: Callable[[], Any]) -> Any:
        """Returns the result for these very tensors, computing it if it is not there.

        Args:
            tensors (tuple): The tensors that the result depends on.
            extra (Hashable): Whatever else it depends on.
            compute (Callable): Computes it.
        """
        if self.given:
            return self.result
        if any(tensor is not None and tensor.is_inference() for tensor in tensors):
            return compute()  # these are edited without a trace: they keep no version
        # Versions belong to the moment of asking, so they are part of what is compared, not of the tensors.
        extra = (extra, tuple(_version(tensor) for tensor in tensors))
        for position, (known, known_extra, result) in enumerate(self._entries):
            if known_extra == extra and all(a is b for a, b in zip(known, tensors, strict=True)):
                self._entries.append(self._entries.pop(position))
                return result
        # Under autocast as well, since a later call without it would be answered with the same.
        with own_precision(*tensors):
            result = compute()
        self._entries = [*self._entries, (tensors, extra, result)][-self.size :]
        return result

    def clear(self) -> None:
        """Forgets everything."""
        self._entries = []

    def __len__(self) -> int:
        return len(self._entries)

    # A copied or pickled module computes its own: the copied keys would never match again.
    def __deepcopy__(self, memo: dict[int, Any]) -> "TensorCache":
        return TensorCache(self.size)

    def __getstate__(self) -> dict[str, Any]:
        return {"size": self.size, "_entries": [], "_given": ()}


def caches_of(module: torch.nn.Module) -> dict[str, TensorCache]:
    """Returns all caches of a module and of those within it, by name."""
    found: dict[str, TensorCache] = {}
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if isinstance(value, TensorCache):
                found[f"{name}.{key}"] = value
            elif isinstance(value, dict):
                found |= {f"{name}.{key}.{k}": cache for k, cache in value.items() if isinstance(cache, TensorCache)}
    return found


def may_keep(*tensors: Any) -> bool:
    """Tells whether something computed from these tensors may be kept for later calls."""
    # A tensor made in inference mode could not be used in training later.
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
        return False
    return not any(
        tensor.requires_grad or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        for tensor in tensors
        if isinstance(tensor, Tensor)
    )


class Unchanged:
    """Names tensors in the extra part of a key: equal to another only while these are the very same, unedited.

    Args:
        *tensors (torch.Tensor): The tensors.
    """

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = tensors  # kept, since the address of one that is gone may be another's
        self._versions = tuple(_version(tensor) for tensor in tensors)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unchanged) or len(self._tensors) != len(other._tensors):
            return False
        same = all(a is b for a, b in zip(self._tensors, other._tensors, strict=True))
        return same and self._versions == other._versions

    def __hash__(self) -> int:
        return hash(self._versions)


def _version(tensor: Tensor | None) -> Hashable:
    if isinstance(tensor, EdgeIndex):  # a wrapper, and what it wraps can be edited as well
        return tensor._version, tensor.as_tensor()._version
    if tensor is None or tensor.layout != torch.strided or tensor.is_meta:
        return None if tensor is None else tensor._version
    return tensor._version, tensor.data_ptr()  # other memory, as `tensor.data = ...` gives it, is no new version
