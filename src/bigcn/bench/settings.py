"""Training steps of BiGCN against its own: more rounds, more hidden units, exact filters."""

from collections.abc import Iterator
from typing import Any

from torch_geometric.data import Data

from bigcn.bench.steps import HIDDEN, bigcn_for, training_step
from bigcn.bench.timing import compare_times, interleaved, row

ROUNDS = (1, 2, 3, 4)
WIDTHS = (HIDDEN, 2 * HIDDEN, 4 * HIDDEN, 8 * HIDDEN)
TOLERANCES = (1e-3, 1e-5, 1e-7)
#: A penalty of ADMM with which four rounds do not cancel each other.
P = 1.0


def against_settings(name: str, data: Data, rounds: int, device: str = "cpu") -> Iterator[dict[str, Any]]:
    """Measures what rounds of ADMM, hidden units and exact filters cost, each against the usual setting.

    Rows of exact filters name their tolerance and the hops on the node graph that it takes.

    Args:
        name (str): The name of the graph.
        data (Data): The graph.
        rounds (int): How often each is timed.
        device (str, optional): The device. (default: :obj:`"cpu"`)
    """
    models = {f"k={k}": bigcn_for(name, data, "learnable", p=P, iterations=k) for k in ROUNDS}
    models |= {f"h={h}": bigcn_for(name, data, "learnable", p=P, hidden_channels=h) for h in WIDTHS}
    models["taylor"] = bigcn_for(name, data, "none")
    for tolerance in TOLERANCES:
        models[f"tolerance={tolerance:g}"] = bigcn_for(
            name, data, "none", node_filter="exact", node_strength=5.0, tolerance=tolerance
        )
    contenders = {key: training_step(model.to(device), data, data.edge_index) for key, model in models.items()}
    times = interleaved(contenders, rounds, device)
    usual = ("rounds of ADMM", "k=2", ROUNDS, "k"), ("hidden units", f"h={HIDDEN}", WIDTHS, "h")
    for bench, against, values, letter in usual:
        for key in (f"{letter}={value}" for value in values):
            if key != against:
                ratio = compare_times(times, key, against)
                yield row(bench, name, f"bigcn:taylor+learnable, {key}", f"bigcn:taylor+learnable, {against}", ratio)
    for tolerance in TOLERANCES:
        key = f"tolerance={tolerance:g}"
        ratio = compare_times(times, key, "taylor")
        hops = models[key].convs[0].num_hops
        yield row("exact filter", name, f"bigcn:exact+none, {key}", "bigcn:taylor+none", ratio) | {
            "tolerance": tolerance,
            "hops": hops,
        }
