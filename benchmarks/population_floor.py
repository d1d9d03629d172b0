"""A training step of many networks with learnable feature graphs at once, against what the memory of the GPU allows.

Run on a GPU:  BIGCN_DATA=... python benchmarks/population_floor.py

Forward, backward and Adam touch the logits about twelve times at least; the floor is the time of six plain copies of
them as squares (a copy reads and writes). They are stored as packed triangles, about half as large, and what six
copies of these take is shown too. Dense products are in TensorFloat-32, as in the reproduction. The step is captured as
a CUDA graph, so that launching kernels does not count; what it takes without is shown beside it, and what its parts
take, each captured alone. --tune first chooses the tiles of the kernels, for all populations those that are best for
the first two, --no-triton does without kernels.
"""

import argparse
import itertools
import statistics
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from bigcn import BiGCN
from bigcn.datasets import load_dataset
from bigcn.feature_graphs import learnable_ops
from bigcn.precision import fast_products
from bigcn.training.population_state import _captured
from common import milliseconds, store

LOGITS = "convs.0.feature_graph.packed_logits"
#: What --tune tries for each kernel: rows, columns and warps, then stages, then other constants. Compiling one takes
#: about a second.
CHOICES: dict[str, tuple[tuple[tuple[int, int, int], ...], tuple[int, ...], dict[str, tuple[int, ...]]]] = {
    "TRIANGLE": (
        ((16, 128, 4), (32, 64, 4), (32, 128, 4), (64, 64, 4), (64, 64, 8), (64, 128, 8), (128, 64, 8), (128, 128, 8)),
        (1,),
        {},
    ),
    "PRODUCT": (
        ((32, 64, 4), (64, 32, 4), (64, 64, 4), (64, 64, 8), (128, 32, 4), (128, 32, 8), (128, 64, 8)),
        (3, 4),
        {},
    ),
    "GRADIENT": (((64, 64, 4), (64, 128, 4), (128, 64, 8), (128, 128, 8)), (2, 3), {"GRADIENT_RANK": (16, 32)}),
}
#: How often a step calls a kernel, and for what.
CALLS = {
    "TRIANGLE": {"triangle": 1},
    "PRODUCT": {"product": 3, "product with row sums": 1},
    "GRADIENT": {"gradient": 1},
}


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
        block = torch.rand(members, hidden, size, device=logits.device)
        narrow = torch.rand(2, members, 4 * hidden + 3, size, device=logits.device)
        wide = torch.rand(size, members * 3 * hidden, device=logits.device)
        out = torch.rand(self.data.num_nodes, members * 3 * hidden, device=logits.device)
        alone = torch.nn.Parameter(logits.clone())
        alone.grad = torch.rand_like(alone)
        adam = torch.optim.Adam([alone], lr=0.01, weight_decay=5e-4, fused=True)
        adam.param_groups[0]["capturable"] = logits.is_cuda
        return {
            "triangle": lambda: passes.triangle(logits, size),
            "product": lambda: passes.product(upper, scale, block, True),
            "product with row sums": lambda: passes.product(upper, scale, block, True, row_sums=True),
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
    """Returns the step as a CUDA graph, after a few steps that compile what they need."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    return _captured(step)


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


def settings(kernels: types.ModuleType, kernel: str) -> list[dict[str, Any]]:
    """Returns the values to try for the constants of a kernel."""
    sizes, stages, others = CHOICES[kernel]
    tiles = [kernels.Tiles(*size, stage) for size, stage in itertools.product(sizes, stages)]
    return [dict(zip((kernel, *others), values, strict=True)) for values in itertools.product(tiles, *others.values())]


def assign(kernels: types.ModuleType, constants: dict[str, Any]) -> None:
    for constant, value in constants.items():
        setattr(kernels, constant, value)


def written(constants: dict[str, Any]) -> list[str]:
    """Returns constants as lines of :mod:`bigcn.feature_graphs.learnable_triton`."""
    return [
        f"{constant} = {f'Tiles{tuple(value)}' if isinstance(value, tuple) else value}"
        for constant, value in constants.items()
    ]


def tune(populations: list[tuple[str, int]]) -> None:
    """Prints what the kernels take with other tiles, and goes on with those whose geometric mean is the least."""
    kernels = learnable_ops._triton()
    assert kernels is not None, "there is no Triton here"
    parts = [Population(name, members).parts() for name, members in populations]
    print("tuned for", ", ".join(f"{name} {members}" for name, members in populations))
    lines = []
    for kernel, calls in CALLS.items():
        found = []
        choices = settings(kernels, kernel)
        chosen = {constant: getattr(kernels, constant) for constant in choices[0]}
        for constants in choices:
            assign(kernels, constants)
            try:
                times = [
                    sum(count * milliseconds(captured(of_one[part]), 10) for part, count in calls.items())
                    for of_one in parts
                ]
            except Exception as error:  # tiles that do not fit
                print(f"  {', '.join(written(constants))}: {type(error).__name__}")
                continue
            found.append((statistics.geometric_mean(times), times, constants))
        found.sort(key=lambda choice: choice[0])
        if found:
            chosen = found[0][2]
        assign(kernels, chosen)
        lines += written(chosen)
        for _, times, constants in found[:6]:
            print(f"  {', '.join(f'{time:.3f}' for time in times)} ms with {', '.join(written(constants))}")
    print("\n".join(["best:", *lines]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--populations", default="cora:50,citeseer:10,cora:1,citeseer:1", help="the largest first")
    parser.add_argument("--tune", action="store_true", help="choose other tiles, and store nothing")
    parser.add_argument("--no-triton", action="store_true", help="do without kernels, and store nothing")
    options = parser.parse_args()
    if options.tune and options.no_triton:
        parser.error("--tune takes kernels")
    learnable_ops.USE_TRITON = not options.no_triton
    pairs = (population.partition(":") for population in options.populations.split(","))
    populations = [(name, int(members)) for name, _, members in pairs]
    with fast_products():
        run(populations, options)


def run(populations: list[tuple[str, int]], options: argparse.Namespace) -> None:
    """Measures, and stores what was found."""
    if options.tune:
        tune(populations[:2])
        torch.cuda.empty_cache()
    rows = []
    for name, members in populations:
        row = measure(name, members)
        rows.append(row)
        print(
            f"{name:9s} {members:3d} members: {row['step_ms']:7.3f} ms captured, "
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
