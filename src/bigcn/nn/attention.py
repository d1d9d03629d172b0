r"""PyG's attention layer, its gradients written out.

Written out, forward and backward pass keep three numbers for every edge and head instead of every intermediate result,
or none at all where Triton computes them anew. The members of a population are blocks on the diagonal of one matrix;
where there is no Triton, so are the heads.
"""

import importlib
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.utils import add_self_loops, remove_self_loops

from bigcn.sparse_diagonal import joined_pattern, make_room, mapped, row_numbers
from bigcn.sparse_ops import LONGEST_OF_ONE, fused_kernels, multiply, product_dtype, sampled_product


class AttentionGraph(NamedTuple):
    """Edges, self-loops among them.

    Args:
        crow, source (torch.Tensor): The edges sorted by target, as pointers and columns.
        crow_t, target (torch.Tensor): The same sorted by source.
        order (torch.Tensor): Where the edges by source stand among those by target.
        counts (torch.Tensor, optional): One for an edge, zero for one that only fills the graph up to the size of
            others. (default: one for all)
    """

    crow: Tensor
    source: Tensor
    crow_t: Tensor
    target: Tensor
    order: Tensor
    counts: Tensor | None = None


def attend(conv: pyg.GATConv, x: Tensor, graph: AttentionGraph) -> Tensor:
    r"""Returns what a :class:`torch_geometric.nn.GATConv` does.

    Args:
        conv (torch_geometric.nn.GATConv): The layer.
        x (torch.Tensor): The node features.
        graph (AttentionGraph): The graph.
    """
    x = conv.lin(x).view(x.size(0), conv.heads, -1)
    dtype = x.dtype
    x = x.to(product_dtype(x))  # a half-precision model, or autocast
    of_source, of_target = ((x * weights).sum(dim=-1) for weights in (conv.att_src, conv.att_dst))
    p = conv.dropout if conv.training else 0.0
    *edges, counts = graph
    out: Tensor = _Attention.apply(of_source, of_target, x, counts, conv.negative_slope, p, *edges)[0]
    out = out.to(dtype).flatten(1) if conv.concat else out.to(dtype).mean(dim=1)
    return out if conv.bias is None else out + conv.bias


class _Attention(torch.autograd.Function):
    r"""Attention: for each head, with :math:`z_{ij} = u_j + v_i`, the softmax :math:`a_{ij}` of the leaky rectifier of
    :math:`z_{ij}` over the sources :math:`j` of each target :math:`i`, and a factor :math:`k_{ij}` of dropout, returns
    :math:`\sum_j a_{ij} k_{ij} \mathbf{x}_j`, and what the backward pass needs of the edges.
    """

    @staticmethod
    def forward(
        of_source: Tensor, of_target: Tensor, block: Tensor, counts: Tensor | None, slope: float, p: float,
        crow: Tensor, col: Tensor, crow_t: Tensor, col_t: Tensor, order: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        if (kernels := _fused(block, crow, col)) is not None:
            seed = torch.randint(2**31 - 1, (1,), device=crow.device) if p else crow[:1]
            found = kernels.attention(of_source, of_target, block, counts, slope, p, seed, crow, col)
            return *found, seed, block.new_empty(0)
        heads, nodes = block.size(1), block.size(0)
        crow, col = _of_all_heads(crow, col, heads, nodes)
        row = row_numbers(crow, col.numel())
        z = _head_by_head(of_source).index_select(0, col) + _head_by_head(of_target).index_select(0, row)
        score = F.leaky_relu(z, slope)
        highest = torch.segment_reduce(score, "max", offsets=crow, unsafe=True)
        share = (score - highest.index_select(0, row)).exp()
        if counts is not None:
            share = share * counts.to(share.dtype).repeat(heads)
        # Dropout comes after the softmax, as in PyG; its sums divide those over neighbours instead of every share.
        total = _row_sums(share, crow).unsqueeze(1) + 1e-16
        kept = torch.rand_like(share) >= p if p else share.new_empty(0, dtype=torch.bool)
        out = multiply(crow, col, _with_dropout(share, kept, p), _head_by_head(block)) / total
        return _side_by_side(out, heads), _side_by_side(total, heads), share, kept, z > 0

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        of_source, of_target, block, counts, ctx.slope, ctx.p, *pattern = inputs
        ctx.fused = output[3].dtype != torch.bool
        of_nodes = (of_source, of_target, counts) if ctx.fused else (None, None, None)
        ctx.save_for_backward(*of_nodes, block, *output, *pattern)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        of_source, of_target, counts, block, out, total, *of_edges, crow, col, crow_t, col_t, order = ctx.saved_tensors
        if grads[0] is None:
            return (None,) * 11
        grad = grads[0] / total
        if ctx.fused:
            highest, seed, _ = of_edges
            found = _kernels().attention_gradients(
                of_source, of_target, block, counts, ctx.slope, ctx.p, seed, out, highest, grad, (crow, col),
                (crow_t, col_t, order),
            )  # fmt: skip
            return *found, *(None,) * 8
        share, kept, positive = of_edges
        heads, nodes, entries = block.size(1), block.size(0), col.numel()
        order = _of_all_heads(crow_t, order, heads, entries)[1]
        (crow, col), (crow_t, col_t) = (_of_all_heads(*pair, heads, nodes) for pair in ((crow, col), (crow_t, col_t)))
        grad, block, out = _head_by_head(grad), _head_by_head(block), _head_by_head(out)
        row = row_numbers(crow, col.numel())
        dropped = _with_dropout(share, kept, ctx.p)
        of_z = dropped * sampled_product(crow, col, grad, block)
        of_z = of_z - share * (grad * out).sum(dim=1).index_select(0, row)
        of_z = torch.where(positive, of_z, ctx.slope * of_z)
        of_block = multiply(crow_t, col_t, dropped.index_select(0, order), grad)
        found = _row_sums(of_z.index_select(0, order), crow_t), _row_sums(of_z, crow), of_block
        return *(_side_by_side(part, heads) for part in found), *(None,) * 8

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        members = info.batch_size
        counts, slope, p, crow, col, crow_t, col_t, order = args[3:]
        of_source, of_target, block = (
            mapped(part, dim, members, 0).flatten(0, 1) for part, dim in zip(args[:3], in_dims[:3], strict=True)
        )
        rows, entries = block.size(0) // members, col.numel() // (1 if in_dims[7] is None else members)
        if counts is not None:
            counts = mapped(counts, in_dims[3], members, 0).reshape(-1)
        joined = joined_pattern(crow, col, in_dims[6], in_dims[7], members, rows)
        joined_t = joined_pattern(crow_t, col_t, in_dims[8], in_dims[9], members, rows)
        # The same arithmetic as for columns: the entries of each member follow those of the one before.
        order = joined_pattern(crow_t, order, in_dims[8], in_dims[10], members, entries)[1]
        out, *rest = _Attention.apply(of_source, of_target, block, counts, slope, p, *joined, *joined_t, order)
        return (out.unflatten(0, (members, rows)), *rest), (0, None, None, None, None)


def _of_all_heads(crow: Tensor, col: Tensor, heads: int, size: int) -> tuple[Tensor, Tensor]:
    """Returns a pattern once per head down a diagonal, of blocks of a size."""
    return (crow, col) if heads == 1 else joined_pattern(crow, col, None, None, heads, size)


def _head_by_head(values: Tensor) -> Tensor:
    """Returns what nodes have for every head with one row for each head and node, all nodes of a head together."""
    return values.transpose(0, 1).flatten(0, 1)


def _side_by_side(values: Tensor, heads: int) -> Tensor:
    """The other way round."""
    return values.unflatten(0, (heads, -1)).transpose(0, 1)


def _fused(block: Tensor, crow: Tensor, col: Tensor) -> Any:
    """Returns our kernels, or :obj:`None` where they do not suit or there is no Triton."""
    heads, channels = block.shape[1:]
    if fused_kernels(block, crow, LONGEST_OF_ONE) is None or col.numel() * heads >= 2**31:
        return None
    return _kernels() if _kernels().columns(heads, channels) <= _kernels().WIDEST else None


@cache
def _kernels() -> Any:
    return importlib.import_module("bigcn.attention_triton")


def _row_sums(values: Tensor, crow: Tensor) -> Tensor:
    return torch.segment_reduce(values, "sum", offsets=crow, unsafe=True)


def _with_dropout(share: Tensor, kept: Tensor, p: float) -> Tensor:
    return share * kept / (1 - p) if p else share


def attention_graph(edges: Tensor, num_nodes: int) -> AttentionGraph:
    """Returns a graph for :func:`attend`.

    Args:
        edges (torch.Tensor): The edge indices.
        num_nodes (int): The number of nodes.
    """
    edges, _ = add_self_loops(remove_self_loops(edges)[0], num_nodes=num_nodes)
    edges = edges[:, edges[0].argsort(stable=True)]
    source, target = edges[:, edges[1].argsort(stable=True)]
    return sorted_by_target(source, target, num_nodes)


def sorted_by_target(source: Tensor, target: Tensor, num_nodes: int, counts: Tensor | None = None) -> AttentionGraph:
    order = source.argsort(stable=True)
    crow, crow_t = (F.pad(torch.bincount(ends, minlength=num_nodes).cumsum(0), (1, 0)) for ends in (target, source))
    return AttentionGraph(crow, source, crow_t, target[order], order, counts)


def fill_up(graph: AttentionGraph, entries: int) -> AttentionGraph:
    """Returns the graph with loops at all nodes that count nothing, up to a number of edges."""
    _, target, old = make_room(graph.crow, entries - graph.source.numel())
    counts = torch.zeros(entries, device=target.device).index_fill_(0, old, 1)
    source = target.index_copy(0, old, graph.source)
    return sorted_by_target(source, target, graph.crow.numel() - 1, counts)
