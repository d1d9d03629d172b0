"""Who takes part in the paper's experiments and in ours, and what validation may choose for each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from bigcn.nn.registry import get_model

WEIGHT_DECAYS = (5e-4, 7e-3)
#: Where the settings are ours. The released code allows 10,000, which a model whose validation accuracy stays the same,
#: and so ties with itself, takes in full.
MAX_EPOCHS = 2_000


@dataclass(frozen=True)
class Candidate:
    """One way to set up a model.

    Args:
        model (str): Its name in the registry.
        settings (Mapping, optional): Changes to its arguments. (default: none)
        training (Mapping, optional): Changes to how it is trained. (default: none)
    """

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> str:
        """Returns the candidate in a few words."""
        changes = {**self.settings, **self.training}
        words = (f"{key}={value if isinstance(value, str) else f'{value:g}'}" for key, value in changes.items())
        return " ".join([self.model, *words])


@dataclass(frozen=True)
class Contender:
    """A model as it appears in a table.

    Args:
        name (str): Its name in the table.
        title (str): Its name for people.
        tuning (str): :obj:`"paper"` for the published settings and the defaults of baselines, :obj:`"tuned"` for the
            candidate that does best on validation, :obj:`"fixed"` for an ablation.
        candidates (tuple[Candidate, ...]): What validation chooses from; one if there is no choice.
    """

    name: str
    title: str
    tuning: Literal["paper", "tuned", "fixed"]
    candidates: tuple[Candidate, ...]


def fixed(model: str, name: str | None = None, title: str | None = None, **training: Any) -> Contender:
    """Returns an ablation: a model as its name says."""
    found = title or get_model(model).title
    return Contender(name or model, found, "fixed", (Candidate(model, {}, training),))


def _paper(model: str) -> Contender:
    return Contender(model, get_model(model).title, "paper", (Candidate(model),))


def _grid(model: str, settings: list[dict[str, Any]]) -> Contender:
    candidates = (Candidate(model, s, _training(w)) for s, w in product(settings, WEIGHT_DECAYS))
    return Contender(model, get_model(model).title, "tuned", tuple(candidates))


def _training(weight_decay: float) -> dict[str, Any]:
    return {"weight_decay": weight_decay, "max_epochs": MAX_EPOCHS}


_WIDTHS = [{"hidden_channels": width, "dropout": dropout} for width, dropout in ((16, 0.5), (64, 0.5), (64, 0.8))]
#: The paper's baselines, and ours.
PAPER_BASELINES = ("gcn", "sage", "gat", "gin", "gdc")
OUR_BASELINES = ("appnp", "sgc", "mlp")
#: The forms of BiGCN that validation chooses from: an exact node filter, and what stands in the feature direction.
OUR_FORMS = (
    "bigcn:exact+none+node=10",
    "bigcn:exact+uniform+code+node=10+feature=1",
    "bigcn:exact+spectral+node=10",
)
PUBLISHED = _paper("bigcn:published")
AS_IN_THE_PAPER = (PUBLISHED, *(_paper(name) for name in PAPER_BASELINES))
#: Every model has the same number of candidates.
TUNED = (
    Contender(
        "bigcn",
        "BiGCN",
        "tuned",
        tuple(Candidate(form, {}, _training(w)) for form, w in product(OUR_FORMS, WEIGHT_DECAYS)),
    ),
    *(_grid(name, _WIDTHS) for name in ("gcn", "sage", "gin", "gdc", "mlp")),
    _grid("gat", [{"dropout": dropout} for dropout in (0.4, 0.6, 0.8)]),
    _grid("appnp", [{"hidden_channels": 64, "alpha": alpha} for alpha in (0.05, 0.1, 0.2)]),
    _grid("sgc", [{"num_layers": hops} for hops in (2, 4, 8)]),
)
#: The ablations: the feature graph under the same node filter, the two readings of the paper, and the two filters.
ABLATIONS = (
    *(fixed(f"bigcn:published+{graph}") for graph in ("none", "uniform", "identity", "correlation")),
    fixed("bigcn:published+text"),
    fixed("bigcn:published+text+node=1.2+feature=0.2"),
    *(fixed(f"bigcn:exact+{graph}+node=10") for graph in ("none", "identity", "correlation", "spectral", "learnable")),
    fixed("bigcn:exact+uniform+node=10"),
    fixed("bigcn:exact+uniform+code+node=10+feature=1"),
    fixed("bigcn:exact+spectral+soft+node=10"),
)
