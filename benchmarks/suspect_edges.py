"""How well wrong edges are found after StructureMistakes, against cosine similarity and common neighbours.

Run:  BIGCN_DATA=... python benchmarks/suspect_edges.py [--graph cora] [--ratio 0.001] [--seeds 5] [--models]

No labels are used, but by the node model that --models adds. The mistakes only judge the result. Missing links are
judged on a tenth of the right edges, hidden from the graph with its mistakes.
"""

import argparse
import time
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from bigcn.cli.links import embedding_of
from bigcn.datasets import load_dataset
from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor
from bigcn.estimators.pyg_graph import as_own_graph
from bigcn.links import LinkScorer, missing_links
from bigcn.noise import StructureMistakes
from common import store

#: The baseline takes whichever of these serves it best, by the truth, in each graph.
WEIGHTS = (0.03, 0.1, 0.3, 1.0)


def simple_scores(x: np.ndarray, edges: np.ndarray, adjacency: sp.csr_array | None = None) -> dict[str, np.ndarray]:
    """Scores pairs, by default the edges themselves, by the cosine of their features and by common neighbours."""
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    cosine = (unit[edges[0]] * unit[edges[1]]).sum(axis=1)
    if adjacency is None:
        both = np.hstack([edges, edges[::-1]])
        adjacency = sp.csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(len(x), len(x)))
    common = np.asarray((adjacency @ adjacency)[edges[0], edges[1]]).reshape(-1)
    return {"cosine": cosine, "common neighbours": common} | {
        f"cosine + {weight:g} common neighbours": cosine + weight * common for weight in WEIGHTS
    }


def numbers(pairs: Any, num_nodes: int) -> np.ndarray:
    pairs = np.asarray(pairs)
    return pairs.min(axis=0) * num_nodes + pairs.max(axis=0)


def find_missing(noisy: Data, wrong: np.ndarray, seed: int) -> dict[str, tuple[float, float]]:
    """Hides a tenth of the right edges; returns how well they are told from random pairs, and their share of 100."""
    n = noisy.num_nodes
    edges = np.unique(numbers(noisy.edge_index, n))
    generator = np.random.default_rng(seed)
    hidden = generator.choice(np.setdiff1d(edges, wrong), len(edges) // 10, replace=False)
    left = np.setdiff1d(edges, hidden)
    kept = np.stack([left // n, left % n])
    both = torch.from_numpy(np.hstack([kept, kept[::-1]]))
    random = generator.integers(n, size=(2, 2 * len(hidden)))
    random = random[:, (random[0] != random[1]) & ~np.isin(numbers(random, n), edges)][:, : len(hidden)]
    judged = np.hstack([np.stack([hidden // n, hidden % n]), random])
    linked = np.arange(judged.shape[1]) < len(hidden)

    scorer = LinkScorer(noisy.x, both, seed=seed)
    first = missing_links(noisy.x, both, k=100, scorer=scorer).pairs
    # The baseline may look at every pair with a common neighbour.
    adjacency = sp.csr_array((np.ones(both.size(1)), tuple(both.numpy())), shape=(n, n))
    friends = sp.coo_array(sp.triu(adjacency @ adjacency, k=1))
    pairs = np.stack(friends.coords)[:, ~np.isin(numbers(np.stack(friends.coords), n), left)]
    simple = simple_scores(noisy.x.to_dense().numpy(), pairs, adjacency)["cosine + 0.3 common neighbours"]
    best = pairs[:, np.argsort(-simple, kind="stable")[:100]]
    score = simple_scores(noisy.x.to_dense().numpy(), judged, adjacency)["cosine + 0.3 common neighbours"]
    return {
        "missing links: bigcn links": (
            float(roc_auc_score(linked, scorer.score(judged))),
            float(np.isin(numbers(first, n), hidden).mean()),
        ),
        "missing links: cosine + 0.3 common neighbours": (
            float(roc_auc_score(linked, score)),
            float(np.isin(numbers(best, n), hidden).mean()),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--ratio", type=float, default=0.001)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--models", action="store_true", help="also with a model for nodes and one for links")
    options = parser.parse_args()
    clean = load_dataset(options.graph)
    n = clean.num_nodes
    found: dict[str, list[float]] = defaultdict(list)
    first: dict[str, list[float]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    for seed in range(options.seeds):
        mistakes = StructureMistakes(options.ratio, seed=seed)
        noisy = mistakes(clean)
        wrong = numbers(mistakes.changes(clean).added, n)
        contenders: dict[str, Any] = {"bigcn links": None}
        if options.models:
            labelled = Data(x=noisy.x, edge_index=noisy.edge_index, y=torch.where(noisy.train_mask, noisy.y, -1))
            node = BiGCNClassifier(search=False, seed=seed).fit(labelled)
            link = BiGCNLinkPredictor(search=False, seed=seed).fit(Data(x=noisy.x, edge_index=noisy.edge_index))
            own = as_own_graph(Data(x=noisy.x, edge_index=noisy.edge_index))
            contenders["bigcn links, node model"] = embedding_of(node, own)
            contenders["bigcn links, link model"] = embedding_of(link, own)
        for name, embed in contenders.items():
            start = time.perf_counter()
            scorer = LinkScorer(noisy.x, noisy.edge_index, embed=embed, seed=seed)
            seconds[name].append(time.perf_counter() - start)
            false = np.isin(numbers(scorer.edges, n), wrong)
            found[name].append(float(roc_auc_score(false, -scorer.scores)))
            first[name].append(float(false[np.argsort(scorer.scores)[:100]].mean()))
        simple = simple_scores(noisy.x.to_dense().numpy(), scorer.edges)
        for name, score in simple.items():
            found[name].append(float(roc_auc_score(false, -score)))
            first[name].append(float(false[np.argsort(score, kind="stable")[:100]].mean()))
        for name, (area, share) in find_missing(noisy, wrong, seed).items():
            found[name].append(area)
            first[name].append(share)
    rows = []
    for name, values in found.items():
        row = {"graph": options.graph, "ratio": options.ratio, "method": name, "seeds": options.seeds}
        row |= {"roc_auc": float(np.mean(values)), "std": float(np.std(values)), "worst": min(values)}
        row |= {"first_100": float(np.mean(first[name]))}
        row |= {"seconds": float(np.mean(seconds[name]))} if name in seconds else {}
        rows.append(row)
        print(f"{name:46s} ROC-AUC {row['roc_auc']:.4f} ± {row['std']:.4f}, of the first 100: {row['first_100']:.2f}")
    words = ["python benchmarks/suspect_edges.py", f"--graph {options.graph}", f"--ratio {options.ratio:g}"]
    words += [f"--seeds {options.seeds}", *(["--models"] if options.models else [])]
    print(f"stored in results/{store('suspect-edges', ' '.join(words), rows).name}")


if __name__ == "__main__":
    main()
