"""Products of features and weights of a population, with lines as they are and filled up.

Run on a GPU:  python benchmarks/feature_lines.py

Forward and backward pass of the first product of GCNs of 64 units with the sizes of the paper's graphs, in
TensorFloat-32: each member with features of its own (noise), or all with the same (clean graphs, wrong edges), there
mapped as PyTorch maps a linear layer and as :func:`bigcn.nn.feature_product.feature_product` does.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from bigcn.datasets import get_spec
from bigcn.experiments.paper import NODE_GRAPHS
from bigcn.nn.feature_product import feature_product, filled
from bigcn.precision import fast_products
from common import milliseconds, store

UNITS = 64


def step(product: Callable[[Tensor, Tensor], Tensor], x: Tensor, weight: Tensor, own: bool) -> Callable[[], None]:
    """Returns a forward and backward pass, captured as populations are: to launch it takes longer than it does."""
    mapped = vmap(product, (0 if own else None, 0))
    grad = torch.randn_like(mapped(x, weight))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries choose their algorithms
        torch.autograd.grad(mapped(x, weight), weight, grad)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.autograd.grad(mapped(x, weight), weight, grad)
    return graph.replay


def rows_of(graph: str, members: int) -> list[dict[str, Any]]:
    """Returns the times on a graph."""
    known = get_spec(graph)
    weight = torch.randn(members, UNITS, known.features, device="cuda", requires_grad=True)
    rows = []
    for own in (True, False):
        x = torch.randn(*((members,) if own else ()), known.nodes, known.features, device="cuda")
        times = {
            "as it is": milliseconds(step(F.linear, x, weight, own)),
            "our product": milliseconds(step(feature_product, x, weight, own)),
            "with full lines": milliseconds(step(feature_product, filled(x), weight, own)),
        }
        rows.append({"graph": graph, "members": members, "features": "own" if own else "shared", **times})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=24)
    options = parser.parse_args()
    with fast_products():
        rows = [row for graph in NODE_GRAPHS for row in rows_of(graph, options.members)]
    for row in rows:
        print(" | ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    command = f"python benchmarks/feature_lines.py --members {options.members}"
    print(f"stored in results/{store('feature-lines', command, rows).name}")


if __name__ == "__main__":
    main()
