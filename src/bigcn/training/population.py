r"""Many models at once: seeds and settings of the same small model, trained together.

On a GPU a small graph keeps the launching of kernels busy and the arithmetic idle. Here the weights of all members have
one leading dimension, :func:`torch.func.vmap` maps the ordinary modules over it (no model is written twice), a shared
graph is one sparse product with all members side by side, different graphs stand down the diagonal of one, the losses
are summed so that the gradients stay independent, members that ran out of patience are masked and later dropped, and
the step is captured as a CUDA graph.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _NormBase

from bigcn.tasks.base import Task
from bigcn.training.config import TrainConfig, TrainResult
from bigcn.training.loop import seeded, train
from bigcn.training.population_scores import Evaluation
from bigcn.training.population_state import PopulationStep, bytes_per_member
from bigcn.training.stacking import CannotStack

#: After how many epochs the host looks which members still train; each look makes it wait for the GPU.
LOOK_EVERY = 20
#: What capturing a step anew takes, as the bytes of members that train for an epoch in the same time. With most models
#: an H200 takes as long for that as it takes to move their bytes at some 0.6 TB/s. The host captures, so that others
#: that share the GPU go on meanwhile, while members that are done keep all waiting.
CAPTURE_BYTES = 2**37
#: The share of free memory that a population may take on a GPU unless told otherwise, and the bytes on a CPU.
GPU_SHARE, CPU_BYTES = 0.6, 4 * 2**30


@dataclass(frozen=True, eq=False)
class Member:
    """One model of a population.

    Args:
        model (torch.nn.Module): The model, with its initial parameters; left as it is.
        task (Task): What it learns.
        config (TrainConfig): How. Members may differ in weight decay and in the weight of the penalty.
        seed (int, optional): The seed of what is random in training; the first member's counts for all, drawn apart
            for each. (default: :obj:`0`)
        start (dict, optional): The initial parameters by name, so that members can share one model; it then takes
            :obj:`restore_best=False`. (default: those of the model)
    """

    model: torch.nn.Module
    task: Task
    config: TrainConfig
    seed: int = 0
    start: dict[str, Tensor] | None = None


def train_population(
    members: Sequence[Member],
    max_memory: int | None = None,
    capture: bool | None = None,
    on_look: Callable[[int, int], None] | None = None,
    member_bytes: int | None = None,
    sharers: int = 1,
) -> list[TrainResult | FloatingPointError]:
    """Trains all members at once; each gives what :func:`~bigcn.training.train` would give for it alone.

    Without dropout that holds up to rounding, with dropout in distribution. A member whose loss is not finite gives
    the error that it would raise alone. Parameters of the best epoch are put back into the models if the
    configuration asks for it. Members that differ in more than numbers (another class, other shapes) are refused;
    those whose graphs cannot be stacked are trained one after the other.

    Args:
        members (Sequence[Member]): The members.
        max_memory (int, optional): The bytes that a population may take; it is divided into smaller ones to fit.
            (default: most of what a GPU has free, 4 GiB on a CPU)
        capture (bool, optional): Whether to capture the step as a CUDA graph. (default: on CUDA)
        on_look (Callable, optional): Called now and then with the epoch and the number of members that still train.
        member_bytes (int, optional): What :func:`~bigcn.training.population_state.bytes_per_member` found for members
            like these. (default: looked up)
        sharers (int, optional): How many processes keep the GPU busy, this one among them. (default: :obj:`1`)
    """
    if not members:
        return []
    _check_alike(members)
    if _cannot_stack(members):
        return [_alone(member) for member in members]
    device = members[0].task.x.device
    capture = capture if capture is not None else device.type == "cuda"
    each = member_bytes or bytes_per_member(members)
    size = even_size(len(members), fitting(each, device, max_memory))
    results: list[TrainResult | FloatingPointError] = []
    start = 0
    while start < len(members):
        part, too_many = members[start : start + size], False
        try:
            results += _train_together(part, capture, each * sharers, on_look)
        except torch.cuda.OutOfMemoryError:
            if size == 1:
                raise
            too_many = True
        except (CannotStack, NotImplementedError):  # the second of models that look at edges which they do not keep
            results += [_alone(member) for member in part]
        if too_many:  # here, where the error is gone, and with it what held the memory
            gc.collect()
            torch.cuda.empty_cache()
            size = -(-size // 2)
            continue
        start += len(part)
    return results


def fitting(member_bytes: int, device: torch.device, max_memory: int | None = None) -> int:
    """Returns how many members may train together, at least one.

    Args:
        member_bytes (int): What one of them takes, see :func:`~bigcn.training.population_state.bytes_per_member`.
        device (torch.device): Where.
        max_memory (int, optional): See :func:`train_population`. (default: :obj:`None`)
    """
    return max(1, (_allowed_bytes(device) if max_memory is None else max_memory) // member_bytes)


def even_size(count: int, most: int) -> int:
    """Returns the size of parts of about equal size, rather than full ones and a small rest.

    Args:
        count (int): How many there are to divide.
        most (int): How many a part may have.

    Example:
        >>> even_size(190, 100)
        95
    """
    return -(-count // -(-count // most))


def _train_together(
    members: Sequence[Member], capture: bool, epoch_bytes: int, on_look: Callable[[int, int], None] | None
) -> list[TrainResult | FloatingPointError]:
    config, device = members[0].config, members[0].task.x.device
    start, idle = time.perf_counter(), 0
    with seeded(members[0].seed, device, "training"):
        step = PopulationStep(members, capture)
        evaluation = Evaluation(members, step)
        for epoch in range(1, config.max_epochs + 1):
            step.train(epoch)
            if epoch % config.evaluate_every == 0 or epoch == config.max_epochs:
                evaluation.run(epoch)
            if epoch % LOOK_EVERY == 0 and config.patience is not None:
                active = evaluation.active.nonzero().view(-1)
                if on_look is not None:
                    on_look(epoch, active.numel())
                if active.numel() == 0:
                    break
                # Members that are done are dropped once they have taken as many epochs as that costs: what the others
                # have is copied, and the step captured.
                idle += LOOK_EVERY * (step.size - active.numel())
                cost = step.size + (CAPTURE_BYTES // epoch_bytes if step.capture else 0)
                if idle > cost and epoch < config.max_epochs:
                    evaluation.drop(active)
                    step.drop(active)
                    idle = 0
        evaluation.finish(epoch)
    seconds = (time.perf_counter() - start) / len(members)
    outcomes: list[TrainResult | FloatingPointError] = []
    for index, member in enumerate(members):
        outcome = evaluation.outcome(index, member, seconds)
        if isinstance(outcome, TrainResult) and member.config.restore_best:
            evaluation.restore(index, member.model)
        outcomes.append(outcome)
    return outcomes


def _alone(member: Member) -> TrainResult | FloatingPointError:
    if member.start is not None:
        with torch.no_grad():
            for name, parameter in member.model.named_parameters():
                parameter.copy_(member.start[name])
            for part in _running(member.model):
                part.reset_running_stats()
    try:
        return train(member.model, member.task, member.config, member.seed)
    except FloatingPointError as error:
        return error


def _cannot_stack(members: Sequence[Member]) -> bool:
    """Tells whether members have sparse features, parameters that are not to be learned, or running statistics."""
    return any(
        member.task.x.layout != torch.strided
        or not all(parameter.requires_grad for parameter in member.model.parameters())
        or any(True for _ in _running(member.model))
        for member in members
    )


def _running(model: torch.nn.Module) -> Iterator[_NormBase]:
    return (part for part in model.modules() if isinstance(part, _NormBase) and part.running_mean is not None)


def _check_alike(members: Sequence[Member]) -> None:
    first = members[0]
    shapes = _shapes(first.model)
    for member in members[1:]:
        if type(member.model) is not type(first.model) or _shapes(member.model) != shapes:
            raise ValueError("'members' must be models of one class with parameters of the same shapes")
        if type(member.task) is not type(first.task) or member.task.x.shape != first.task.x.shape:
            raise ValueError("'members' must have tasks of one kind on graphs of the same size")
        if member.task.x.device != first.task.x.device:
            raise ValueError("'members' must be on one device")
        if _common(member.config) != _common(first.config):
            raise ValueError("'members' may differ in weight decay and penalty, and in no other part of 'config'")
    shared = len({id(member.model) for member in members}) < len(members)
    if first.config.restore_best and (shared or any(member.start is not None for member in members)):
        raise ValueError("'members' that share a model cannot restore their best parameters into it")


def _shapes(model: torch.nn.Module) -> dict[str, Any]:
    return {name: (parameter.shape, parameter.dtype) for name, parameter in model.named_parameters()}


def _common(config: TrainConfig) -> TrainConfig:
    return replace(config, weight_decay=0.0, penalty=0.0)


def _allowed_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(GPU_SHARE * (free + reserved))
