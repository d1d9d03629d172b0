"""Rows that travel: lists made once, and products that differentiate through them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bigcn.distributed.processes import Kind, Processes


class RowExchange:
    """Brings the rows that this process needs from those that own them, the same ones each time.

    Args:
        processes (Processes): The processes.
        rows (torch.Tensor): Which own rows to send, grouped by process.
        send, receive (list[int]): How many rows go to, and come from, each process.
        kind (str, optional): What for. (default: :obj:`"hops"`)
    """

    def __init__(
        self, processes: Processes, rows: Tensor, send: list[int], receive: list[int], kind: Kind = "hops"
    ) -> None:
        self.processes, self.kind = processes, kind
        self.rows, self.send, self.receive = rows, send, receive

    @classmethod
    def asking(cls, processes: Processes, owner: Tensor, local: Tensor, kind: Kind = "pairs") -> "RowExchange":
        """Makes the lists by telling each owner which of its rows are needed here.

        Args:
            processes (Processes): The processes.
            owner (torch.Tensor): The owner of each row needed, in ascending order.
            local (torch.Tensor): Its number there.
            kind (str, optional): What for. (default: :obj:`"pairs"`)
        """
        receive = torch.bincount(owner, minlength=processes.size).tolist()
        send = ask_counts(processes, receive)
        return cls(processes, processes.exchange(local, receive, send, kind)(), send, receive, kind)

    @property
    def rows_sent(self) -> int:
        """How many rows go to other processes each time."""
        return sum(self.send) - self.send[self.processes.rank]

    def start(self, block: Tensor) -> Callable[[], Tensor]:
        """Begins to send rows of a block, and returns what waits for the rows received; no gradient."""
        outgoing = block.index_select(0, self.rows)
        return self.processes.exchange(outgoing, self.send, self.receive, self.kind)

    def __call__(self, block: Tensor) -> Tensor:
        """Returns the rows received, differentiable: gradients take the way back."""
        received: Tensor = _Fetch.apply(block, self)
        return received

    def give_back(self, received: Tensor, num_rows: int) -> Tensor:
        """Sends rows the way back and adds them up where they came from."""
        returned = self.processes.exchange(received, self.receive, self.send, self.kind)()
        return returned.new_zeros(num_rows, *received.shape[1:]).index_add_(0, self.rows, returned)


class _Fetch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: Tensor, exchange: RowExchange) -> Tensor:
        ctx.exchange, ctx.num_rows = exchange, block.size(0)
        return exchange.start(block)()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.exchange.give_back(grad.contiguous(), ctx.num_rows), None


def ask_counts(processes: Processes, counts: list[int]) -> list[int]:
    """Tells each process how many rows go its way, and returns how many come from each."""
    ones = [1] * processes.size
    sent = torch.tensor(counts, device=processes.device)
    return processes.exchange(sent, ones, ones, "pairs")().tolist()
