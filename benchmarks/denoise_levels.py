"""How close the choice of strengths comes to the best one in hindsight, over levels of noise.

Run:  python benchmarks/denoise_levels.py [--levels 0.1,0.3,0.5,0.7,0.9] [--seeds 3]

Digits with their simulated graph, in units of pixels, and scikit-learn's wine, standardised, with a graph of the five
nearest rows of the clean table. The clean tables only judge the result.
"""

import argparse
import time
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch_geometric.data import Data

from bigcn import BiSmoother
from bigcn.datasets import digits
from bigcn.noise import NoiseLevel
from bigcn.smoothing import Denoised, denoise, rank_smoothing
from bigcn.smoothing.denoising import feature_graph_of
from bigcn.smoothing.functional import checked_hop, solve_along
from bigcn.smoothing.neighbours import nearest_edges
from common import store
from denoise_digits import LAMBDA1, LAMBDA2, RANKS


def wine() -> Data:
    table = torch.from_numpy(load_wine().data)
    table = ((table - table.mean(dim=0)) / table.std(dim=0, unbiased=False)).float()
    return Data(x=table, edge_index=nearest_edges(table, 5))


def best_in_hindsight(results: list[Denoised], noisy: Data, clean: torch.Tensor) -> float:
    """Returns the lowest error among all that was tried, by the clean table."""
    mean = noisy.x.mean(dim=0)
    hop = checked_hop(noisy.edge_index, None, noisy.x)
    errors = [float((noisy.x - clean).square().mean())]
    for choice in {choice._replace(error=0.0) for result in results for choice in result.tried}:
        if choice.lambda1 > 0 or choice.lambda2 > 0:
            graph = feature_graph_of(choice, noisy.x - mean, hop)
            smoothed = solve_along(noisy.x - mean, None, hop, graph, choice.lambda1, choice.lambda2, 1e-4)
            errors.append(float((smoothed + mean - clean).square().mean()))
    return min(errors)


def spectral_alone(noisy: Data, seed: int) -> torch.Tensor:
    """What hidden entries choose among spectral graphs alone, on the grid of denoise_digits."""
    ranks = [rank for rank in RANKS if rank < noisy.x.size(1)]
    ranked = rank_smoothing(noisy.x, noisy.edge_index, lambda1=LAMBDA1, lambda2=LAMBDA2, ranks=ranks, seed=seed)
    choice = ranked[0]
    smoother = BiSmoother(choice.lambda1, choice.lambda2, choice.feature_graph, choice.rank)
    return torch.from_numpy(smoother.fit_transform(noisy.x.numpy(), graph=noisy))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default="0.1,0.3,0.5,0.7,0.9")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, clean in (("digits", digits()), ("wine", wine())):
        for level in map(float, options.levels.split(",")):
            errors: dict[str, list[float]] = defaultdict(list)
            ways: dict[str, list[str]] = defaultdict(list)
            start = time.perf_counter()
            for seed in range(options.seeds):
                noisy = NoiseLevel(level, seed=seed)(clean)
                found = {
                    "hidden entries": denoise(noisy.x, noisy.edge_index, seed=seed),
                    "known noise": denoise(noisy.x, noisy.edge_index, noise=level, seed=seed),
                }
                tables = {"raw": noisy.x, "hidden entries, spectral alone": spectral_alone(noisy, seed)}
                for method, result in found.items():
                    tables[method] = result.x
                    ways[method].append(result.directions)
                for method, table in tables.items():
                    errors[method].append(float((table - clean.x).square().mean()))
                errors["best in hindsight"].append(best_in_hindsight(list(found.values()), noisy, clean.x))
            print(f"{name} at {level:g} ({time.perf_counter() - start:.0f} s)")
            for method, values in errors.items():
                row = {"table": name, "level": level, "method": method, "mse": float(np.mean(values))}
                row |= {"std": float(np.std(values)), "seeds": options.seeds}
                row |= {"directions": ", ".join(sorted(set(ways[method])))} if method in ways else {}
                rows.append(row)
                print(f"  {method:32s} {row['mse']:.4f} ± {row['std']:.4f}  {row.get('directions', '')}")
    command = f"python benchmarks/denoise_levels.py --levels {options.levels} --seeds {options.seeds}"
    print(f"stored in results/{store('denoise-levels', command, rows).name}")


if __name__ == "__main__":
    main()
