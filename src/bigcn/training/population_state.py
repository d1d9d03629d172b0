"""The training step of all members of a population."""

import gc
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from bigcn.nn.baselines import takes_filled
from bigcn.nn.cache import caches_of
from bigcn.nn.feature_product import FeatureProducts, filled, filling_pays
from bigcn.training.asked import asked_bytes, asked_of_filters, asked_of_kept, left_out, rows_suffice
from bigcn.training.reach import is_local, parts_reached
from bigcn.training.seen import Seen, giving, seen_in, select_seen
from bigcn.training.stacking import CannotStack, Stack, stack, stack_kept

if TYPE_CHECKING:
    from bigcn.training.population import Member

#: How often a step runs before it is captured, so that libraries have chosen their algorithms and made their buffers.
WARM_UP = 3


class PopulationStep:
    """The training step of all members.

    Args:
        members (Sequence[Member]): The members.
        capture (bool): Whether to capture the step as a CUDA graph.
    """

    def __init__(self, members: "Sequence[Member]", capture: bool) -> None:
        self.task, self.config = members[0].task, members[0].config
        models = [member.model for member in members]
        tasks = [member.task for member in members]
        device = self.task.x.device
        self.model = models[0]
        self._places: dict[int, Tensor] = {}
        self.products = FeatureProducts(self.task.num_features)
        features = {id(task.x): task.x for task in tasks}  # what members share stays one tensor
        if takes_filled(self.model) and filling_pays(self.task.x):
            features = {key: filled(x) for key, x in features.items()}
        graphs = [(features[id(task.x)], task.edge_index, task.edge_weight) for task in tasks]
        by_filter = rows_suffice(self.model, self.task)
        with self.products, left_out(models, self.task.x) if by_filter else nullcontext():
            stacks = stack_kept(models, graphs)
        asked = asked_of_filters(models, graphs, tasks) if by_filter else asked_of_kept(self.model, stacks, tasks)
        for name in asked.training if asked else ():
            stacks.pop(name, None)  # the rows that are asked for suffice
        parts = parts_reached(self.model, stacks, tasks)
        #: What the layers of the model find in a training step and in an evaluation.
        self.training, self.scoring = seen_in(parts, asked or ({}, {}), stacks, graphs, by_place=asked is not None)
        self.wrapped = _WithPenalty(self.model)
        named = [member.start or dict(member.model.named_parameters()) for member in members]
        self.parameters = {
            name: torch.stack([member[name].detach() for member in named]).requires_grad_() for name in named[0]
        }
        self.buffers = _stacked_buffers(models)
        self.caches = caches_of(self.model)
        self.capture = capture and _is_fixed(self.model, stacks)
        self.tasks, self.members = tasks, torch.arange(len(members), device=device)
        self.scored = stack([self._where_asked(task.scored(), self.scoring) for task in tasks])
        self.questions: Stack | None = None
        dtype = self.task.x.dtype
        decay = torch.tensor([member.config.weight_decay for member in members], device=device, dtype=dtype)
        self.decay = None if bool((decay == decay[0]).all()) else decay
        self.penalties = torch.tensor([member.config.penalty for member in members], device=device, dtype=dtype)
        self.has_penalty = bool((self.penalties > 0).any()) and hasattr(self.model, "penalty")
        self.losses = torch.zeros(len(members), device=device, dtype=dtype)
        self.optimizer = self._adam()
        self._epochs_differ = len(tasks[0].questions(1)) > 0 and any(
            a is not b for a, b in zip(tasks[0].questions(1), tasks[0].questions(2), strict=True)
        )
        #: The step and the answers as CUDA graphs, once they are captured.
        self._train: Callable[[], object] | None = None
        self._answer: Callable[[], object] | None = None
        self._runs, self._warm_up = 0, WARM_UP
        #: What happens after all members have answered; part of the captured graph.
        self.after: Callable[[Tensor, Tensor], object] | None = None

    @property
    def size(self) -> int:
        """The number of members that are still computed."""
        return self.members.numel()

    def train(self, epoch: int) -> None:
        """Trains all members for an epoch."""
        if self.questions is None or self._epochs_differ:
            asked = (self.tasks[member].questions(epoch) for member in self._indices)
            questions = stack([self._where_asked(question, self.training) for question in asked])
            if self.questions is None:
                self.questions = questions
            else:
                for old, new in zip(self.questions.values, questions.values, strict=True):
                    old.copy_(new)  # into the memory that a captured step reads
        (self._train or self._step)()
        self._runs += 1
        if self.capture and self._runs == self._warm_up:
            self._train = _captured(self._step)

    def evaluate(self) -> None:
        """Asks all members what is validated and tested, and hands their answers on."""
        (self._answer or self._answers)()
        if self.capture and self._runs >= self._warm_up and self._answer is None:
            self._answer = _captured(self._answers)

    def drop(self, active: Tensor) -> None:
        """Goes on with some of the members."""
        state = {name: self.optimizer.state[parameter] for name, parameter in self.parameters.items()}
        with torch.no_grad():
            self.parameters = {name: p[active].requires_grad_() for name, p in self.parameters.items()}
        self.buffers = self.buffers.select(active)
        self.training, self.scoring = select_seen((self.training, self.scoring), active)
        self.scored = self.scored.select(active)
        self.questions = None if self.questions is None else self.questions.select(active)
        self.members, self.penalties, self.losses = self.members[active], self.penalties[active], self.losses[active]
        self.__dict__.pop("_member_indices", None)
        self.decay = None if self.decay is None else self.decay[active]
        self.optimizer = self._adam()
        for name, parameter in self.parameters.items():
            old = state[name]
            moments = {key: value if key == "step" else value[active] for key, value in old.items()}
            self.optimizer.state[parameter] = moments
        self._train = self._answer = None
        self._runs, self._warm_up = 0, 1

    def _where_asked(self, asked: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, ...]:
        """Returns questions about rows of the output with their places among the rows that there are."""
        if not seen.by_place:
            return asked
        places = self._places.setdefault(asked[0].numel(), torch.arange(asked[0].numel(), device=asked[0].device))
        return places, *asked[1:]

    @property
    def _indices(self) -> list[int]:
        if "_member_indices" not in self.__dict__:
            self.__dict__["_member_indices"] = self.members.tolist()
        indices: list[int] = self.__dict__["_member_indices"]
        return indices

    def _adam(self) -> torch.optim.Adam:
        decay = self.config.weight_decay if self.decay is None else 0.0
        on_gpu = self.task.x.is_cuda
        return torch.optim.Adam(
            self.parameters.values(), lr=self.config.learning_rate, weight_decay=decay, fused=True, capturable=on_gpu
        )

    def _step(self) -> None:
        self.optimizer.zero_grad()
        self.model.train()
        questions = self.questions
        assert questions is not None
        seen = self.training
        losses = vmap(
            self._loss,
            in_dims=(0, self.buffers.dims, seen.dims, seen.graph.dims, questions.dims, 0),
            randomness="different",
        )(self.parameters, self.buffers.values, seen.values, seen.graph.values, questions.values, self.penalties)
        losses.sum().backward()
        if self.decay is not None:
            for parameter in self.parameters.values():
                if parameter.grad is None:  # of no use to the loss
                    continue
                shape = (-1,) + (1,) * (parameter.dim() - 1)
                parameter.grad.addcmul_(self.decay.to(parameter.dtype).view(shape), parameter.detach())
        self.optimizer.step()
        self.losses.copy_(losses.detach())

    def _loss(
        self,
        parameters: Any,
        buffers: Any,
        kept: Any,
        graph: tuple[Any, ...],
        questions: tuple[Tensor, ...],
        weight: Tensor,
    ) -> Tensor:
        with self.products, giving(self.caches, kept):
            state = {f"model.{name}": value for part in (parameters, buffers) for name, value in part.items()}
            out, penalty = functional_call(self.wrapped, state, (*graph, self.has_penalty))
        loss = self.task.loss_of(out, *questions)
        return loss if penalty is None else loss + weight * penalty

    @torch.no_grad()
    def _answers(self) -> None:
        self.model.eval()
        seen = self.scoring
        answers = vmap(
            self._answer_one,
            in_dims=(0, self.buffers.dims, seen.dims, seen.graph.dims, self.scored.dims),
            randomness="different",
        )(self.parameters, self.buffers.values, seen.values, seen.graph.values, self.scored.values)
        self.model.train()
        if self.after is not None:
            self.after(answers, self.losses)

    def _answer_one(self, parameters: Any, buffers: Any, kept: Any, graph: Any, scored: Any) -> Tensor:
        with self.products, giving(self.caches, kept):
            out = functional_call(self.model, {**parameters, **buffers}, graph)
        return self.task.answers(out, *scored)


def bytes_per_member(members: "Sequence[Member]") -> int:
    """Returns about how much memory one more member takes: parameters with gradients and moments, its own features and
    graph, and what the backward pass needs, counted in a forward pass of the first.
    """
    member = members[0]
    state = sum(p.numel() * p.element_size() for p in member.model.parameters())
    own = {id(other.task.x) for other in members}
    features = member.task.x.numel() * member.task.x.element_size() if len(own) > 1 else 0
    known = {p.data_ptr() for p in member.model.parameters()} | {member.task.x.data_ptr()}
    saved: dict[int, int] = {}

    def count(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided and tensor.data_ptr() not in known:
            saved[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    training = member.model.training
    by_filter = rows_suffice(member.model, member.task)
    member.model.train()
    hooks = torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor)
    with torch.random.fork_rng(devices=[]), hooks:
        if by_filter:
            with left_out([member.model], member.task.x):
                member.task.outputs(member.model)
        else:
            member.task.loss(member.model, 1)
    member.model.train(training)
    shared = _shared_memory(members)
    passed = 2 * sum(size for place, size in saved.items() if place not in shared)
    rows = asked_bytes([m.model for m in members], [m.task for m in members]) if by_filter else 0
    # As they came and stacked; of a model that sees parts of its graph, for training and for evaluation.
    return 5 * state + (3 if is_local(member.model) else 2) * features + passed + rows


def _shared_memory(members: "Sequence[Member]") -> set[int]:
    """Returns where the tensors lie that the first model keeps of what is the same for all members."""
    graphs = [(member.task.x, member.task.edge_index, member.task.edge_weight) for member in members]
    given = {id(first) for first, *others in zip(*graphs, strict=True) if all(other is first for other in others)}
    found: set[int] = set()
    for cache in caches_of(members[0].model).values():
        last = cache.last()
        if last is not None and all(id(tensor) in given for tensor in last[0]):
            leaves = [leaf for leaf in pytree.tree_leaves(last[1]) if isinstance(leaf, Tensor)]
            given |= set(map(id, leaves))  # what is made of it is shared as well
            found |= {leaf.data_ptr() for leaf in leaves if leaf.layout == torch.strided}
    return found


class _WithPenalty(torch.nn.Module):
    """Output and penalty in one call, so that both see the same parameters."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, penalty: bool) -> Any:
        out = self.model(x, edge_index, edge_weight)
        return out, self.model.penalty() if penalty else None  # type: ignore[operator]


def _stacked_buffers(models: Sequence[torch.nn.Module]) -> Stack:
    """Stacks the buffers; exact filters of different degrees are filled up with zeros."""
    named = [dict(model.named_buffers()) for model in models]
    for name in named[0]:
        sizes = [buffers[name].shape for buffers in named]
        if all(size == sizes[0] for size in sizes):
            continue
        if not name.endswith("_chebyshev"):
            raise CannotStack(f"the buffers {name!r} of the members have different shapes")
        degree = max(size[0] for size in sizes)
        for buffers in named:
            more = degree - buffers[name].size(0)
            buffers[name] = torch.nn.functional.pad(buffers[name], (0, 0, 0, more))
    return stack(named)


def _is_fixed(model: torch.nn.Module, kept: dict[str, Stack]) -> bool:
    """Tells whether no layer makes a feature graph in every step in a way that a CUDA graph cannot capture."""
    for name, layer in model.named_modules():
        graph = getattr(layer, "feature_graph", None)
        if graph is not None and not graph.capturable and f"{name}._operands" not in kept:
            return False
    return True


def _captured(call: Callable[[], object]) -> Callable[[], object]:
    """Returns a call as a CUDA graph."""
    # An older graph that is collected while this one is captured would make the capture void. To collect before takes
    # as long as hundreds of steps, and there is nothing: a population that ends leaves nothing to collect, and one that
    # did not fit has been collected.
    collects = gc.isenabled()
    gc.disable()
    try:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call()
    finally:
        if collects:
            gc.enable()
    return graph.replay
