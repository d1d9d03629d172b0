"""Shared fixtures. Workers of pytest-xdist share the cores, so each takes one thread."""

import os
from pathlib import Path

import pytest
import torch

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
