r"""The models by name: every baseline, and BiGCN in every form.

A plain name is an entry of :obj:`MODELS`. A family that takes words is written :obj:`family:word+word`, as in
:obj:`bigcn:exact+spectral+rank=32`; see :func:`bigcn.nn.bigcn_forms.bigcn_settings` for the words of BiGCN.
"""

import torch

from bigcn.nn import baselines
from bigcn.nn.bigcn_forms import bigcn_spec
from bigcn.nn.diffusion import diffuse
from bigcn.nn.model_spec import ModelContext, ModelSpec, TrainingDefaults, suggest

_SPECS = (
    bigcn_spec("bigcn"),
    bigcn_spec("bigcn:published", ("published",)),
    ModelSpec("gcn", "GCN", baselines.GCN),
    ModelSpec("sage", "GraphSAGE", baselines.GraphSAGE),
    ModelSpec(
        "gat", "GAT", baselines.GAT, settings=lambda c: c.common() | {"hidden_channels": c.hidden_channels or 64}
    ),
    ModelSpec("gin", "GIN", baselines.GIN),
    ModelSpec("gdc", "GDC", baselines.GDC, prepare=diffuse),
    ModelSpec("appnp", "APPNP", baselines.APPNP),
    ModelSpec("sgc", "SGC", baselines.SGC, settings=lambda c: {"num_layers": c.num_layers}),
    ModelSpec("mlp", "MLP", baselines.MLP),
)
#: The models by name. A new one is one class and one entry in the list above.
MODELS: dict[str, ModelSpec] = {spec.name: spec for spec in _SPECS}


def model_names() -> tuple[str, ...]:
    """Returns the names in the registry; families know more."""
    return tuple(MODELS)


def get_model(name: str) -> ModelSpec:
    """Returns the entry of a model, or of a member of a family.

    Args:
        name (str): A name from :func:`model_names`, or :obj:`family:word+word`.

    Example:
        >>> get_model("bigcn:exact+spectral").title
        'BiGCN (exact, spectral)'
    """
    key = name.strip().lower()
    if key in MODELS:
        return MODELS[key]
    family, _, words = key.partition(":")
    if family not in MODELS:
        raise ValueError(f"unknown model {name!r}{suggest(family, list(MODELS))}")
    variant = MODELS[family].variant
    if variant is None:
        raise ValueError(f"model {name!r}: {family!r} takes no words")
    return variant(key, tuple(word.strip() for word in words.split("+")))


def title_of(name: str) -> str:
    """Returns the name of a model for people; a name that is not known stands for itself.

    Args:
        name (str): See :func:`get_model`.
    """
    try:
        return get_model(name).title
    except ValueError:
        return name


def build_model(name: str, context: ModelContext) -> torch.nn.Module:
    """Builds a model by name.

    Args:
        name (str): See :func:`get_model`.
        context (ModelContext): What it is built for.

    Example:
        >>> build_model("gcn", ModelContext("digits", "clean", "node", in_channels=64, out_channels=10))
        GCN(64, 10, num_layers=2)
    """
    return get_model(name).build(context)


__all__ = [
    "MODELS",
    "ModelContext",
    "ModelSpec",
    "TrainingDefaults",
    "build_model",
    "get_model",
    "model_names",
]
