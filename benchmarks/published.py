"""The published form of BiGCN beside the published numbers, on the authors' splits and seeds.

Run:  BIGCN_DATA=... python benchmarks/published.py [--graphs cora,photo,pubmed] [--device cuda]

Runs are kept in a store, so that the script goes on where it was stopped, and on another machine answers from what was
run elsewhere.
"""

import argparse
from pathlib import Path
from typing import Any

from bigcn.experiments.comparison import Comparison, run_comparison
from bigcn.experiments.store import RunStore
from common import store as store_rows

SEEDS = tuple(range(5, 55, 5))
#: Accuracy and ROC-AUC in percent, as published.
NODES = {"cora": 83.6, "citeseer": 71.0, "pubmed": 80.0, "computers": 87.0, "photo": 92.6}
LINKS = {"cora": 91.5, "citeseer": 90.5, "pubmed": 91.6, "dblp": 93.1}
NOISE = {("cora", 0.5): 74.9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="cora,photo,pubmed", help="node classification, clean")
    parser.add_argument("--links", default="cora", help="link prediction, fresh negatives")
    parser.add_argument("--noise", default="cora", help="noise level 0.5, all models at weight decay 7e-3")
    parser.add_argument("--store", type=Path, default=Path("runs/published.sqlite"))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    def listed(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    models = ("bigcn:published", "gcn")
    plan: list[tuple[Comparison, float | None]] = []
    for graph in listed(options.graphs):
        clean = Comparison(dataset=graph, models=models, protocol="authors", seeds=SEEDS, device=options.device)
        plan.append((clean, NODES[graph]))
    for graph in listed(options.noise):
        noisy = Comparison(
            dataset=graph,
            models=(*models, "appnp", "bigcn:none"),
            case="noise-level",
            values=(0.5,),
            protocol="authors",
            seeds=SEEDS,
            device=options.device,
            training={"weight_decay": 7e-3},
        )
        plan.append((noisy, NOISE.get((graph, 0.5))))
    for graph in listed(options.links):
        links = Comparison(dataset=graph, models=models, task="link", seeds=SEEDS, device=options.device)
        plan.append((links, LINKS[graph]))

    options.store.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    hosts: set[tuple[tuple[str, str], ...]] = set()
    with RunStore(options.store) as runs:
        for comparison, published in plan:
            result = run_comparison(comparison, runs)
            hosts |= {tuple(sorted(outcome.host.items())) for _, outcome in result.pairs}
            for row in result.rows():
                of_paper = published if row["model"] == "bigcn:published" else None
                rows.append({key: row[key] for key in row if key not in ("best", "tie")} | {"published": of_paper})
                beside = f"published {of_paper:.1f}" if of_paper is not None else ""
                case = comparison.case if row["value"] is None else f"{comparison.case} {row['value']:g}"
                score = f"{100 * row['mean']:5.1f} ± {100 * row['std']:.1f}"
                print(f"{row['dataset']:9s} {row['task']:4s} {case:16s} {row['model']:16s} {score}   {beside}")
    flags = f"--graphs {options.graphs} --links {options.links} --noise {options.noise} --device {options.device}"
    command = f"python benchmarks/published.py {flags}"
    path = store_rows("published", command, rows, hosts=[dict(host) for host in sorted(hosts)])
    print(f"stored in results/{path.name}")


if __name__ == "__main__":
    main()
