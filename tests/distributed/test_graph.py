import numpy as np
import pytest
import torch

from bigcn.distributed import partition_data


def normalised(data):
    """The oracle: dense and by the textbook, an isolated node with a one on the diagonal."""
    n = data.num_nodes
    weight = torch.ones(data.edge_index.size(1), dtype=torch.float64) if data.edge_weight is None else data.edge_weight
    adjacency = np.zeros((n, n))
    adjacency[data.edge_index[0], data.edge_index[1]] = weight
    degree = adjacency.sum(axis=1)
    scale = np.divide(1, np.sqrt(degree), where=degree > 0, out=np.zeros(n))
    return torch.from_numpy(scale[:, None] * adjacency * scale + np.diag(degree == 0))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_hop_and_its_gradient_equal_the_dense_product(size, weighted, spread, graphs, tmp_path):
    data, _ = graphs.random(weighted=weighted)
    partition_data(data, tmp_path / "shards", size, method="random")
    found = spread("hops", size, shards=str(tmp_path / "shards"), width=5)
    block, upstream = torch.randn(2, 90, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    matrix = normalised(data)
    assert (graphs.by_row(found, "out") - matrix @ block).abs().max() < 1e-12
    assert (graphs.by_row(found, "grad") - matrix.t() @ upstream).abs().max() < 1e-12
    for part in found:
        assert part["sizes"] == (90, data.edge_index.size(1))


@pytest.mark.parametrize("size", [2, 3])
def test_bytes_sent_are_those_of_the_distinct_neighbours_elsewhere(size, spread, graphs, tmp_path):
    data, _ = graphs.random()
    owner = np.random.default_rng(1).integers(size, size=90)
    partition_data(data, tmp_path / "shards", size, method=owner)
    found = spread("hops", size, shards=str(tmp_path / "shards"), width=5)
    source, target = data.edge_index.numpy()
    for rank, part in enumerate(found):
        crossing = (owner[source] == rank) & (owner[target] != rank)
        rows = {(int(a), int(owner[b])) for a, b in zip(source[crossing], target[crossing], strict=True)}
        assert part["sent"] == part["listed"] == 2 * len(rows) * 5 * 8  # there, and back for the gradient
