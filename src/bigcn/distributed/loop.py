"""Training over processes: the loop of :func:`bigcn.training.train`, with sums where that has numbers."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv

from bigcn.distributed.counters import CountedDropout, key
from bigcn.distributed.processes import Processes
from bigcn.distributed.progress import RunState
from bigcn.distributed.task import DistributedTask
from bigcn.nn import BiGCN
from bigcn.training.config import Progress, TrainConfig, TrainResult
from bigcn.training.loop import Best, Curves, deterministic, make_adam, run_epochs

DROPOUT_STREAM = 103


def train_distributed(
    model: BiGCN,
    task: DistributedTask,
    processes: Processes,
    config: TrainConfig | None = None,
    seed: int = 0,
    on_epoch: Callable[[Progress], bool | None] | None = None,
    state: RunState | None = None,
) -> TrainResult:
    """Trains a model whose rows are spread over processes; all of them end with the same parameters.

    The parameters are replicated; the gradients of all processes are added up in one message per epoch, together with
    the loss. Whatever decides anything is a sum over processes, so that all decide alike. Dropout is drawn by
    :class:`~bigcn.distributed.counters.CountedDropout` and does not depend on the number of processes.

    Args:
        model (BiGCN): The model, changed in place; every process starts from the parameters of the first.
        task (DistributedTask): A task of :mod:`bigcn.distributed`.
        processes (Processes): The processes.
        config (TrainConfig, optional): How. (default: the paper's way for this task)
        seed (int, optional): The seed of dropout. (default: :obj:`0`)
        on_epoch (Callable, optional): Called after each epoch; training ends if it returns :obj:`True` on any process.
            Given on all processes or on none. (default: :obj:`None`)
        state (RunState, optional): Where training goes on from, and where it is written down. (default: :obj:`None`)
    """
    config = TrainConfig.published(task.name) if config is None else config
    check_model(model)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    share_parameters(model, processes)
    with counted_dropout(model, task.rows, seed) as dropout, deterministic(config.deterministic):
        optimizer = make_adam(parameters, config)

        def take_step(epoch: int) -> Tensor:
            processes.doing = f"training epoch {epoch}"
            dropout.begin(epoch)
            return step(model, task, optimizer, config.penalty, epoch, processes)

        def begin(best: Best, curves: Curves) -> int:
            return 0 if state is None else state.begin(model, optimizer, best, curves, processes)

        def write_down(best: Best, curves: Curves, epoch: int) -> None:
            if state is not None and state.due(epoch):
                state.save(model, optimizer, best, curves, epoch, processes)

        def ends(progress: Progress) -> bool:
            assert on_epoch is not None
            return processes.count(int(bool(on_epoch(progress)))) > 0

        return run_epochs(
            model,
            task,
            config,
            step=take_step,
            ends=None if on_epoch is None else ends,
            begin=begin,
            after=write_down,
        )


def step(
    model: BiGCN,
    task: DistributedTask,
    optimizer: torch.optim.Optimizer,
    penalty: float,
    epoch: int,
    processes: Processes,
) -> Tensor:
    """Takes one step of all processes together and returns the loss of all."""
    optimizer.zero_grad(set_to_none=True)
    loss = task.loss(model, epoch)
    if penalty > 0:
        # Every process knows the whole penalty, and all of them together count it once.
        loss = loss + penalty / processes.size * model.penalty()
    loss.backward()
    total = reduce_gradients(list(model.parameters()), loss.detach(), processes)
    optimizer.step()
    return total


def reduce_gradients(parameters: list[torch.nn.Parameter], loss: Tensor, processes: Processes) -> Tensor:
    """Adds up the gradients of all processes in place, and returns the sum of their losses, in one message."""
    if not processes.grouped:
        return loss
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    # A parameter without a gradient here has none on any process, but what is sent must have the same length.
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learned]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients] + [loss.reshape(1)])
    flat = processes.total(flat, "gradients")
    for parameter, piece in zip(learned, flat[:-1].split([g.numel() for g in gradients]), strict=True):
        if parameter.grad is not None:
            parameter.grad.copy_(piece.view_as(parameter))
    return flat[-1]


@torch.no_grad()
def share_parameters(model: torch.nn.Module, processes: Processes) -> None:
    """Gives every process the parameters and buffers of the first one."""
    if not processes.grouped:
        return
    for tensor in [*model.parameters(), *model.buffers()]:
        # A sum in which the others count for nothing: what every backend can do with every type.
        tensor.copy_(processes.total(tensor if processes.leads else torch.zeros_like(tensor)))


def check_model(model: torch.nn.Module) -> None:
    """Refuses what is computed from all nodes in a way that processes do not share."""
    if not isinstance(model, BiGCN):
        raise ValueError(f"only BiGCN trains over several processes (got {type(model).__name__})")
    if any(isinstance(conv, GCNConv) for conv in model.convs):
        raise ValueError("'gcn_layers' must be 0 over several processes: only BiGCN layers know a spread graph")
    if not all(isinstance(norm, torch.nn.Identity) for norm in model.norms):
        raise ValueError("'norm' must be None over several processes: it would normalise each one's rows on their own")


class counted_dropout:
    """Lets a model drop what any number of processes would drop, for a while.

    Args:
        model (BiGCN): The model.
        rows (torch.Tensor): The place of each node in the node table.
        seed (int): The seed.
    """

    def __init__(self, model: BiGCN, rows: Tensor, seed: int) -> None:
        self._places = [model, *(conv for conv in model.convs if conv.dropout is not None)]
        self._usual = [place.dropout for place in self._places]
        self._counted = CountedDropout(model.dropout.p, rows, key(DROPOUT_STREAM, seed))

    def __enter__(self) -> CountedDropout:
        for place in self._places:
            place.dropout = self._counted
        return self._counted

    def __exit__(self, *error: object) -> None:
        for place, usual in zip(self._places, self._usual, strict=True):
            place.dropout = usual.train(place.training)  # it has not seen what the model was told meanwhile
