"""How well two-way smoothing restores noisy digits, against smoothing in one direction.

Run:  python benchmarks/denoise_digits.py [--level 0.5] [--picture docs/images/denoised-digits.png]

Strengths and ranks are chosen on hidden pixels of the noisy images; the clean images only judge the result.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bigcn import BiSmoother
from bigcn.datasets import digits
from bigcn.noise import NoiseLevel
from bigcn.smoothing import SmoothingChoice, rank_smoothing
from common import store

LAMBDA1 = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0)
LAMBDA2 = (0.0, 1.0, 3.0, 10.0, 30.0)
RANKS = (4, 8, 12, 16)


def draw(images: dict[str, np.ndarray], labels: np.ndarray, path: Path) -> None:
    """Draws the first digit of each class, one row for each version of it."""
    shown = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    rows = ("clean", "noisy", "nodes alone", "two-way")
    figure = Figure(figsize=(8, 3.4), dpi=150, facecolor="white", layout="constrained")
    for place, axes in enumerate(figure.subplots(len(rows), len(shown)).flat):
        name, column = rows[place // 10], place % 10
        axes.imshow(images[name][shown[column]].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        if column == 0:
            axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--picture", type=Path, help="also draw ten digits before and after")
    options = parser.parse_args()

    clean = digits()
    errors: dict[str, list[float]] = {"raw": [], "nodes alone": [], "features alone": [], "two-way": []}
    chosen: dict[str, SmoothingChoice] = {}
    for seed in range(options.seeds):
        noisy = NoiseLevel(options.level, seed=seed)(clean)
        ranked = rank_smoothing(noisy.x, noisy.edge_index, lambda1=LAMBDA1, lambda2=LAMBDA2, ranks=RANKS, seed=seed)
        chosen = {
            "nodes alone": next(c for c in ranked if c.lambda2 == 0 and c.lambda1 > 0),
            "features alone": next(c for c in ranked if c.lambda1 == 0 and c.lambda2 > 0),
            "two-way": next(c for c in ranked if c.lambda1 > 0 and c.lambda2 > 0),
        }
        images = {"clean": clean.x.numpy(), "noisy": noisy.x.numpy()}
        errors["raw"].append(float((noisy.x - clean.x).square().mean()))
        for name, choice in chosen.items():
            smoother = BiSmoother(choice.lambda1, choice.lambda2, choice.feature_graph, choice.rank)
            restored = smoother.fit_transform(noisy.x.numpy(), graph=noisy)
            images[name] = restored
            errors[name].append(float(np.square(restored - clean.x.numpy()).mean()))
    rows = []
    for name, values in errors.items():
        row = {"method": name, "level": options.level, "mse": float(np.mean(values)), "std": float(np.std(values))}
        if name in chosen:
            row |= {key: getattr(chosen[name], key) for key in ("lambda1", "lambda2", "rank")}
        rows.append(row)
        print(f"{name:15s} mean squared error {row['mse']:.4f} ± {row['std']:.4f}")
    two_way, raw = np.mean(errors["two-way"]), np.mean(errors["raw"])
    one_way = min(np.mean(errors["nodes alone"]), np.mean(errors["features alone"]))
    print(f"{raw / two_way:.1f} times less than raw, {100 * (1 - two_way / one_way):.0f} % less than the best one-way")
    command = f"python benchmarks/denoise_digits.py --level {options.level:g} --seeds {options.seeds}"
    if options.picture:
        draw(images, clean.y.numpy(), options.picture)
    print(f"stored in results/{store('denoise-digits', command, rows).name}")


if __name__ == "__main__":
    main()
