r"""The forms of BiGCN by name: the words that may follow :obj:`bigcn:`, and what each of them sets."""

from collections.abc import Mapping
from typing import Any

from bigcn.feature_graphs import FEATURE_GRAPHS
from bigcn.nn.bigcn import BiGCN
from bigcn.nn.model_spec import ModelContext, ModelSpec, TrainingDefaults, suggest
from bigcn.nn.published import published_settings

#: The released code decays weights by 7e-3 where the text says 5e-4. Measured, the first suits Cora and CiteSeer and
#: the second the other graphs.
PUBLISHED_WEIGHT_DECAY = {"cora": 7e-3, "citeseer": 7e-3}
#: The shipped form by task, as arguments of :class:`bigcn.BiGCN`, whose defaults are those for nodes: of the candidates
#: of the reproduction, the best on validation data over all graphs, clean and noisy (see "The shipped default" in
#: ``docs/results.md``).
SHIPPED: dict[str, dict[str, Any]] = {
    "node": {"feature_graph": "spectral", "node_strength": 5.0},
    "link": {"feature_graph": "none", "node_strength": 3.0},
}
#: The words of BiGCN besides the names of feature graphs, and the slot that each fills.
BIGCN_WORDS: dict[str, tuple[str, str]] = {
    "published": ("base", "published"),
    "taylor": ("form", "taylor"),
    "exact": ("form", "exact"),
    "laplacian": ("operator", "laplacian"),
    "text": ("operator", "laplacian"),
    "adjacency": ("operator", "adjacency"),
    "code": ("operator", "adjacency"),
    "soft": ("weighting", "soft"),
}
#: The numbers of BiGCN, written :obj:`p=3`, the argument that each sets and its type.
BIGCN_NUMBERS: dict[str, tuple[str, type]] = {
    "p": ("p", float),
    "node": ("node_strength", float),
    "hidden": ("hidden_node_strength", float),
    "feature": ("feature_strength", float),
    "k": ("iterations", int),
    "rank": ("rank", int),
    "top": ("top", int),
}


def parse_words(name: str, words: tuple[str, ...]) -> dict[str, Any]:
    """Returns which slot each word of a BiGCN name fills, refusing unknown words and two words for one slot."""
    known = {graph: ("feature_graph", graph) for graph in FEATURE_GRAPHS} | BIGCN_WORDS
    spellings = [*known, *(f"{key}=" for key in BIGCN_NUMBERS)]
    slots: dict[str, Any] = {}
    for word in words:
        key, equals, number = word.partition("=")
        if equals and key in BIGCN_NUMBERS:
            slot, kind = BIGCN_NUMBERS[key]
            try:
                value = kind(number)
            except ValueError:
                raise ValueError(
                    f"model {name!r}: {key!r} needs {'a whole' if kind is int else 'a'} number (got {number!r})"
                ) from None
        elif word in known:
            slot, value = known[word]
        else:
            raise ValueError(f"model {name!r}: unknown word {word!r}{suggest(word, spellings)}")
        if slot in slots:
            raise ValueError(f"model {name!r}: {word!r} contradicts or repeats an earlier word")
        slots[slot] = value
    for slot in ("rank", "weighting"):
        if slot in slots and slots.setdefault("feature_graph", "spectral") != "spectral":
            raise ValueError(f"model {name!r}: {'rank=' if slot == 'rank' else 'soft'!r} goes with 'spectral' only")
    return slots


def bigcn_settings(slots: Mapping[str, Any], context: ModelContext) -> dict[str, Any]:
    r"""Returns the arguments of :class:`bigcn.BiGCN` that the words of a name stand for.

    - No word: the shipped form for the task, an exact node filter and, for nodes, a spectral graph. It is what other
      words change, each for itself: :obj:`bigcn:none` is its filter along the nodes alone.
    - :obj:`published`: the paper's settings for this graph, noise and task, in the form of the released code; other
      words change it, as in :obj:`bigcn:published+none`.
    - A feature graph: :obj:`learnable`, :obj:`correlation`, :obj:`spectral`, :obj:`uniform`, :obj:`identity`,
      :obj:`none`.
    - :obj:`taylor` or :obj:`exact`: the form of both filters. Strengths that suit exact filters make no low-pass
      filter in Taylor form, so :obj:`taylor` brings the paper's :math:`p` and strengths with it, and no feature graph
      that is not named.
    - :obj:`laplacian` (or :obj:`text`) and :obj:`adjacency` (or :obj:`code`): the operator of the feature direction.
      The second has no exact form, so beside it :obj:`exact` speaks of the node filter alone.
    - :obj:`soft`: Wiener weights for the spectral graph.
    - :obj:`p=`, :obj:`node=`, :obj:`feature=` (strengths), :obj:`hidden=` (node strength of the layers above the
      first), :obj:`k=` (rounds), :obj:`rank=` (of the spectral graph), :obj:`top=` (weights that a local node filter
      keeps of each node).

    A spectral graph without :obj:`feature=` is filtered in Taylor form with strength one, whatever the node filter:
    :math:`\mathbf{B}` is then the projector on the leading eigenvectors. It belongs to the first layer alone.

    Args:
        slots (dict): What :func:`parse_words` returned.
        context (ModelContext): What the model is built for.
    """
    paper = published_settings(context.dataset, context.case, context.task)
    settings: dict[str, Any] = {"cached": True}
    if slots.get("base") == "published":
        settings |= paper
    elif slots.get("form") == "taylor":
        settings |= {key: paper[key] for key in ("p", "node_strength", "feature_strength")}
        slots = {"feature_graph": "none", **slots}
    elif slots.get("operator") == "adjacency":  # with a spectral graph it would take out what a filter is to keep
        slots = {**SHIPPED[context.task], "feature_graph": "none", **slots}
    else:
        slots = {**SHIPPED[context.task], **slots}
    settings |= context.common()
    if "form" in slots:
        settings |= {"node_filter": slots["form"], "feature_filter": slots["form"]}
    if "operator" in slots:
        settings["feature_operator"] = slots["operator"]
    numbers = ("p", "node_strength", "hidden_node_strength", "feature_strength", "iterations", "top")
    for slot in ("feature_graph", *numbers):
        if slot in slots:
            settings[slot] = slots[slot]
    if slots.get("feature_graph") == "spectral" and "feature_strength" not in slots:
        settings |= {"feature_filter": "taylor", "feature_strength": 1.0}
    if settings.get("feature_operator") == "adjacency":
        settings["feature_filter"] = "taylor"
    if not _asks_for_low_pass(slots):
        settings["check_low_pass"] = False
    if slots.get("feature_graph") == "spectral":
        settings["hidden_feature_graph"] = "none"  # it would be decomposed anew in every step
    graph = {slot: slots[slot] for slot in ("rank", "weighting") if slot in slots}
    return settings | ({"feature_graph_kwargs": graph} if graph else {})


def _asks_for_low_pass(slots: Mapping[str, Any]) -> bool:
    """Tells whether a warning about strengths would say anything that the name does not say already."""
    # Published strengths and the adjacency are known not to be; a spectral graph has no frequencies above one.
    by_table = slots.get("form") == "taylor" and "node_strength" not in slots
    projector = slots.get("feature_graph") == "spectral" and "feature_strength" not in slots
    return not (slots.get("base") == "published" or by_table or projector or slots.get("operator") == "adjacency")


def bigcn_training(slots: Mapping[str, Any], context: ModelContext) -> TrainingDefaults:
    """Returns how a BiGCN is trained: the published form has a weight decay and a penalty of its own."""
    if slots.get("base") != "published":
        return TrainingDefaults()
    weight_decay = PUBLISHED_WEIGHT_DECAY.get(context.dataset.lower(), 5e-4) if context.task == "node" else 5e-4
    learnable = slots.get("feature_graph", "learnable") == "learnable"
    return TrainingDefaults(weight_decay=weight_decay, penalty=1.0 if learnable else 0.0)


def bigcn_spec(name: str, words: tuple[str, ...] = ()) -> ModelSpec:
    """Returns the entry of BiGCN in the form that some words name."""
    slots = parse_words(name, words)
    return ModelSpec(
        name,
        f"BiGCN ({', '.join(words)})" if words else "BiGCN",
        BiGCN,
        settings=lambda context: bigcn_settings(slots, context),
        training=lambda context: bigcn_training(slots, context),
        variant=None if words else bigcn_spec,
    )
