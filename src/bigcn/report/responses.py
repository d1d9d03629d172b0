r"""What the filter of each BiGCN in a comparison lets through."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bigcn.experiments.comparison import ComparisonResult
from bigcn.feature_graphs import FEATURE_GRAPHS, FeatureGraph
from bigcn.filters import RIPPLE, frequency_response, is_low_pass
from bigcn.nn import BiGCNConv
from bigcn.nn.bigcn import usual_feature_filter
from bigcn.report.words import model_title

_ARGUMENTS = (
    *("p", "node_strength", "feature_strength", "iterations"),
    *("node_filter", "feature_filter", "feature_operator"),
)


@dataclass(frozen=True)
class Response:
    r"""The frequency response of one model's first layer.

    Args:
        model (str): The name of the model.
        arguments (dict): The filter, as arguments of :func:`bigcn.filters.frequency_response`.
        feature_graph (str): The name of the feature graph, or :obj:`"given"`.
        highest (float): The highest frequency that this feature graph can have.
        grid (torch.Tensor): The response, node frequencies from :math:`0` to :math:`2` along the rows, feature
            frequencies from :math:`0` to :obj:`highest` along the columns.
        low_pass (bool): Whether it is low-pass there.
    """

    model: str
    arguments: dict[str, Any]
    feature_graph: str
    highest: float
    grid: Tensor
    low_pass: bool

    @property
    def title(self) -> str:
        """The name of the model for people."""
        return model_title(self.model)

    @property
    def one_way(self) -> bool:
        """Whether the filter works along the nodes alone."""
        return self.feature_graph in ("none", "identity")

    @property
    def verdict(self) -> str:
        """Whether the filter is low-pass."""
        return "Low-pass" if self.low_pass else "Not low-pass"

    @property
    def words(self) -> str:
        """What the filter does, in a sentence that :attr:`verdict` begins."""
        low, high = float(self.grid.min()), float(self.grid.max())
        corner = float(self.grid[-1, -1])
        where = "along the nodes only" if self.one_way else f"along the nodes and a {self.feature_graph} feature graph"
        if self.low_pass:
            return (
                f"{self.verdict}, {where}: what changes slowly stays, what changes fastest is scaled by {corner:.2f}."
            )
        faults = []
        if low < -RIPPLE:
            faults.append(f"flips the sign of some frequencies (down to −{-low:.2f})")
        if high > 1 + RIPPLE:
            faults.append(f"amplifies some (up to {high:.2f})")
        if not faults:
            rise = max(float((self.grid - self.grid.cummin(dim=side).values).max()) for side in (0, 1))
            faults.append(f"lets some higher frequencies through better than lower ones (by up to {rise:.2f})")
        return f"{self.verdict}, {where}: it {' and '.join(faults)}."


def responses(result: ComparisonResult, resolution: int = 64) -> list[Response]:
    """Returns the response of every BiGCN in a comparison.

    Args:
        result (ComparisonResult): What the comparison found.
        resolution (int, optional): Points per direction. (default: :obj:`64`)
    """
    first = {spec.model: spec.settings.get("model", {}) for spec, _ in reversed(result.pairs)}
    names = dict.fromkeys(spec.model for spec, _ in result.pairs)
    return [response(name, first[name], resolution) for name in names if name.partition(":")[0] == "bigcn"]


def response(model: str, settings: Mapping[str, Any], resolution: int = 64) -> Response:
    """Returns the response of one model.

    Args:
        model (str): Its name.
        settings (dict): Arguments of :class:`bigcn.BiGCN`; those missing are the defaults of
            :class:`bigcn.BiGCNConv`.
        resolution (int, optional): Points per direction. (default: :obj:`64`)
    """
    defaults = {name: item.default for name, item in inspect.signature(BiGCNConv.__init__).parameters.items()}
    arguments = {name: settings.get(name, defaults[name]) for name in _ARGUMENTS}
    named = settings.get("feature_graph", defaults["feature_graph"])
    graph = named if isinstance(named, str) else "given"
    if settings.get("feature_filter") is None:
        arguments["feature_filter"] = usual_feature_filter(graph, arguments["feature_strength"])
    if graph == "none" or arguments["feature_strength"] == 0:
        graph, arguments["feature_strength"] = "none", 0.0
    if graph == "identity":
        arguments["feature_operator"] = "laplacian"  # it has but one operator, whatever it is called
    highest = FEATURE_GRAPHS.get(graph, FeatureGraph).highest_frequency
    along_nodes = torch.linspace(0, 2, resolution, dtype=torch.float64).view(-1, 1)
    along_features = torch.linspace(0, highest, resolution, dtype=torch.float64).view(1, -1)
    if graph == "identity":
        along_features = torch.ones_like(along_features)  # its Laplacian is the identity: one frequency
    grid = frequency_response(along_nodes, along_features, **arguments)
    return Response(model, arguments, graph, highest, grid, _is_low_pass(arguments, graph, highest, grid))


def _is_low_pass(arguments: dict[str, Any], graph: str, highest: float, grid: Tensor) -> bool:
    if graph == "identity":
        rise = (grid - grid.cummin(dim=0).values).max()
        return bool(rise <= RIPPLE and grid.min() >= -RIPPLE and grid.max() <= 1 + RIPPLE)
    return is_low_pass(**arguments, highest_feature=highest)
