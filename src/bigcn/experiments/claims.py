"""What the text of the paper claims, each with how it is checked on the measured numbers.

The paper's BiGCN is the published form. Its rivals are the five baselines of the paper: at the paper's settings in the
two tables, tuned elsewhere. Nothing here is measured; a claim whose runs are missing is neither confirmed nor refuted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bigcn.experiments import claim_checks as checks
from bigcn.experiments import setting_checks as settings
from bigcn.experiments.claim_checks import Verdict
from bigcn.experiments.findings import Findings
from bigcn.experiments.paper import NODE_GRAPHS

#: The graphs whose nodes are products.
CO_PURCHASE = ("computers", "photo")
#: Graphs on whose test nodes some have no link.
WITH_ISOLATED = ("citeseer", "computers", "photo")


@dataclass(frozen=True)
class Claim:
    """A claim.

    Args:
        topic (str): What it is about.
        text (str): What is claimed.
        check (Callable): Says whether the measured numbers bear it out.
        ours (bool, optional): Whether the paper motivates it without an experiment. (default: :obj:`False`)
    """

    topic: str
    text: str
    check: Callable[[Findings], Verdict]
    ours: bool = False


def _leads(topic: str, experiment: str, claimed: dict[str, float], where: str, words: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            topic,
            f"{checks.title(graph)}: {words.format(points)} points above the best baseline",
            partial(checks.leads_by, experiment=experiment, graph=graph, points=points, where=where),
        )
        for graph, points in claimed.items()
    )


def _best(topic: str, experiment: str, graphs: tuple[str, ...]) -> tuple[Claim, ...]:
    return tuple(
        Claim(topic, f"{checks.title(graph)}: the best", partial(checks.is_best, experiment=experiment, graph=graph))
        for graph in graphs
    )


def _not_best(topic: str, experiment: str, graph: str) -> Claim:
    check = partial(checks.is_not_best, experiment=experiment, graph=graph)
    return Claim(topic, f"{checks.title(graph)}: not the best", check)


_CLEAN, _LINKS = "clean data, node classification", "clean data, link prediction"
_LEVEL, _LEVEL_LINKS = "noise level, node classification", "noise level, link prediction"
_RATE, _RATE_LINKS = "noise rate, node classification", "noise rate, link prediction"
_MISTAKES = "structure mistakes, node classification"
_FEATURES, _FEATURES_LINKS = "feature rate, node classification", "feature rate, link prediction"
_LEARNED, _SENSITIVITY, _DEPTH = "fixed or learned feature graph, Cora", "sensitivity, Cora", "depth, Cora"
_COLUMNS, _FEW_LINKS = "noise on whole columns, node classification", "nodes with few links"

CLAIMS: tuple[Claim, ...] = (
    *_leads(_CLEAN, "node-table", {"cora": 0.5, "pubmed": 1.1, "computers": 2.5, "photo": 1.8}, "all", "{}"),
    *_best(_LINKS, "link-table", ("cora", "citeseer", "dblp")),
    _not_best(_LINKS, "link-table", "pubmed"),
    *_best(_LEVEL, "noise-level", ("citeseer", "pubmed", "computers", "photo")),
    _not_best(_LEVEL, "noise-level", "cora"),
    *(
        Claim(_LEVEL, f"{checks.title(graph)}: all curves are flat", partial(checks.is_flat, graph=graph))
        for graph in CO_PURCHASE
    ),
    *(
        Claim(_LEVEL, f"{checks.title(graph)}: GIN is the worst", partial(checks.gin_is_worst, graph=graph))
        for graph in CO_PURCHASE
    ),
    *_leads(_LEVEL_LINKS, "noise-level-link", {"citeseer": 4.3, "pubmed": 3.9, "dblp": 2.8}, "extreme", "{}"),
    *(
        Claim(
            _RATE,
            f"{checks.title(graph)}: above most baselines at every rate",
            partial(checks.above_most, experiment="noise-rate", graph=graph),
        )
        for graph in NODE_GRAPHS
    ),
    *_leads(_RATE, "noise-rate", {"pubmed": 4.8}, "extreme", "at the extreme {} (caption)"),
    *_leads(_RATE, "noise-rate", {"pubmed": 10.0}, "extreme", "more than {:g} (text)"),
    *_leads(
        _RATE_LINKS,
        "noise-rate-link",
        {"cora": 0.3, "citeseer": 4.8, "pubmed": 2.5, "dblp": 1.2},
        "least",
        "at least {}",
    ),
    *_leads(
        _MISTAKES,
        "structure-mistakes",
        {"cora": 3.6, "citeseer": 4.1, "pubmed": 1.2, "computers": 6.7, "photo": 10.1},
        "least",
        "at least {}",
    ),
    *(
        Claim(_MISTAKES, f"{checks.title(graph)}: a slower decline", partial(checks.declines_less, graph=graph))
        for graph in NODE_GRAPHS
    ),
    Claim(_FEATURES, "better in most settings, except on CiteSeer", checks.best_in_most),
    *_leads(_FEATURES_LINKS, "feature-rate-link", {"cora": 1.3, "citeseer": 2.4}, "extreme", "{}"),
    Claim(_LEARNED, "a learned feature graph does better than the fixed one", checks.learned_is_better),
    Claim(_SENSITIVITY, "two rounds are enough", settings.two_rounds_suffice),
    Claim(_SENSITIVITY, "the strength of the feature direction matters little", settings.lambda2_matters_little),
    Claim(_SENSITIVITY, "p ≥ 3 is stable for λ ≤ 1.2", settings.stable_for_small_lambda),
    Claim(_SENSITIVITY, "for λ ≥ 1.5 accuracy falls quickly as p grows past 3", settings.falls_for_large_lambda),
    Claim(_SENSITIVITY, "p ≤ 2 is erratic", settings.small_p_is_erratic),
    Claim(_SENSITIVITY, "λ matters more under heavy noise", settings.lambda_matters_more_under_noise),
    Claim(_DEPTH, "stacking does not over-smooth more than a GCN", settings.does_not_oversmooth, ours=True),
    Claim(_DEPTH, "BiGCN below GCN layers helps when deep", partial(settings.helps_when_deep, name="bigcn+gcn"), True),
    Claim(_DEPTH, "jumping knowledge helps when deep", partial(settings.helps_when_deep, name="bigcn+jk"), True),
    *(
        Claim(
            _COLUMNS,
            f"{checks.title(graph)}: above the best baseline on average",
            partial(checks.leads_on_average, experiment="column-noise", graph=graph),
            True,
        )
        for graph in NODE_GRAPHS
    ),
    *(
        Claim(
            _FEW_LINKS,
            f"{checks.title(graph)}: the feature direction helps nodes {which}",
            partial(checks.feature_direction_helps, graph=graph, metric=metric),
            True,
        )
        for which, metric, graphs in (
            ("without a link", "accuracy_isolated", WITH_ISOLATED),
            ("with few links", "accuracy_low_degree", NODE_GRAPHS),
        )
        for graph in graphs
    ),
)
