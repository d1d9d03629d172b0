r"""The BiGCN model."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.typing import Adj, OptTensor

from bigcn.checks import is_whole
from bigcn.feature_graphs import FeatureGraph, SpectralGraph
from bigcn.files import PathLike
from bigcn.filters import FilterForm, check_strength
from bigcn.nn.bigcn_conv import BiGCNConv
from bigcn.nn.product_layers import Dropout, KeptGCNConv
from bigcn.nn.published import published_settings


def usual_feature_filter(feature_graph: str, feature_strength: float) -> FilterForm:
    """Returns the form of the feature filter unless one is asked for: of a spectral graph the projector on its leading
    eigenvectors, which is the Taylor form of strength one.

    Args:
        feature_graph (str): The name of the feature graph.
        feature_strength (float): Its strength.
    """
    return "taylor" if feature_graph == "spectral" and feature_strength == 1.0 else "exact"


class BiGCN(BasicGNN):
    r"""The graph neural network from the `"BiGCN: A Bi-directional Low-Pass Filtering Graph Neural Network"
    <https://arxiv.org/abs/2101.05519>`_ paper, using the :class:`~bigcn.nn.BiGCNConv` operator for message passing.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the first input(s) to the
            forward method.
        hidden_channels (int): Size of each hidden sample.
        num_layers (int): Number of message passing layers.
        out_channels (int, optional): If not set to :obj:`None`, will apply a final linear transformation to convert
            hidden node embeddings to output size :obj:`out_channels`. (default: :obj:`None`)
        dropout (float, optional): Dropout probability, applied between the layers. (default: :obj:`0.`)
        drops_input (bool, optional): Whether dropout also comes before the weights of the first layer, see
            :class:`~bigcn.nn.BiGCNConv`. (default: :obj:`False`)
        act, act_first, act_kwargs, norm, norm_kwargs, jk: See :class:`torch_geometric.nn.models.basic_gnn.BasicGNN`.
        gcn_layers (int, optional): How many of the layers, counted from the top, are
            :class:`torch_geometric.nn.GCNConv` instead. (default: :obj:`0`)
        feature_graph (str, FeatureGraph or torch.Tensor, optional): The feature graph, see
            :class:`~bigcn.nn.BiGCNConv`. With a spectral graph, the feature filter is the projector on its leading
            eigenvectors unless :obj:`feature_filter` or :obj:`feature_strength` says otherwise. By name it
            is read off all nodes of a call together; :meth:`bigcn.feature_graphs.SpectralGraph.from_data` makes one
            that stays. (default: :obj:`"spectral"`)
        hidden_feature_graph (str, optional): The feature graph of the layers above the first. By default these have
            the one named in :obj:`feature_graph`, or :obj:`"none"` if that is spectral, which would be decomposed in
            every step, or a finished graph or a tensor, which belongs to the first layer alone.
            (default: :obj:`None`)
        feature_filter (str, optional): The form of the feature filter in all layers, :obj:`"exact"` or
            :obj:`"taylor"`. By default it is exact, but for a spectral graph of strength one, see above.
            (default: :obj:`None`)
        hidden_node_strength (float, optional): The node strength of the layers above the first, where it differs from
            that of the first; with :obj:`node_strength=0`, a model predicts first and smooths then.
            (default: :obj:`None`)
        cached (bool, optional): Whether the layers keep what they computed from graph and features for calls with
            the very same tensors, see :class:`~bigcn.nn.BiGCNConv`. (default: :obj:`True`)
        penalty_layers (str, optional): Whether :meth:`penalty` adds up :obj:`"all"` layers, as the text of the paper
            says, or the :obj:`"first"` alone, as the released code does. (default: :obj:`"all"`)
        **kwargs (optional): Additional arguments of :class:`~bigcn.nn.BiGCNConv`.

    The defaults are the filters that did best on validation data for node classification, over all graphs of the paper,
    clean and noisy. For links :obj:`feature_graph="none", node_strength=3.0` did better. The paper's own form is
    :meth:`published`.

    Example:
        >>> model = BiGCN(64, hidden_channels=16, num_layers=2, out_channels=10)
        >>> [type(conv.feature_graph).__name__ for conv in model.convs]
        ['SpectralGraph', 'NoGraph']
    """

    supports_edge_weight = True
    supports_edge_attr = False
    supports_norm_batch: bool

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        drops_input: bool = False,
        gcn_layers: int = 0,
        feature_graph: str | FeatureGraph | Tensor = "spectral",
        hidden_feature_graph: str | None = None,
        feature_filter: FilterForm | None = None,
        hidden_node_strength: float | None = None,
        cached: bool = True,
        penalty_layers: Literal["all", "first"] = "all",
        **kwargs: Any,
    ) -> None:
        sizes = {"num_layers": num_layers, "hidden_channels": hidden_channels}
        if num_layers == 1 and out_channels is not None:
            del sizes["hidden_channels"]  # a single layer has none
        for what, size in sizes.items():
            if not is_whole(size) or size < 1:
                raise ValueError(f"'{what}' must be a positive number (got {size!r})")
        if not isinstance(hidden_feature_graph, str | None):
            raise ValueError(
                f"'hidden_feature_graph' must be the name of one (got {type(hidden_feature_graph).__name__})"
            )
        if hidden_node_strength is not None:
            check_strength("hidden_node_strength", hidden_node_strength)
        if not 0 <= gcn_layers < num_layers:
            raise ValueError(f"'gcn_layers' must leave a BiGCN layer at the bottom of {num_layers} (got {gcn_layers})")
        if penalty_layers not in ("all", "first"):
            raise ValueError(f"'penalty_layers' must be 'all' or 'first' (got {penalty_layers!r})")
        name = feature_graph if isinstance(feature_graph, str) else ""
        if name == "spectral" and hidden_feature_graph is None:
            hidden_feature_graph = "none"
        if isinstance(feature_graph, SpectralGraph):
            name = "spectral"
        strength = kwargs.get("feature_strength", 1.0)
        first, hidden = (
            feature_filter or usual_feature_filter(graph, strength) for graph in (name, hidden_feature_graph or name)
        )
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            dropout,
            bigcn_layers=num_layers - gcn_layers,
            input_dropout=dropout if drops_input else 0.0,
            feature_graph=feature_graph,
            hidden_feature_graph=hidden_feature_graph,
            feature_filter=first,
            hidden_feature_filter=hidden,
            hidden_node_strength=hidden_node_strength,
            cached=cached,
            **kwargs,
        )
        self.penalty_layers = penalty_layers
        self.dropout: Any = Dropout(dropout)  # over several processes, another takes its place
        # For saving; a finished feature graph is part of the first layer, and described from there.
        self.arguments: dict[str, Any] = {
            "in_channels": in_channels,
            "hidden_channels": hidden_channels,
            "num_layers": num_layers,
            "out_channels": out_channels,
            "dropout": dropout,
            "drops_input": drops_input,
            "gcn_layers": gcn_layers,
            "feature_graph": feature_graph if isinstance(feature_graph, str) else None,
            "hidden_feature_graph": hidden_feature_graph,
            "feature_filter": feature_filter,
            "hidden_node_strength": hidden_node_strength,
            "cached": cached,
            "penalty_layers": penalty_layers,
            **kwargs,
        }

    def init_conv(
        self,
        in_channels: int,
        out_channels: int,
        bigcn_layers: int,
        input_dropout: float,
        feature_graph: str | FeatureGraph | Tensor,
        hidden_feature_graph: str | None,
        hidden_feature_filter: FilterForm,
        hidden_node_strength: float | None,
        **kwargs: Any,
    ) -> MessagePassing:
        layer = len(self.convs)
        if layer >= bigcn_layers:
            # Not PyG's own cache, which would take its first graph for every later one.
            layer_type = KeptGCNConv if kwargs["cached"] else GCNConv
            return layer_type(in_channels, out_channels, bias=kwargs.get("bias", True))
        if layer > 0:
            by_name = isinstance(feature_graph, str)
            if hidden_feature_graph is not None:
                kwargs.pop("feature_graph_kwargs", None)
            first, feature_graph = feature_graph, hidden_feature_graph or (feature_graph if by_name else "none")
            kwargs["feature_filter"] = hidden_feature_filter
            if hidden_node_strength is not None:
                kwargs["node_strength"] = hidden_node_strength
            elif feature_graph == "none" or (by_name and feature_graph == first):
                kwargs["check_low_pass"] = False  # the first layer has said it
        else:
            kwargs["dropout"] = input_dropout
        return BiGCNConv(in_channels, out_channels, feature_graph=feature_graph, **kwargs)

    def forward(
        self,
        x: Tensor,
        edge_index: Adj,
        edge_weight: OptTensor = None,
        edge_attr: OptTensor = None,
        batch: OptTensor = None,
        batch_size: int | None = None,
        num_sampled_nodes_per_hop: list[int] | None = None,
        num_sampled_edges_per_hop: list[int] | None = None,
    ) -> Tensor:
        """Runs the forward pass; see :class:`torch_geometric.nn.models.basic_gnn.BasicGNN`.

        Nodes cannot be left out layer by layer, as :obj:`num_sampled_nodes_per_hop` asks for: a layer reaches further
        than one hop.
        """
        # A list, not a stand-in for one that fx traces with.
        if isinstance(num_sampled_nodes_per_hop, list) or isinstance(num_sampled_edges_per_hop, list):
            raise ValueError(f"'num_sampled_nodes_per_hop' goes with layers of one hop, and these have {self._reach()}")
        out: Tensor = super().forward(x, edge_index, edge_weight, edge_attr, batch, batch_size)
        return out

    def inference(self, *args: Any, **kwargs: Any) -> Tensor:
        """Refuses to compute embeddings layer by layer, since a layer reaches further than one hop."""
        raise NotImplementedError(
            f"inference layer by layer goes with layers of one hop, and these have {self._reach()}: call the model on "
            f"the whole graph, or on batches of all neighbours within {self.num_hops} hops"
        )

    def _reach(self) -> str:
        return " and ".join(str(conv.num_hops if isinstance(conv, BiGCNConv) else 1) for conv in self.convs)

    def penalty(self) -> Tensor:
        """Returns the L1 norm of the feature operators, differentiable."""
        convs = [conv for conv in self.convs if isinstance(conv, BiGCNConv)]
        if self.penalty_layers == "first":
            return convs[0].penalty()
        return torch.stack([conv.penalty() for conv in convs]).sum()

    @property
    def num_hops(self) -> int:
        """How many hops the model reaches, which samplers of neighbourhoods must know."""
        return sum(conv.num_hops if isinstance(conv, BiGCNConv) else 1 for conv in self.convs)

    def save_pretrained(self, folder: PathLike, overwrite: bool = False) -> None:
        """Saves the model as a checkpoint, see :mod:`bigcn.training.checkpoint`.

        Args:
            folder (str or path): The folder, which may be empty, or hold an older checkpoint.
            overwrite (bool, optional): If set to :obj:`True`, replaces an older checkpoint. (default: :obj:`False`)
        """
        from bigcn.training.checkpoint import Checkpoint, save_checkpoint

        save_checkpoint(folder, Checkpoint(self), overwrite)

    @classmethod
    def from_pretrained(cls, folder: PathLike, device: torch.device | str = "cpu") -> "BiGCN":
        """Returns the model of a checkpoint, in evaluation mode.

        Args:
            folder (str or path): The folder that :meth:`save_pretrained`, :meth:`BiGCNClassifier.save` or the command
                :obj:`bigcn train` wrote.
            device (torch.device, optional): Where to put the model. (default: :obj:`"cpu"`)
        """
        from bigcn.training.checkpoint import load_checkpoint

        return load_checkpoint(folder, device).model

    @staticmethod
    def published(dataset: str, case: str = "clean", task: str = "node") -> dict[str, Any]:
        """Returns the paper's settings as arguments of this class, all but :obj:`in_channels` and
        :obj:`out_channels`; see :func:`bigcn.nn.published.published_settings`.

        Example:
            >>> settings = BiGCN.published("cora", "clean")
            >>> settings["p"], settings["node_strength"], settings["hidden_channels"]
            (3.0, 1.8, 16)
        """
        return published_settings(dataset, case, task)
