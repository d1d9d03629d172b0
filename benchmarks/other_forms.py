"""Forms of BiGCN that are no option of the library, on validation data: would one of them do better on clean graphs?

Run:  BIGCN_DATA=... python benchmarks/other_forms.py

Strengths learned by gradient, one of each layer or a mixture of several, dropout on the input before the filter,
features that are centred or standardised beforehand, other low-pass filters and other normalisations of the node graph;
each beside the exact filter as it is, without a feature graph and with the leading eigenvectors of the features. Three
seeds, the split of the paper, test data never looked at.
"""

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.polynomial.chebyshev import chebinterpolate
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.utils import add_self_loops, degree

from bigcn.datasets import load_dataset, make_split
from bigcn.experiments.paper import CHOICE_SEEDS
from bigcn.feature_graphs import SpectralGraph
from bigcn.filters import resolvent_coefficients
from bigcn.node_graphs import normalized_graph
from bigcn.sparse import SparseMatrix, chebyshev_filter
from bigcn.tasks import NodeClassification
from bigcn.training import TrainConfig, seeded, train
from common import RESULTS, added, store

#: What a mixture mixes; the last is also the largest strength that can be learned.
STRENGTHS = (0.0, 2.0, 5.0, 10.0, 40.0)
HIDDEN, TOLERANCE = 64, 1e-3
NAME = "other-forms"


@dataclass(frozen=True)
class Form:
    """What distinguishes a form.

    Args:
        name (str): What it is called.
        strength (float, optional): The strength of both layers, or what learning starts from. (default: :obj:`5.0`)
        learned (str, optional): :obj:`"strength"`, :obj:`"mixture"` or nothing. (default: nothing)
        rank (int, optional): The number of leading eigenvectors, or zero for no feature graph. (default: :obj:`0`)
        drops_input (bool, optional): Whether dropout also comes before the first layer. (default: :obj:`False`)
        scaling (str, optional): :obj:`"centred"`, :obj:`"standardised"` or nothing. (default: nothing)
        shape (str, optional): :obj:`"resolvent"`, its :obj:`"square"`, the :obj:`"heat"` kernel, the strength its time,
            or two :obj:`"hops"`. (default: :obj:`"resolvent"`)
        normalisation (str, optional): :obj:`"symmetric"`, with :obj:`"loops"`, or :obj:`"walk"`, a random walk's.
            (default: :obj:`"symmetric"`)
    """

    name: str
    strength: float = 5.0
    learned: str = ""
    rank: int = 0
    drops_input: bool = False
    scaling: str = ""
    shape: str = "resolvent"
    normalisation: str = "symmetric"


FORMS = (
    Form("as it is"),
    Form("as it is, strength 10", 10.0),
    Form("dropout on the input", drops_input=True),
    Form("dropout on the input, strength 10", 10.0, drops_input=True),
    Form("learned strengths", learned="strength"),
    Form("learned mixture of strengths", learned="mixture"),
    Form("learned mixture of strengths, dropout on the input", learned="mixture", drops_input=True),
    Form("centred features", scaling="centred"),
    Form("standardised features", scaling="standardised"),
    Form("leading eigenvectors", rank=64),
    Form("leading eigenvectors, dropout on the input", rank=64, drops_input=True),
    Form("squared filter, strength 2", 2.0, shape="square"),
    Form("heat kernel, time 2", 2.0, shape="heat"),
    Form("heat kernel, time 4", 4.0, shape="heat"),
    Form("two hops", shape="hops"),
    Form("self-loops", normalisation="loops"),
    Form("random walk", normalisation="walk"),
)
#: What each shape lets through of a frequency, for a strength.
SHAPES: dict[str, Callable[[Any, float], Any]] = {
    "square": lambda mu, s: (1 + s * mu) ** -2.0,
    "heat": lambda mu, s: np.exp(-s * mu),
    "hops": lambda mu, s: (1 - mu) ** 2,
}
#: The degree of a polynomial that is far more exact than the tolerance for all of them.
SHAPE_DEGREE = 24


class Learned(torch.nn.Module):
    """The Chebyshev coefficients of an exact filter whose strength is learned, or of a mixture of such filters."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form
        self.degree = len(resolvent_coefficients(STRENGTHS[-1], tolerance=TOLERANCE)) - 1
        # Weight decay draws it to where it starts.
        self.offset = Parameter(torch.zeros(len(STRENGTHS) if form.learned == "mixture" else 1))

    def forward(self) -> Tensor:
        if self.form.learned == "mixture":
            return (self.offset.softmax(0).unsqueeze(1) * torch.stack([self._of(s) for s in STRENGTHS])).sum(0)
        return self._of((self.form.strength * self.offset.exp()).clamp(max=STRENGTHS[-1])[0])

    def _of(self, strength: Tensor | float) -> Tensor:
        s = torch.as_tensor(strength)
        if not s.requires_grad and float(s) == 0:
            return F.one_hot(torch.tensor(0), self.degree + 1).float()
        root = (1 + 2 * s).sqrt()
        powers = ((1 + s - root) / s) ** torch.arange(self.degree + 1)
        halves = F.pad(torch.ones(self.degree), (1, 0), value=0.5)
        return 2 * halves * powers / root


def coefficients(form: Form) -> Tensor:
    """Returns the Chebyshev coefficients of a filter whose strength stays as it is."""
    if form.shape == "resolvent":
        return resolvent_coefficients(form.strength, tolerance=TOLERANCE)[:, 1].float()
    response = SHAPES[form.shape]
    found = chebinterpolate(lambda nu: response(1 - nu, form.strength), SHAPE_DEGREE)
    return torch.from_numpy(found).float()


class Network(torch.nn.Module):
    """Two layers, each an exact filter along the nodes and a product with weights."""

    def __init__(
        self, form: Form, graph: SparseMatrix, root: Tensor, vectors: Tensor | None, features: int, classes: int
    ) -> None:
        super().__init__()
        self.form, self.graph, self.vectors = form, graph, vectors
        # A random walk's filter is the symmetric one between roots of the degrees.
        self.root = root if form.normalisation == "walk" else None
        sizes = ((features, HIDDEN), (HIDDEN, classes))
        self.weights = torch.nn.ParameterList(torch.nn.init.xavier_uniform_(torch.empty(size)) for size in sizes)
        self.biases = torch.nn.ParameterList(torch.zeros(size[1]) for size in sizes)
        self.learned = torch.nn.ModuleList([Learned(form), Learned(form)] if form.learned else [])
        self.fixed = coefficients(form)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if number or self.form.drops_input:
                x = F.dropout(x, 0.5, self.training)
            if not number and self.vectors is not None:
                weight = self.vectors @ (self.vectors.t() @ weight)
            x = x @ weight if self.root is None else self.root * (x @ weight)
            x = chebyshev_filter(self.graph, self._coefficients(number), [x])
            x = (x if self.root is None else x / self.root) + bias
            x = x if number else x.relu()
        return x

    def _coefficients(self, number: int) -> Tensor:
        found: Tensor = self.learned[number]() if self.learned else self.fixed
        return found.unsqueeze(1)

    def strengths(self) -> list[list[float]]:
        """Returns what was learned about the filters, by layer."""
        words = {"mixture": lambda o: o.softmax(0), "strength": lambda o: self.form.strength * o.exp()}
        return [[round(float(v), 2) for v in words[self.form.learned](part.offset)] for part in self.learned]


def measure(name: str, form: Form, weight_decay: float) -> dict[str, Any]:
    """Trains a form with every seed and returns its mean validation accuracy."""
    data = load_dataset(name)
    x = data.x.float()
    if form.scaling:
        x = x - x.mean(0)
        x = x / x.std(0).clamp(min=1e-6) if form.scaling == "standardised" else x
    data.x = x
    if form.normalisation == "loops":
        data.edge_index = add_self_loops(data.edge_index, num_nodes=data.num_nodes)[0]
    graph = normalized_graph(data.edge_index, None, data.num_nodes)
    root = degree(data.edge_index[0], data.num_nodes).clamp(min=1).sqrt().unsqueeze(1)
    vectors = SpectralGraph.from_data(x, data.edge_index, rank=form.rank).vectors if form.rank else None
    task = NodeClassification(data, make_split(data, name, "authors"))
    scores, learned = [], []
    for seed in CHOICE_SEEDS:
        with seeded(seed):
            model = Network(form, graph, root, vectors, task.num_features, task.num_outputs)
        config = TrainConfig(weight_decay=weight_decay, max_epochs=1_000)
        scores.append(train(model, task, config, seed).score)
        learned.append(model.strengths())
    mean = sum(scores) / len(scores)
    print(f"{name}, weight decay {weight_decay:g}, {form.name}: {100 * mean:.1f} {learned[0] or ''}", flush=True)
    of_form = {"graph": name, **asdict(form), "weight_decay": weight_decay}
    return {**of_form, "validation": mean, "seeds": len(scores), "learned": learned}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="cora")
    parser.add_argument("--weight-decays", default="0.002,0.007")
    parser.add_argument(
        "--only", metavar="PATTERN", help="forms whose name this is found in, added to the results that are there"
    )
    options = parser.parse_args()
    found = [
        measure(name, form, float(decay))
        for name in options.graphs.split(",")
        for decay in options.weight_decays.split(",")
        for form in FORMS
        if re.search(options.only or "", form.name)
    ]
    known = json.loads((RESULTS / f"{NAME}.json").read_text())["rows"] if options.only else []
    rows = added(known, found, ("graph", "name", "weight_decay"))
    command = f"python benchmarks/other_forms.py --graphs {options.graphs} --weight-decays {options.weight_decays}"
    print(f"stored in results/{store(NAME, command, rows).name}")


if __name__ == "__main__":
    main()
