import numpy as np
import pytest
import torch
from torch_geometric.data import Data


@pytest.fixture(scope="session")
def towns() -> tuple[Data, np.ndarray]:
    """Four towns, whose people are alike and linked, with one wrong link in ten; and the wrong links, i < j."""
    rng = np.random.default_rng(0)
    nodes = 240
    town = np.arange(nodes) % 4
    x = rng.normal(size=(nodes, 12)) + 1.2 * np.eye(4)[town] @ rng.normal(size=(4, 12))
    right, wrong = set(), set()
    while len(right) < 900:
        i, j = sorted(rng.integers(nodes, size=2))
        if i != j and town[i] == town[j]:
            right.add((int(i), int(j)))
    while len(wrong) < 100:
        i, j = sorted(rng.integers(nodes, size=2))
        if town[i] != town[j]:
            wrong.add((int(i), int(j)))
    edges = torch.tensor(sorted(right | wrong)).t()
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    return data, np.array(sorted(wrong)).T
