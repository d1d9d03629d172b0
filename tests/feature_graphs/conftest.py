"""Dense feature graphs written independently in NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

THREADS = torch.get_num_threads()


def pytest_runtest_setup(item):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # matrices this small only wait for each other's threads


def pytest_runtest_teardown(item):
    torch.set_num_threads(THREADS)


def normalized(adjacency):
    """D^(-1/2) A D^(-1/2), with a one on the diagonal where a feature has no edge."""
    degree = adjacency.sum(axis=1)
    result = np.zeros_like(adjacency, dtype=float)
    for i in range(len(adjacency)):
        for j in range(len(adjacency)):
            if degree[i] > 0 and degree[j] > 0:
                result[i, j] = adjacency[i, j] / np.sqrt(degree[i] * degree[j])
        if degree[i] == 0:
            result[i, i] = 1.0
    return result


def learnable(logits, self_loops=True):
    size = len(logits)
    adjacency = np.eye(size) if self_loops else np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1, size):
            adjacency[i, j] = adjacency[j, i] = 1 / (1 + np.exp(-logits[i, j]))
    return normalized(adjacency)


def correlation(x, self_loops=True):
    """Cosine similarity, softmax per row, an edge where either direction exceeds the mean of the matrix."""
    size = x.shape[1]
    similarity = np.eye(size)
    for i in range(size):
        for j in range(size):
            length = np.linalg.norm(x[:, i]) * np.linalg.norm(x[:, j])
            if i != j and length > 0:
                similarity[i, j] = x[:, i] @ x[:, j] / length
    share = np.exp(similarity) / np.exp(similarity).sum(axis=1, keepdims=True)
    above = share > share.mean()
    linked = above | above.T
    np.fill_diagonal(linked, self_loops)
    return normalized(linked.astype(float))


def smoothed(x, edges, strength):
    """(I + s L)^-1 X for an undirected graph without weights."""
    size = len(x)
    adjacency = np.zeros((size, size))
    for source, target in edges.T:
        adjacency[target, source] += 1
    return np.linalg.inv(np.eye(size) + strength * (np.eye(size) - normalized(adjacency))) @ x


@pytest.fixture(scope="session")
def oracle():
    return SimpleNamespace(normalized=normalized, learnable=learnable, correlation=correlation, smoothed=smoothed)


def ring(size, chords=0, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [(i, (i + 1) % size) for i in range(size)] + [tuple(rng.integers(0, size, 2)) for _ in range(chords)]
    edges = np.array([pair for pair in pairs if pair[0] != pair[1]]).T
    return torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))


@pytest.fixture(scope="session")
def make_ring():
    """An undirected graph: a ring and some chords."""
    return ring
