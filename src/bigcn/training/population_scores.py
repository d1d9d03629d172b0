"""What is remembered of every member of a population: its last best epoch, and when it ended."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bigcn.tasks.base import Task
from bigcn.training.config import TrainResult
from bigcn.training.population_state import PopulationStep
from bigcn.training.stacking import CannotStack

if TYPE_CHECKING:
    from bigcn.training.population import Member


class Evaluation:
    """Remembers the last best epoch of every member, on the device, without ever waiting for it.

    Args:
        members (Sequence[Member]): The members.
        step (PopulationStep): What trains them.
    """

    def __init__(self, members: "Sequence[Member]", step: PopulationStep) -> None:
        self.step, self.config = step, step.config
        device, size = step.members.device, len(members)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.active = torch.ones(size, dtype=torch.bool, device=device)
        self.best_score = torch.full((size,), -math.inf, dtype=torch.float64, device=device)
        self.best_epoch, self.ended = (torch.zeros(size, dtype=torch.int64, device=device) for _ in range(2))
        self.failed = torch.zeros(size, dtype=torch.bool, device=device)
        self.loss = torch.zeros(size, dtype=torch.float64, device=device)
        self.best_answers: Tensor | None = None
        self.keep_state = self.config.restore_best
        self.best_state = {name: p.detach().clone() for name, p in step.parameters.items()} if self.keep_state else {}
        self.judge: Callable[[Tensor], Tensor] = _judge(step.tasks)
        self.curves: list[tuple[int, Tensor, Tensor, Tensor]] = []
        self._done: dict[int, dict[str, Any]] = {}
        step.after = self._remember

    def run(self, epoch: int) -> None:
        """Evaluates all members."""
        self.epoch.fill_(epoch)
        self.step.evaluate()
        if self.config.curves:
            losses = self.step.losses.clone(), self.score.clone()
            self.curves.append((epoch, self.step.members, *losses))

    def _remember(self, answers: Tensor, losses: Tensor) -> None:
        score = self.judge(answers)
        if self.best_answers is None:
            self.best_answers, self.score = torch.zeros_like(answers), torch.zeros_like(score)
        self.score.copy_(score)
        broken = self.active & ~torch.isfinite(losses)
        self.failed |= broken
        self.ended.copy_(torch.where(broken, self.epoch, self.ended))
        self.loss.copy_(torch.where(self.active, losses.double(), self.loss))
        self.active &= ~broken
        better = self.active & (score >= self.best_score)
        self.best_score.copy_(torch.where(better, score, self.best_score))
        self.best_epoch.copy_(torch.where(better, self.epoch, self.best_epoch))
        self.best_answers.copy_(torch.where(better.unsqueeze(1), answers, self.best_answers))
        for name, best in self.best_state.items():
            shape = (-1,) + (1,) * (best.dim() - 1)
            best.copy_(torch.where(better.view(shape), self.step.parameters[name].detach(), best))
        if self.config.patience is not None:
            out_of_patience = self.active & (self.epoch - self.best_epoch >= self.config.patience)
            self.ended.copy_(torch.where(out_of_patience, self.epoch, self.ended))
            self.active &= ~out_of_patience

    def drop(self, active: Tensor) -> None:
        """Puts away what is known of the members that are done."""
        self._put_away()
        for name in ("active", "best_score", "best_epoch", "ended", "failed", "loss", "best_answers", "score"):
            setattr(self, name, getattr(self, name)[active])
        self.best_state = {name: best[active] for name, best in self.best_state.items()}
        self.judge = _judge([self.step.tasks[self.step._indices[i]] for i in active.tolist()])

    def finish(self, epoch: int) -> None:
        """Puts away what is known of the others, which end with this epoch."""
        self.ended.copy_(torch.where(self.active, epoch, self.ended))
        self._put_away()
        self.step.after = None  # it leads back here, and nothing should have to be collected for memory to be free

    def _put_away(self) -> None:
        columns = {
            name: getattr(self, name).cpu()
            for name in ("active", "best_score", "best_epoch", "ended", "failed", "loss", "best_answers")
        }
        for row, member in enumerate(self.step._indices):
            self._done[member] = {name: column[row] for name, column in columns.items()}
            self._done[member]["state"] = {name: best[row] for name, best in self.best_state.items()}

    def outcome(self, index: int, member: "Member", seconds: float) -> TrainResult | FloatingPointError:
        """Returns the result of a member, as if it had been trained alone."""
        known = self._done[index]
        epochs, patience = int(known["ended"]), self.config.patience
        if bool(known["failed"]):
            return FloatingPointError(f"training diverged: the loss is {float(known['loss'])} in epoch {epochs}")
        scores = member.task.scores(known["best_answers"])
        best_epoch = int(known["best_epoch"])
        curves: dict[str, list[float]] = {}
        if self.config.curves:
            rows = [
                (epoch, losses[at], score[at])
                for epoch, members, losses, score in self.curves
                if epoch <= epochs and len(at := (members == index).nonzero().view(-1)) > 0
            ]
            for column, key in enumerate(("epoch", "loss", "score")):
                curves[key] = [float(row[column]) for row in rows]
        return TrainResult(
            best_epoch=best_epoch,
            epochs=epochs,
            score=scores["val"][member.task.monitor],
            metrics=scores["test"],
            val_metrics=scores["val"],
            seconds=seconds,
            stopped="patience" if patience is not None and epochs - best_epoch >= patience else "max_epochs",
            curves=curves,
        )

    def restore(self, index: int, model: torch.nn.Module) -> None:
        """Puts the parameters of a member's best epoch into a model."""
        state = self._done[index]["state"]
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(state[name])
        model.eval()


def _judge(tasks: Sequence[Task]) -> Callable[[Tensor], Tensor]:
    """Returns how answers of all members are judged: at once where the right answers are the same for all."""
    first = tasks[0]
    if any(task.num_validated != first.num_validated for task in tasks):
        raise CannotStack("the members are validated on different numbers of answers")
    right = [answers for task in tasks if (answers := task.right_answers()) is not None]
    if all(answers is right[0] or torch.equal(answers, right[0]) for answers in right):
        return first.judge
    every = torch.stack(right)
    return lambda answers: first.judge(answers, every)
