"""Shared fixtures. Workers of pytest-xdist share the cores, so each takes one thread."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

# Read once, before a test changes the environment or its folder.
BENCHMARK_DATA = os.environ.get("BIGCN_DATA")
if BENCHMARK_DATA:
    BENCHMARK_DATA = str(Path(BENCHMARK_DATA).resolve())


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the raw files of the paper's graphs, which are no part of the repository."""
    if BENCHMARK_DATA:
        return Path(BENCHMARK_DATA)
    if os.environ.get("CI"):
        pytest.fail("BIGCN_DATA is not set, and in CI it must name the folder with the benchmark data")
    pytest.skip("BIGCN_DATA does not name a folder with the benchmark data")


@pytest.fixture(scope="session")
def ring() -> Callable[..., Data]:
    """Makes a ring of nodes, no two of which have the same features."""

    def make(n: int = 20, d: int = 12, **attributes: object) -> Data:
        x = torch.arange(n * d, dtype=torch.float).reshape(n, d) / (n * d)
        node = torch.arange(n)
        return Data(x=x, edge_index=to_undirected(torch.stack([node, (node + 1) % n]), num_nodes=n), **attributes)

    return make


@pytest.fixture(scope="session")
def edge_set() -> Callable[[Tensor], set[tuple[int, int]]]:
    """Turns edges, each of which must be listed once, into a set."""

    def as_set(edge_index: Tensor) -> set[tuple[int, int]]:
        edges = [(int(i), int(j)) for i, j in edge_index.t()]
        assert len(edges) == len(set(edges))
        return set(edges)

    return as_set
