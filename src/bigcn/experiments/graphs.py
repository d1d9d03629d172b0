"""The graphs that runs need: loaded, corrupted and split once, and shared by all runs that need the same."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets import get_spec, load_dataset, make_split
from bigcn.experiments.records import RunSpec
from bigcn.experiments.shared_features import SharedFeatures
from bigcn.nn.registry import get_model
from bigcn.noise import make_noise
from bigcn.tasks import LinkPrediction, NodeClassification, Task

#: How much of the noisy features is kept in main memory for the next unit, in bytes, when a GPU trains and when not.
KEPT_BYTES = {"cuda": 12 * 2**30, "cpu": 2**30}
#: Noise that takes long to draw and leaves all but the features as it was.
ON_FEATURES = ("noise-level", "noise-rate", "column-noise")
#: How many noisy graphs are made at the same time; the generators of NumPy let other threads work meanwhile.
THREADS = 8


class GraphSource:
    """Makes the tasks of runs.

    Noise on features leaves the graph, its split and its negatives alone, so that these are made once for each seed
    and shared; what is shared is the very same tensor, which a population then keeps once.

    Args:
        sharers (int, optional): How many processes divide the machine among them. (default: :obj:`1`)
        shared (Path, optional): A folder in which they keep noisy features for each other, see
            :func:`~bigcn.experiments.shared_features.shared_folder`. (default: :obj:`None`)
    """

    def __init__(self, sharers: int = 1, shared: Path | None = None) -> None:
        self.sharers = sharers
        self._shared = SharedFeatures(shared)
        self._kept_bytes = {device: size // sharers for device, size in KEPT_BYTES.items()}
        self._graphs: dict[tuple[str, str], Data] = {}
        self._features: OrderedDict[tuple[Any, ...], Tensor] = OrderedDict()
        self._tasks: OrderedDict[tuple[Any, ...], Task] = OrderedDict()
        self._coming: dict[tuple[Any, ...], Future[Data]] = {}
        self._pool = ThreadPoolExecutor(THREADS)

    def prefetch(self, units: Sequence[Any]) -> None:
        """Begins to make the noisy graphs of units to come, while a GPU trains; on a CPU they would be in the way."""
        for unit in units:
            if unit.together and unit.specs[0].device == "cuda":
                self._begin(unit.specs[: self._ahead(unit.specs[0])])

    def tasks(self, specs: Sequence[RunSpec]) -> list[Task]:
        """Returns the task of each run, on its device."""
        moved: dict[tuple[Any, ...], Tensor] = {}
        out = []
        for place, spec in enumerate(specs):
            coming = specs[place : place + self._ahead(spec)]
            self._begin(other for other in coming if _noise_key(other) not in moved)
            out.append(self._task(spec, moved))
        return out

    def _ahead(self, spec: RunSpec) -> int:
        """Returns how many noisy graphs are made before anyone asks for them: as many as may be kept."""
        x = load_dataset_once(spec.dataset).x
        return max(THREADS, self._kept_bytes[spec.device] // (x.numel() * x.element_size()))

    def _begin(self, specs: Iterable[RunSpec]) -> None:
        for spec in specs:
            key = _noise_key(spec)
            if self._is_missing(spec) and key not in self._coming:
                data = load_dataset_once(spec.dataset)  # here, not in a thread: it is read once
                self._coming[key] = self._pool.submit(self._noisy, data, spec)

    def _noisy(self, data: Data, spec: RunSpec) -> Data:
        def make() -> Data:
            return _with_noise(data, spec.case, spec.value, spec.seed)

        if spec.case not in ON_FEATURES:
            return make()
        key = spec.dataset_fingerprint, spec.case, spec.value, spec.seed
        return Data(x=self._shared.get(key, lambda: make().x))

    def _is_missing(self, spec: RunSpec) -> bool:
        if spec.case == "structure-mistakes":
            return _task_key(spec) not in self._tasks
        return spec.case != "clean" and _noise_key(spec) not in self._features

    def _task(self, spec: RunSpec, moved: dict[tuple[Any, ...], Tensor]) -> Task:
        if spec.case in ("clean", "structure-mistakes"):
            return self._base(spec)
        key = _noise_key(spec)
        if key not in moved:
            if key not in self._features:
                self._begin([spec])  # it was there when the unit began, and others have taken its place since
                self._features[key] = self._coming.pop(key).result().x
            self._features.move_to_end(key)
            moved[key] = self._features[key].to(spec.device)
            while _bytes(self._features) > self._kept_bytes[spec.device] and len(self._features) > 1:
                self._features.popitem(last=False)
        return self._base(spec).with_features(moved[key])

    def _base(self, spec: RunSpec) -> Task:
        """Returns the task on the graph with its clean features, or on a graph of its own."""
        key = _task_key(spec)
        if key not in self._tasks:
            if spec.case == "structure-mistakes":
                noisy = self._coming.pop(_noise_key(spec)).result()
                # The features stay as they were: the same tensor for all.
                graph = Data(x=self._graph(spec).x, edge_index=noisy.edge_index.to(spec.device), y=self._graph(spec).y)
                for mask in ("train_mask", "val_mask", "test_mask"):
                    if mask in noisy:
                        graph[mask] = self._graph(spec)[mask]
            else:
                graph = self._graph(spec)
            self._tasks[key] = make_task(spec, graph, get_model(spec.model).prepare).to(spec.device)
            while len(self._tasks) > 400:
                self._tasks.popitem(last=False)
        return self._tasks[key]

    def _graph(self, spec: RunSpec) -> Data:
        key = (spec.dataset, spec.device)
        if key not in self._graphs:
            clean = load_dataset_once(spec.dataset)
            self._graphs = {key: Data(**clean.to_dict()).to(spec.device)}  # one at a time
            self._tasks.clear()
        return self._graphs[key]


def make_task(spec: RunSpec, data: Data, prepare: Callable[[Data], Data]) -> Task:
    """Returns the task of a run on a graph."""
    if spec.task == "link":
        return LinkPrediction(data, seed=spec.seed, negatives=spec.settings["negatives"], prepare=prepare)
    split = make_split(data, spec.dataset, spec.protocol, spec.seed)
    return NodeClassification(data, split, num_classes=get_spec(spec.dataset).classes, prepare=prepare)


_loaded: dict[str, Data] = {}


def load_dataset_once(name: str) -> Data:
    """Returns a graph of the registry, read once."""
    if name not in _loaded:
        _loaded.clear()
        _loaded[name] = load_dataset(name)
    return _loaded[name]


def _task_key(spec: RunSpec) -> tuple[Any, ...]:
    """Names what a task depends on besides its features."""
    own = (spec.case, spec.value) if spec.case == "structure-mistakes" else ()
    seed = spec.seed if spec.task == "link" or spec.protocol == "random" or own else None
    negatives, prepare = spec.settings.get("negatives"), get_model(spec.model).prepare
    return spec.dataset, spec.device, spec.task, spec.protocol, seed, negatives, prepare, own


def _noise_key(spec: RunSpec) -> tuple[Any, ...]:
    return spec.dataset, spec.device, spec.case, spec.value, spec.seed


def noisy_graph(dataset: str, case: str, value: float | None, seed: int) -> Data:
    """Returns a graph of the registry with noise of the given seed."""
    return _with_noise(load_dataset_once(dataset), case, value, seed)


def _with_noise(data: Data, case: str, value: float | None, seed: int) -> Data:
    noise = None if value is None else make_noise(case, value, seed)
    return data if noise is None else noise(data)


def _bytes(tensors: OrderedDict[tuple[Any, ...], Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
