"""How well missing pixels of digits are filled, against column means and scikit-learn's KNNImputer.

Run:  python benchmarks/impute_digits.py [--share 0.3] [--seeds 5]

The graph that comes with the digits is drawn from their labels, not from their pixels, so it knows nothing of the
values that are missing; the graph of nearest rows is computed from the incomplete table alone. What is missing
only judges.
"""

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import torch
from sklearn.impute import KNNImputer
from torch import Tensor

from bigcn.datasets import digits
from bigcn.smoothing import impute
from common import store

Fill = Callable[[Tensor, Tensor, Tensor], Tensor]


def column_means(x: Tensor, gaps: Tensor, edges: Tensor) -> Tensor:
    return torch.where(gaps, torch.where(gaps, torch.nan, x).nanmean(dim=0).nan_to_num(), x)


def nearest_rows(neighbours: int) -> Fill:
    def fill(x: Tensor, gaps: Tensor, edges: Tensor) -> Tensor:
        table = torch.where(gaps, torch.nan, x).numpy()
        return torch.from_numpy(KNNImputer(n_neighbors=neighbours).fit_transform(table))

    return fill


def two_way(**options: object) -> Fill:
    def fill(x: Tensor, gaps: Tensor, edges: Tensor) -> Tensor:
        return impute(x, gaps, edges, **options).x  # type: ignore[arg-type]

    return fill


METHODS: dict[str, Fill] = {
    "column means": column_means,
    "KNNImputer, 5 neighbours (default)": nearest_rows(5),
    "KNNImputer, 10 neighbours": nearest_rows(10),
    "two-way, both graphs tried": two_way(),
    "two-way, both graphs tried, one unit": two_way(standardize=False),
    "without features, both graphs tried, one unit": two_way(standardize=False, lambda2=(0.0,)),
    "features alone, one unit": two_way(standardize=False, lambda1=(0.0,)),
    "two-way, given graph, one unit": two_way(standardize=False, nodes=("given",)),
    "without features, given graph, one unit": two_way(standardize=False, nodes=("given",), lambda2=(0.0,)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    data = digits()
    errors: dict[str, list[float]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    for seed in range(options.seeds):
        gaps = torch.from_numpy(np.random.default_rng(seed).random(data.x.shape) < options.share)
        for name, fill in METHODS.items():
            start = time.perf_counter()
            filled = fill(torch.where(gaps, torch.nan, data.x), gaps, data.edge_index)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(float((filled - data.x)[gaps].square().mean().sqrt()))
    rows = []
    for name, values in errors.items():
        row = {"method": name, "share": options.share, "seeds": options.seeds, "rmse": float(np.mean(values))}
        row |= {"std": float(np.std(values)), "worst": max(values), "seconds": float(np.mean(seconds[name]))}
        rows.append(row)
        print(f"{name:46s} RMSE {row['rmse']:.4f} ± {row['std']:.4f}, {row['seconds']:.1f} s")
    command = f"python benchmarks/impute_digits.py --share {options.share:g} --seeds {options.seeds}"
    print(f"stored in results/{store('impute-digits', command, rows).name}")


if __name__ == "__main__":
    main()
