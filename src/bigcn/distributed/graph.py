r"""The rows of a normalised node graph that one process holds, and hops over them."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bigcn.distributed.exchange import RowExchange
from bigcn.distributed.processes import Processes
from bigcn.distributed.shards import Shard
from bigcn.node_graphs import SpreadGraph


class Entries(NamedTuple):
    """Rows of the adjacency in CSR form: the columns are own nodes, or nodes of the halo.

    Args:
        crow, col (torch.Tensor): Where the entries stand.
        weight (torch.Tensor, optional): The weights of the edges. (default: ones)
    """

    crow: Tensor
    col: Tensor
    weight: Tensor | None = None

    def row(self) -> Tensor:
        """Returns the row of each entry."""
        numbers = torch.arange(self.crow.numel() - 1, device=self.crow.device)
        return numbers.repeat_interleave(self.crow.diff())

    def degrees(self, dtype: torch.dtype) -> Tensor:
        """Returns the sum of the weights in each row."""
        if self.weight is None:
            return self.crow.diff().to(dtype)
        degree = torch.zeros(self.crow.numel() - 1, dtype=dtype, device=self.crow.device)
        return degree.scatter_add(0, self.row(), self.weight.to(dtype))

    def kept(self, keep: Tensor) -> "Entries":
        """Returns the entries that a mask keeps."""
        counts = torch.zeros(self.crow.numel() - 1, dtype=torch.int64, device=keep.device)
        counts.scatter_add_(0, self.row(), keep.long())
        crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(self.crow.dtype)
        return Entries(crow, self.col[keep], None if self.weight is None else self.weight[keep])

    def to(self, device: torch.device) -> "Entries":
        """Moves the tensors."""
        return Entries(*(None if tensor is None else tensor.to(device) for tensor in self))  # type: ignore[arg-type]

    def scaled(self, rows: Tensor, columns: Tensor) -> Tensor:
        r"""Returns the entries of :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}` as a sparse tensor.

        Args:
            rows (torch.Tensor): The scale of each row.
            columns (torch.Tensor): The scale of each column.
        """
        # In this order the two directions of an edge round alike, as in the graph of a single process.
        value = columns.index_select(0, self.col) * rows.repeat_interleave(self.crow.diff())
        if self.weight is not None:
            value = self.weight.to(value.dtype) * value
        shape = (rows.numel(), columns.numel())
        return torch.sparse_csr_tensor(self.crow, self.col, value, shape, check_invariants=False)


class DistributedGraph(SpreadGraph):
    r"""The rows of :math:`\mathbf{N} = \mathbf{I} - \mathbf{L}_1` that this process holds.

    A hop multiplies the own columns while the rows of neighbours held elsewhere, the halo, are on their way, and then
    the columns of the halo. Only rows that some neighbour needs travel, each once to each process that needs it. The
    whole matrix is symmetric, so that the gradient of a hop is the same hop of the gradient.

    Args:
        processes (Processes): The processes.
        own (Entries): The entries between nodes of this process.
        halo (Entries): The entries to nodes held elsewhere, numbered as they are received.
        exchange (RowExchange): Brings the rows of the halo.
        dtype (torch.dtype, optional): The precision of the entries. (default: :obj:`torch.float32`)
    """

    def __init__(
        self,
        processes: Processes,
        own: Entries,
        halo: Entries,
        exchange: RowExchange,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.processes, self.exchange = processes, exchange
        self.num_rows = own.crow.numel() - 1
        self.num_nodes = processes.count(self.num_rows)
        self.num_edges = processes.count(own.col.numel() + halo.col.numel())
        degree = own.degrees(dtype) + halo.degrees(dtype)
        connected = degree > 0
        scale = torch.where(connected, torch.where(connected, degree, 1).rsqrt(), 0)
        self._own = own.scaled(scale, scale)
        self._halo = halo.scaled(scale, exchange.start(scale.unsqueeze(1))().squeeze(1))
        # The Laplacian of an isolated node is zero, so a hop leaves it where it is.
        self._isolated = (~connected).nonzero().view(-1)

    @classmethod
    def from_shard(
        cls,
        shard: Shard,
        processes: Processes,
        dtype: torch.dtype = torch.float32,
        kept: tuple[Tensor, Tensor] | None = None,
    ) -> "DistributedGraph":
        """Makes the graph of a shard.

        Args:
            shard (Shard): The shard of this process.
            processes (Processes): The processes.
            dtype (torch.dtype, optional): The precision of the entries. (default: :obj:`torch.float32`)
            kept (tuple[torch.Tensor, torch.Tensor], optional): Masks over the own entries and those of the halo that
                say which edges there are. (default: all)
        """
        own, halo = entries_of(shard)
        if kept is not None:
            own, halo = own.kept(kept[0]), halo.kept(kept[1])
        rows = shard.tensor("send").long().to(processes.device)
        exchange = RowExchange(processes, rows, shard.counts("send_counts"), shard.counts("receive_counts"))
        return cls(processes, own.to(processes.device), halo.to(processes.device), exchange, dtype)

    def __call__(self, block: Tensor) -> Tensor:
        hopped: Tensor = _Hop.apply(block, self)
        return hopped

    def total(self, partial: Tensor) -> Tensor:
        return self.processes.total(partial)

    def chebyshev(self, coefficients: Tensor, parts: list[Tensor]) -> Tensor:
        r"""Returns :math:`\sum_j T_j(\mathbf{N}) \sum_m c_{jm} \mathbf{P}_m`, holding few blocks at a time.

        Args:
            coefficients (torch.Tensor): Shape :obj:`[degree + 1, num_parts]`.
            parts (list[torch.Tensor]): The blocks.
        """
        filtered: Tensor = _Filter.apply(self, coefficients, *parts)
        return filtered

    def multiply(self, block: Tensor, rest: Tensor | None = None, alpha: float = 1) -> Tensor:
        """Multiplies a block of the own rows, and adds the product, times a number, to the rest, in place."""
        if self._own.dtype != block.dtype:
            raise ValueError(f"the graph has precision {self._own.dtype}, and the block {block.dtype}")
        wait = self.exchange.start(block)
        out = torch.zeros_like(block) if rest is None else rest
        out.addmm_(self._own, block, alpha=alpha)
        if self._isolated.numel():
            out.index_add_(0, self._isolated, block.index_select(0, self._isolated), alpha=alpha)
        received = wait()
        return out.addmm_(self._halo, received, alpha=alpha) if received.size(0) else out


class _Filter(torch.autograd.Function):
    """Clenshaw's recursion in place; autograd would keep every block that it makes on the way back."""

    @staticmethod
    def forward(ctx: Any, graph: DistributedGraph, coefficients: Tensor, *parts: Tensor) -> Tensor:
        ctx.graph, ctx.num_parts = graph, len(parts)
        ctx.save_for_backward(coefficients)
        degree = coefficients.size(0) - 1

        def term(j: int) -> Tensor:
            total = coefficients[j, 0] * parts[0]
            for m in range(1, len(parts)):
                total.addcmul_(coefficients[j, m], parts[m])
            return total

        older, newer = None, term(degree)
        for j in range(degree - 1, -1, -1):
            rest = term(j) if older is None else term(j).sub_(older)
            older, newer = newer, graph.multiply(newer, rest, 2 if j else 1)
        return newer

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # The transpose of a sum of polynomials of a symmetric matrix: the same polynomials of the gradient.
        (coefficients,) = ctx.saved_tensors
        older, newer = grad.contiguous(), None
        totals = [coefficients[0, m] * older for m in range(ctx.num_parts)]
        for j in range(1, coefficients.size(0)):
            if newer is None:
                newer = ctx.graph.multiply(older)
            else:
                # The first of them is the gradient itself, which is not ours to write to.
                rest = older.neg() if j == 2 else older.neg_()
                older, newer = newer, ctx.graph.multiply(newer, rest, 2)
            for m, total in enumerate(totals):
                total.addcmul_(coefficients[j, m], newer)
        return None, None, *totals


class _Hop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: Tensor, graph: DistributedGraph) -> Tensor:
        ctx.graph = graph
        return graph.multiply(block)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Hop.apply(grad.contiguous(), ctx.graph), None


def entries_of(shard: Shard) -> tuple[Entries, Entries]:
    """Returns the entries of a shard, those between its own nodes and those to its halo, still memory-mapped."""
    names = ("crow", "col", "weight") if shard.manifest.weighted else ("crow", "col")
    own, halo = (Entries(*(shard.tensor(f"{kind}_{name}") for name in names)) for kind in ("own", "halo"))
    return own, halo
