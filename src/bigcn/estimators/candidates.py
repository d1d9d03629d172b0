"""What is tried on a graph of one's own: the defaults, and the small search around them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bigcn.feature_graphs.spectral import ALL_DIRECTIONS
from bigcn.nn.bigcn_forms import SHIPPED

_COMMON: dict[str, Any] = {
    "hidden_channels": 64,
    "num_layers": 2,
    "p": 1.0,
    "iterations": 2,
    "node_filter": "exact",
    "feature_strength": 1.0,
    "hidden_feature_graph": "none",
    "tolerance": 1e-3,
    "cached": True,
    "check_low_pass": False,
}
#: The BiGCN that is trained when nothing is searched for, by task, as arguments of :class:`bigcn.BiGCN`.
DEFAULT_MODEL: dict[str, dict[str, Any]] = {
    "node": {**_COMMON, **SHIPPED["node"], "feature_filter": "taylor", "dropout": 0.5},
    "link": {**_COMMON, **SHIPPED["link"], "feature_filter": "exact", "dropout": 0.0},
}
#: How it is trained, by task, as arguments of :class:`bigcn.training.TrainConfig`.
DEFAULT_TRAINING: dict[str, dict[str, Any]] = {
    "node": {"learning_rate": 0.01, "weight_decay": 5e-4, "max_epochs": 300, "patience": 50, "evaluate_every": 1},
    "link": {"learning_rate": 0.01, "weight_decay": 5e-4, "max_epochs": 200, "patience": 50, "evaluate_every": 5},
}
#: The weight decays that the search tries, for BiGCN and for what it is compared with.
WEIGHT_DECAYS = (5e-4, 7e-3)
#: The strengths along the nodes that the search tries.
NODE_STRENGTHS = (0.5, 2.0, 5.0, 30.0)
#: The name of the use with a local filter: as good as the default on validation data of the paper's graphs, but slow
#: to make on large ones.
_NEAREST = "the nearest nodes alone"
#: Other ways to use the filter that the search tries, by task. With wrong edges a small p, which keeps more of what a
#: node has itself, can be worth much; a filter after prediction often is on clean graphs, and one layer is for links.
OTHER_USES: dict[str, dict[str, dict[str, Any]]] = {
    "node": {
        _NEAREST: {"node_filter": "exact", "node_strength": 9.0, "p": 30.0, "iterations": 1, "top": 64},
        "keeping more of each node": {"p": 0.1},
        "smoothing after prediction": {
            "feature_graph": "none",
            "feature_graph_kwargs": None,
            "node_filter": "exact",
            "node_strength": 0.0,
            "hidden_node_strength": 10.0,
            "top": None,
        },
    },
    "link": {"one layer": {"num_layers": 1}},
}
#: What is tried next, given the name of the best so far, its form and how it was trained.
Stage = Callable[[str, dict[str, Any], dict[str, Any]], "list[Candidate]"]
#: With more nodes and edges than this the search is short, and with more than that there is none.
SHORT_SEARCH, NO_SEARCH = 200_000, 2_000_000
#: With more than this, making a local filter takes longer than the rest of the search: it grows with their product.
LOCAL_SEARCH = 60_000
#: A table with fewer features than this has no feature graph worth trying.
FEW_FEATURES = 6
#: With more features than this, products with a correlation graph take longer than the rest of the search.
MANY_FEATURES = 512


@dataclass(frozen=True)
class Candidate:
    """A form of BiGCN to try.

    Args:
        name (str): What tells it from the others, for people.
        model (dict): Arguments of :class:`bigcn.BiGCN`, all but its input and output size.
        training (dict): Arguments of :class:`bigcn.training.TrainConfig`.
    """

    name: str
    model: dict[str, Any]
    training: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """How a candidate did; nothing of the test nodes is in it.

    Args:
        name, model, training: See :class:`Candidate`.
        score (float): The best validation score.
        loss (float): The validation loss at that epoch, which decides between equal scores.
        best_epoch, epochs (int): The epoch of that score, and the epochs trained.
        seconds (float): How long it took.
    """

    name: str
    model: dict[str, Any]
    training: dict[str, Any]
    score: float
    loss: float
    best_epoch: int
    epochs: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return asdict(self)


def best_of(trials: Sequence[Trial]) -> int:
    """Returns the number of the best trial: the highest score, then the lowest loss, then the first."""
    return max(range(len(trials)), key=lambda place: (trials[place].score, -trials[place].loss, -place))


@dataclass(frozen=True)
class Plan:
    """Which candidates are tried, and in which order.

    First the strength and form along the nodes; then, beside the best of these, another weight decay; then other ways
    to use the filter; then feature graphs beside the best of all. What comes next depends on the trials so far and on
    nothing else, so a search can be put down and taken up.

    Args:
        model (dict): The form that everything starts from.
        training (dict): How it is trained.
        size (int): The nodes and edges of the graph.
        num_features (int): The number of features.
        search (bool, optional): If set to :obj:`False`, the form given is the only candidate. (default: :obj:`True`)
        task (str, optional): :obj:`"node"` or :obj:`"link"`. (default: :obj:`"node"`)
        undirected (bool, optional): Whether the graph is, as a local filter needs it. (default: :obj:`True`)
    """

    model: dict[str, Any]
    training: dict[str, Any]
    size: int
    num_features: int
    search: bool = True
    task: str = "node"
    undirected: bool = True

    @property
    def searches(self) -> bool:
        """Whether more than one candidate is tried."""
        return self.search and self.size <= NO_SEARCH

    @property
    def total(self) -> int:
        """How many candidates there are."""
        return sum(len(stage("", self.model, self.training)) for stage in self._stages())

    def next(self, trials: Sequence[Trial]) -> Candidate | None:
        """Returns the candidate that follows some trials, or :obj:`None` if these were all."""
        name, model, training, done = "", self.model, self.training, 0
        for stage in self._stages():
            candidates = stage(name, model, training)
            if len(trials) < done + len(candidates):
                return candidates[len(trials) - done]
            done += len(candidates)
            best = trials[best_of(trials[:done])]
            name, model, training = best.name, best.model, best.training
        return None

    def _stages(self) -> list[Stage]:
        if not self.searches:
            return [lambda best, model, training: [Candidate("the defaults", model, training)]]
        return [self._nodes, self._decays, self._uses, self._features]

    def _nodes(self, best: str, model: dict[str, Any], training: dict[str, Any]) -> list[Candidate]:
        # The wider a filter reaches the longer it takes, so that large graphs do without the widest.
        some = NODE_STRENGTHS[:3] if self.size > SHORT_SEARCH else NODE_STRENGTHS
        strengths = sorted({*some, model["node_strength"]})
        forms: dict[str, dict[str, Any]] = {
            f"exact, node strength {strength:g}": {"node_filter": "exact", "node_strength": strength}
            for strength in strengths
        }
        local = {"top": None} if model.get("top") else {}  # which the Taylor form cannot be
        forms["Taylor, node strength 0.5"] = {"node_filter": "taylor", "node_strength": 0.5, **local}
        return [Candidate(name, {**model, **changes}, training) for name, changes in forms.items()]

    def _decays(self, best: str, model: dict[str, Any], training: dict[str, Any]) -> list[Candidate]:
        if self.size > SHORT_SEARCH:
            return []
        return [
            Candidate(f"{best}, weight decay {decay:g}", model, {**training, "weight_decay": decay})
            for decay in WEIGHT_DECAYS
            if decay != self.training["weight_decay"]
        ]

    def _uses(self, best: str, model: dict[str, Any], training: dict[str, Any]) -> list[Candidate]:
        if self.size > SHORT_SEARCH or self.model["num_layers"] < 2:
            return []
        return [
            # One that sets a strength of its own does not go by the name of another.
            Candidate(name if "node_strength" in changes else f"{best}, {name}", {**model, **changes}, training)
            for name, changes in OTHER_USES[self.task].items()
            if name != _NEAREST or (self.undirected and self.size <= LOCAL_SEARCH)
        ]

    def _features(self, best: str, model: dict[str, Any], training: dict[str, Any]) -> list[Candidate]:
        if self.num_features < FEW_FEATURES:
            return []
        narrow = self.num_features < ALL_DIRECTIONS
        all_kept = model["feature_graph"] == "spectral" and narrow and not model.get("feature_graph_kwargs")
        graphs: dict[str, dict[str, Any]] = {}
        if model["feature_graph"] == "none" or all_kept:
            # A projector on the leading directions: Taylor form with strength one.
            rank = max(2, min(64, self.num_features // (2 if narrow else 4)))
            graphs["spectral"] = {"feature_graph_kwargs": {"rank": rank}, "feature_filter": "taylor"}
        else:
            graphs["none"] = {}
        if self.size <= SHORT_SEARCH:
            others = ("uniform",) if self.num_features > MANY_FEATURES else ("correlation", "uniform")
            graphs |= {name: {} for name in others if name != model["feature_graph"]}
        plain = {"feature_strength": 1.0, "feature_filter": "exact", "feature_graph_kwargs": None}
        return [
            Candidate(
                f"{best}, {'no' if name == 'none' else name} feature graph",
                {**model, **plain, **changes, "feature_graph": name},
                training,
            )
            for name, changes in graphs.items()
        ]
