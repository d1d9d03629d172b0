"""Synthetic graphs with degrees of a power law, with and without communities."""

import numpy as np

from bigcn.distributed.assign import DiskGraph


def power_law_edges(
    nodes: int, degree: float, communities: bool, seed: int = 0, exponent: float = 2.3
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ends of edges drawn in proportion to expected degrees (Chung and Lu), duplicates included.

    Args:
        nodes (int): The number of nodes, shuffled, so that their order tells nothing.
        degree (float): The mean degree.
        communities (bool): Whether four of five edges stay within communities of about 500 nodes.
        seed (int, optional): The seed. (default: :obj:`0`)
        exponent (float, optional): The exponent of the power law. (default: :obj:`2.3`)
    """
    generator = np.random.default_rng(seed)
    weight = (np.arange(nodes) + 10.0) ** (-1 / (exponent - 1))
    generator.shuffle(weight)
    count = int(nodes * degree / 2)
    total = np.cumsum(weight)

    def drawn(number: int) -> np.ndarray:
        return np.searchsorted(total, generator.random(number) * total[-1]).clip(max=nodes - 1)

    source, target = drawn(count), drawn(count)
    if communities:
        # Nodes of a community stand together here; the other end is drawn within it, by the same weights.
        stays = generator.random(count) < 0.8
        first = source[stays] // 500 * 500
        last = np.minimum(first + 499, nodes - 1)
        low = np.where(first > 0, total[first - 1], 0.0)
        target[stays] = np.searchsorted(total, low + generator.random(len(first)) * (total[last] - low)).clip(
            first, last
        )
    names = generator.permutation(nodes)
    return names[source], names[target]


def compressed(source: np.ndarray, target: np.ndarray, nodes: int) -> DiskGraph:
    """Returns an undirected graph in CSR form, self-loops and duplicates removed."""
    proper = source != target
    source, target = source[proper], target[proper]
    code = np.unique(np.concatenate([source * nodes + target, target * nodes + source]))
    crow = np.zeros(nodes + 1, dtype=np.int64)
    crow[1:] = np.cumsum(np.bincount(code // nodes, minlength=nodes))
    return DiskGraph(crow, (code % nodes).astype(np.int32))
