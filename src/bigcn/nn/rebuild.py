"""A BiGCN as plain arguments, and back."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bigcn.checks import as_python
from bigcn.feature_graphs import FEATURE_GRAPHS, FeatureGraph, GivenGraph
from bigcn.nn.bigcn import BiGCN

#: What the feature graph of a first layer is called that came as a finished graph without a name.
GIVEN = "given"


def describe_bigcn(model: BiGCN) -> dict[str, Any]:
    """Returns the arguments that a model was built with, as values that JSON can hold; its feature graph by name.

    Args:
        model (BiGCN): The model. One whose sizes are still to be inferred cannot be described.
    """
    arguments = dict(model.arguments)
    first = model.convs[0]
    if first.in_channels < 1:
        raise ValueError("'model' has not seen an input yet, so its size is not known")
    arguments["in_channels"] = first.in_channels
    if not isinstance(arguments.get("feature_graph", "none"), str):
        name, kwargs = _describe_graph(first.feature_graph)
        # A finished graph belongs to the first layer alone; its name would go to all.
        arguments |= {"feature_graph": name, "hidden_feature_graph": arguments["hidden_feature_graph"] or "none"}
        if kwargs:
            arguments["feature_graph_kwargs"] = kwargs
    elif arguments.get("feature_graph_kwargs"):
        arguments["feature_graph_kwargs"] = _plain(arguments["feature_graph_kwargs"])
    arguments = {name: as_python(value) for name, value in arguments.items()}
    for name, value in arguments.items():
        if not _is_plain(value):
            raise ValueError(f"'{name}' of the model is a {type(value).__name__}, which a configuration cannot hold")
    return arguments


def build_bigcn(arguments: Mapping[str, Any], weights: Mapping[str, Tensor]) -> BiGCN:
    """Builds the model that :func:`describe_bigcn` described and gives it its weights.

    Args:
        arguments (dict): What :func:`describe_bigcn` returned.
        weights (dict): The :obj:`state_dict` of the model.
    """
    arguments = dict(arguments)
    if "feature_filter" not in arguments:  # older than the defaults of today
        arguments = {"feature_graph": "none", "cached": False, **arguments, "feature_filter": "exact"}
        if arguments["feature_graph"] == "spectral":
            arguments["hidden_feature_graph"] = arguments.get("hidden_feature_graph") or "spectral"
    if arguments["feature_graph"] == GIVEN:
        arguments["feature_graph"] = _given_graph(weights)
    model = BiGCN(**{**arguments, "check_low_pass": False})
    model.arguments["check_low_pass"] = arguments.get("check_low_pass", True)
    expected = dict(model.state_dict())
    # Buffers of a feature graph that was computed once and kept come and go with the weights.
    computed = {f"convs.0.feature_graph.{name}" for name in _buffers(model.convs[0])}
    for name in sorted(expected.keys() | (weights.keys() - computed)):
        if name not in weights:
            raise ValueError(f"the weights lack {name!r}")
        if name not in expected:
            raise ValueError(f"the weights have {name!r}, which the model does not")
        if name not in computed and weights[name].shape != expected[name].shape:
            found, needed = list(weights[name].shape), list(expected[name].shape)
            raise ValueError(f"the weights have {name!r} of shape {found}, and the model needs {needed}")
    floating = [tensor.dtype for tensor in weights.values() if tensor.is_floating_point()]
    if floating:
        model.to(floating[0])
    model.load_state_dict(dict(weights))
    return model.eval()


def _describe_graph(graph: FeatureGraph) -> tuple[str, dict[str, Any]]:
    for name, kind in FEATURE_GRAPHS.items():
        if type(graph) is kind:
            chosen = list(inspect.signature(kind).parameters)[1:]
            return name, _plain({key: getattr(graph, f"_{key}", getattr(graph, key, None)) for key in chosen})
    if type(graph) is GivenGraph:
        return GIVEN, {}
    raise ValueError(f"'feature_graph' is a {type(graph).__name__}, which a configuration cannot name")


def _plain(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out initial values given as tensors, which the weights replace; numbers of NumPy become Python's."""
    return {key: as_python(value) for key, value in kwargs.items() if not isinstance(value, Tensor)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, str | bool | int | float)


def _buffers(conv: torch.nn.Module) -> list[str]:
    return [name for name, buffer in conv.feature_graph._buffers.items() if buffer is None]  # type: ignore[union-attr]


def _given_graph(weights: Mapping[str, Tensor]) -> GivenGraph:
    """Returns a graph with room for the saved matrix; its values come with the weights."""
    prefix = "convs.0.feature_graph."
    if (matrix := weights.get(f"{prefix}matrix")) is not None:
        return GivenGraph(torch.zeros_like(matrix))
    crow, col, value = (weights.get(f"{prefix}{name}") for name in ("crow", "col", "value"))
    if crow is None or col is None or value is None:
        raise ValueError("the weights lack the feature graph that the model was given")
    size = crow.numel() - 1
    try:
        pattern = torch.sparse_csr_tensor(crow, col, torch.ones_like(value), (size, size), check_invariants=True)
    except RuntimeError:
        raise ValueError("the feature graph among the weights is damaged") from None
    return GivenGraph(pattern)
