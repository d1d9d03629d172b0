"""Processes for tests: forked from one that has imported everything already."""

import multiprocessing
import runpy
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import Split
from bigcn.distributed import Manifest, Shard

WORKER = Path(__file__).with_name("worker.py")
Spread = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Spread:
    """Runs a function of the worker in some processes and returns what each of them found, or how it ended."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch_geometric", "bigcn.distributed", "bigcn.training"])

    def run(do: str, size: int, codes: tuple[int, ...] = (0,), **arguments: Any) -> list[Any]:
        out = tmp_path_factory.mktemp("spread")
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
        workers = []
        for rank in range(size):
            environment = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            job = {"do": do, "out": str(out), "environment": environment, "arguments": arguments}
            worker = context.Process(target=runpy.run_path, args=(str(WORKER), {"JOB": job}, "worker"))
            worker.start()
            workers.append(worker)
        for worker in workers:
            worker.join(120)
            assert worker.exitcode is not None, "a process hangs"
            assert worker.exitcode in codes, f"a process ended with {worker.exitcode}"
        found = [out / f"{rank}.pt" for rank in range(size)]
        return [torch.load(path, weights_only=False) if path.exists() else None for path in found]

    return run


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def graphs() -> SimpleNamespace:
    return SimpleNamespace(random=random_graph, by_row=by_row, reassembled=reassembled)


def random_graph(
    nodes: int = 90, features: int = 12, classes: int = 3, weighted: bool = False, seed: int = 0
) -> tuple[Data, Split]:
    """A graph with communities, isolated nodes, labels that features tell, and a split."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (nodes,), generator=generator)
    x = torch.randn(nodes, features, generator=generator, dtype=torch.float64)
    x[:, :classes] += 2 * torch.nn.functional.one_hot(y, classes)
    upper = torch.rand(nodes, nodes, generator=generator, dtype=torch.float64).triu(1)
    near = y.unsqueeze(0) == y.unsqueeze(1)
    linked = (upper > torch.where(near, 0.85, 0.96)).triu(1)
    linked[:, ::17] = False
    linked[::17] = False
    one = linked.nonzero().t()
    weight = torch.rand(one.size(1), generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    order = torch.randperm(nodes, generator=generator)
    sizes = [nodes // 2, nodes // 4, nodes - nodes // 2 - nodes // 4]
    split = Split("test", *(part.sort().values for part in order.split(sizes)))
    data = Data(x=x, y=y, edge_index=torch.cat([one, one.flip(0)], dim=1))
    if weight is not None:
        data.edge_weight = torch.cat([weight, weight])
    return data, split


def by_row(found: list[dict[str, Any]], name: str) -> torch.Tensor:
    """Returns what all processes found about their nodes, in the order of the node table."""
    rows = torch.cat([torch.as_tensor(part["rows"]) for part in found])
    values = torch.cat([part[name] for part in found])
    return torch.empty_like(values).index_copy_(0, rows, values)


def reassembled(folder: Path) -> SimpleNamespace:
    """Puts the shards of a folder together again: dense features, a dense adjacency, and what else there is."""
    manifest = Manifest.load(folder)
    n = manifest.nodes
    found = SimpleNamespace(manifest=manifest, x=np.full((n, manifest.features), np.nan), y=None, split=None)
    found.adjacency, found.ids, found.owner = np.zeros((n, n)), [None] * n, np.full(n, -1)
    found.y, found.split = np.full(n, -9), np.full(n, -9)
    for part in range(manifest.parts):
        shard = Shard(folder, part, manifest)
        rows, halo = shard.array("rows"), shard.array("halo_rows")
        x = shard.features(torch.float64)
        found.x[rows] = (x if x.layout == torch.strided else x.to_dense()).numpy()
        found.owner[rows] = part
        for name, target in (("y", found.y), ("split", found.split)):
            if getattr(manifest, {"y": "labelled"}.get(name, name)):
                target[rows] = shard.array(name)
        for row, id in zip(rows, shard.ids(), strict=True):
            found.ids[row] = id
        for kind, columns in (("own", rows), ("halo", halo)):
            crow, col = shard.array(f"{kind}_crow"), shard.array(f"{kind}_col")
            weight = shard.array(f"{kind}_weight") if manifest.weighted else np.ones(len(col))
            row = np.repeat(np.arange(len(rows)), np.diff(crow))
            assert (np.diff(row * (len(columns) + 1) + col) > 0).all()  # sorted, nothing twice
            found.adjacency[rows[row], columns[col]] += weight
    return found
