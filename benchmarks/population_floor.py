"""A training step of many networks with learnable feature graphs at once, against what the memory of the GPU allows.

Run on a GPU:  BIGCN_DATA=... python benchmarks/population_floor.py

Forward, backward and Adam touch the logits about twelve times at least; the floor is the time of six plain copies of
them (a copy reads and writes). The step is captured as a CUDA graph, so that launching kernels does not count; what it
takes without is shown beside it.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from bigcn import BiGCN
from bigcn.datasets import load_dataset
from common import store


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


def population_step(name: str, members: int, device: str = "cuda") -> tuple[Callable[[], object], Tensor]:
    """Returns a training step of a population, and its stacked logits."""
    data = load_dataset(name).to(device)
    settings = BiGCN.published(name) | {"dropout": 0.0}
    models = [
        BiGCN(data.num_features, out_channels=int(data.y.max()) + 1, cached=True, **settings).to(device)
        for _ in range(members)
    ]
    parameters, buffers = stack_module_state(models)
    nodes = torch.arange(140, device=device)
    labels = data.y[nodes]
    base = models[0]

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        out, penalty = functional_call(Wrapped(base), (prefixed(parameters), prefixed(buffers)), (data,))
        return F.cross_entropy(out[nodes], labels) + penalty

    optimizer = torch.optim.Adam(parameters.values(), lr=0.01, weight_decay=5e-4, fused=True)
    if device == "cuda":
        optimizer.param_groups[0]["capturable"] = True

    def step() -> object:
        optimizer.zero_grad(set_to_none=False)
        vmap(loss)(parameters, buffers).sum().backward()
        return optimizer.step()

    return step, parameters["convs.0.feature_graph.logits"]


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
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--populations", default="cora:50,citeseer:10,cora:1,citeseer:1")
    options = parser.parse_args()
    rows = []
    for population in options.populations.split(","):
        name, _, members = population.partition(":")
        step, logits = population_step(name, int(members))
        for _ in range(3):
            step()
        launched = milliseconds(step)
        time = milliseconds(captured(step))
        target = torch.empty_like(logits)
        copy = milliseconds(lambda source=logits, target=target: target.copy_(source.detach()))  # type: ignore[misc]
        floor = 6 * copy
        rows.append(
            {
                "graph": name,
                "members": int(members),
                "step_ms": time,
                "uncaptured_ms": launched,
                "floor_ms": floor,
                "times_floor": time / floor,
            }
        )
        print(
            f"{name:9s} {members:>3s} members: {time:7.3f} ms captured, {launched:7.3f} ms launched, "
            f"floor {floor:.3f} ms, {time / floor:.2f} times the floor"
        )
        del step, logits, target
        torch.cuda.empty_cache()
    print(f"stored in results/{store('population-floor', 'python benchmarks/population_floor.py', rows).name}")


if __name__ == "__main__":
    main()
