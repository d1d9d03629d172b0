"""A small graph of one's own: three groups of nodes, with columns of every kind."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from bigcn.datasets.own import OwnGraph, read_graph

Tables = tuple[pd.DataFrame, pd.DataFrame]
CLASSES = ("beech", "fir", "oak")


def tables(nodes: int = 75, seed: int = 0, shuffle: int | None = None, labelled: float = 0.8) -> Tables:
    """Writes node and edge tables; `shuffle` puts their rows in another order and changes nothing else."""
    rng = np.random.default_rng(seed)
    kind = np.arange(nodes) % 3
    ids = np.array([f"tree-{place:04d}" for place in range(nodes)])
    frame = pd.DataFrame(
        {
            "id": ids,
            "height": 1.0 * kind + rng.normal(0, 0.4, nodes),
            "age": 10.0 - 3 * (kind == 1) + rng.normal(0, 1, nodes),
            "mossy": rng.random(nodes) < 0.2 + 0.3 * kind,
            "soil": np.array(["clay", "sand", "loam"])[(kind + (rng.random(nodes) < 0.3)) % 3],
            "noise": rng.normal(size=nodes),
            "slope": rng.normal(size=nodes) + (kind == 2),
        }
    )
    names = np.array(CLASSES, dtype=object)[kind]
    names[rng.random(nodes) > labelled] = None
    frame["kind"] = names
    source = rng.integers(0, nodes, 4 * nodes)
    same = rng.random(4 * nodes) < 0.85
    target = np.where(same, (source + 3 * rng.integers(1, nodes // 3, 4 * nodes)) % nodes, rng.integers(0, nodes))
    keep = source != target
    edges = pd.DataFrame({"source": ids[source[keep]], "target": ids[target[keep]]})
    if shuffle is not None:
        frame = frame.sample(frac=1, random_state=shuffle).reset_index(drop=True)
        edges = edges.sample(frac=1, random_state=shuffle).reset_index(drop=True)
    return frame, edges


@pytest.fixture(scope="session")
def make_tables() -> Callable[..., Tables]:
    return tables


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., OwnGraph]:
    def make(**options: object) -> OwnGraph:
        return read_graph(*tables(**options), label="kind", standardize=False)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def graph(make_graph: Callable[..., OwnGraph]) -> OwnGraph:
    return make_graph()
