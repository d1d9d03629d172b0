"""A training step of many networks with learnable feature graphs at once, against what the memory of the GPU allows.

Run on a GPU:  BIGCN_DATA=... python benchmarks/population_floor.py

Forward, backward and Adam touch the logits about twelve times at least; the floor is the time of six plain copies of
them as squares (a copy reads and writes). They are stored as packed triangles, about half as large, and what six
copies of these take is shown too. The step is captured as a CUDA graph, so that launching kernels does not count; what
it takes without is shown beside it, and what its parts take, each captured alone. --tune measures other tiles for the
kernels, --no-triton does without these.
"""

import argparse
import itertools
import statistics
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from bigcn import BiGCN
from bigcn.datasets import load_dataset
from bigcn.feature_graphs import learnable_ops
from common import store

LOGITS = "convs.0.feature_graph.packed_logits"


def milliseconds(call: Callable[[], object], rounds: int = 30) -> float:
    """Returns the median time of a call on the GPU."""
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


class Population:
    """The networks of one graph, their parameters stacked.

    Args:
        name (str): The graph.
        members (int): How many networks.
        device (str, optional): The device. (default: :obj:`"cuda"`)
    """

    def __init__(self, name: str, members: int, device: str = "cuda") -> None:
        self.data = load_dataset(name).to(device)
        settings = BiGCN.published(name) | {"dropout": 0.0}
        classes = int(self.data.y.max()) + 1
        models = [
            BiGCN(self.data.num_features, out_channels=classes, cached=True, **settings).to(device)
            for _ in range(members)
        ]
        self.parameters, self.buffers = stack_module_state(models)
        self.base = Wrapped(models[0])
        self.nodes = torch.arange(140, device=device)
        self.optimizer = torch.optim.Adam(self.parameters.values(), lr=0.01, weight_decay=5e-4, fused=True)
        self.optimizer.param_groups[0]["capturable"] = device == "cuda"

    def loss(self) -> Tensor:
        """Returns the sum of the losses of all members."""
        labels = self.data.y[self.nodes]

        def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            out, penalty = functional_call(self.base, (prefixed(parameters), prefixed(buffers)), (self.data,))
            return F.cross_entropy(out[self.nodes], labels) + penalty

        return vmap(loss)(self.parameters, self.buffers).sum()

    def step(self) -> None:
        """Trains all members for a step."""
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def parts(self) -> dict[str, Callable[[], object]]:
        """Returns the parts of a step that could be worth their time."""
        logits = self.parameters[LOGITS].detach()
        members, size, hidden = len(logits), self.data.num_features, self.base.model.convs[0].out_channels
        passes = learnable_ops._passes(logits)
        upper, degree = passes.triangle(logits, size)
        scale = learnable_ops.inverse_root(degree, True).unsqueeze(1)
        blocks = {height: torch.rand(members, height, size, device=logits.device) for height in (hidden, hidden + 1)}
        narrow = torch.rand(2, members, 4 * hidden + 3, size, device=logits.device)
        wide = torch.rand(size, members * 3 * hidden, device=logits.device)
        out = torch.rand(self.data.num_nodes, members * 3 * hidden, device=logits.device)
        alone = torch.nn.Parameter(logits.clone())
        alone.grad = torch.rand_like(alone)
        adam = torch.optim.Adam([alone], lr=0.01, weight_decay=5e-4, fused=True)
        adam.param_groups[0]["capturable"] = logits.is_cuda
        return {
            "triangle": lambda: passes.triangle(logits, size),
            "product": lambda: passes.product(upper, scale, blocks[hidden], True),
            "product with row sums": lambda: passes.product(upper, scale, blocks[hidden + 1], True),
            "gradient": lambda: passes.gradient(*narrow, upper),
            "Adam of the logits": adam.step,
            "features times weights": lambda: self.data.x @ wide,
            "and its transpose": lambda: self.data.x.t() @ out,
            "forward": lambda: self.loss().detach(),
            "forward and backward": self._gradients,
        }

    def _gradients(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()


class Wrapped(torch.nn.Module):
    """Output and penalty in one call, so that both see the same parameters."""

    def __init__(self, model: BiGCN) -> None:
        super().__init__()
        self.model = model

    def forward(self, data: object) -> tuple[Tensor, Tensor]:
        return self.model(data.x, data.edge_index), self.model.penalty()  # type: ignore[attr-defined]


def prefixed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"model.{key}": value for key, value in tensors.items()}


def captured(step: Callable[[], object]) -> Callable[[], object]:
    """Returns the step as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def copy_time(numel: int) -> float:
    """Returns the time of a plain copy of so many floats."""
    source, target = torch.zeros(2, numel, device="cuda")
    return milliseconds(lambda: target.copy_(source))


def measure(name: str, members: int) -> dict[str, Any]:
    """Returns what a step and its parts take, and the floors."""
    population = Population(name, members)
    for _ in range(3):
        population.step()
    size = population.data.num_features
    found: dict[str, Any] = {
        "graph": name,
        "members": members,
        "step_ms": milliseconds(captured(population.step)),
        "uncaptured_ms": milliseconds(population.step),
        "floor_ms": 6 * copy_time(members * size**2),
        "packed_floor_ms": 6 * copy_time(population.parameters[LOGITS].numel()),
        "parts_ms": {what: milliseconds(captured(call)) for what, call in population.parts().items()},
    }
    return found | {"times_floor": found["step_ms"] / found["floor_ms"]}


def tune(name: str, members: int) -> None:
    """Prints what the kernels take with other tiles."""
    kernels = learnable_ops._triton()
    assert kernels is not None, "there is no Triton here"
    parts = Population(name, members).parts()
    for constant, part in (("PRODUCT", "product"), ("GRADIENT", "gradient")):
        chosen, times = getattr(kernels, constant), []
        for sizes in itertools.product((64, 128), (32, 64, 128), (4, 8), (2, 4)):
            setattr(kernels, constant, kernels.Tiles(*sizes))
            try:
                times.append((milliseconds(captured(parts[part]), 10), sizes))
            except Exception as error:  # tiles that do not fit
                print(f"  {part} {sizes}: {type(error).__name__}")
        setattr(kernels, constant, chosen)
        for time, sizes in sorted(times)[:6]:
            print(f"{name} {members}, {part}: {time:.3f} ms with rows, columns, warps, stages = {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--populations", default="cora:50,citeseer:10,cora:1,citeseer:1")
    parser.add_argument("--tune", action="store_true", help="try other tiles, and store nothing")
    parser.add_argument("--no-triton", action="store_true", help="do without kernels, and store nothing")
    options = parser.parse_args()
    learnable_ops.USE_TRITON = not options.no_triton
    rows = []
    for population in options.populations.split(","):
        name, _, members = population.partition(":")
        if options.tune:
            tune(name, int(members))
            continue
        row = measure(name, int(members))
        rows.append(row)
        print(
            f"{name:9s} {members:>3s} members: {row['step_ms']:7.3f} ms captured, "
            f"{row['uncaptured_ms']:7.3f} ms launched, "
            f"floor {row['floor_ms']:.3f} ms ({row['packed_floor_ms']:.3f} packed), "
            f"{row['times_floor']:.2f} times the floor"
        )
        for what, time in row["parts_ms"].items():
            print(f"    {what:24s} {time:7.3f} ms")
        torch.cuda.empty_cache()
    if not (options.tune or options.no_triton):
        print(f"stored in results/{store('population-floor', 'python benchmarks/population_floor.py', rows).name}")


if __name__ == "__main__":
    main()
