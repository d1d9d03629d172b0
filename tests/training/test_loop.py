"""The loop against a scripted task, and against the digits."""

import copy
import dataclasses

import pytest
import torch

from bigcn.datasets import digits, make_split
from bigcn.nn.registry import ModelContext, get_model
from bigcn.noise import NoiseLevel
from bigcn.tasks import LinkPrediction, NodeClassification, Task
from bigcn.training import TrainConfig, seeded, train


class Script(Task):
    """Scores that were written down before; the loss drives the only parameter up by one step an epoch."""

    name = "node"
    monitor = "accuracy"
    num_outputs = 1
    questions = loss_of = scored = answers = judge = scores = None  # the loop asks for loss and scores alone

    def __init__(self, scores, losses=None):
        self.x = torch.zeros(1)
        self.written, self.losses, self.evaluations, self.epochs = list(scores), losses, 0, []

    def loss(self, model, epoch=0):
        assert model.training
        self.epochs.append(epoch)
        return -model.weight.sum() if self.losses is None else model.weight.sum() * 0 + self.losses[epoch - 1]

    def evaluate(self, model):
        score = self.written[self.evaluations]
        self.evaluations += 1
        return {"val": {"accuracy": score}, "test": {"accuracy": float(self.evaluations)}}


class One(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))


def config(**changes):
    return TrainConfig(**({"learning_rate": 1.0, "weight_decay": 0.0, "max_epochs": 6, "patience": None} | changes))


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.1, 0.2, 0.3, 0.2, 0.1, 0.0], 3),
        ([0.1, 0.5, 0.3, 0.5, 0.4, 0.2], 4),  # a tie counts as an improvement
        ([0.5] * 6, 6),
        ([0.5, 0.1, 0.1, 0.1, 0.1, 0.1], 1),
    ],
)
def test_the_last_best_epoch_wins(scores, best):
    result = train(One(), Script(scores), config())
    assert (result.best_epoch, result.epochs, result.stopped) == (best, 6, "max_epochs")
    assert result.score == max(scores)
    assert result.val_metrics == {"accuracy": max(scores)}
    assert result.metrics == {"accuracy": float(best)}


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_counts_epochs_since_the_last_best(patience):
    scores = [0.1, 0.3, 0.2, 0.3, 0.2, 0.1, 0.0, 0.9]
    result = train(One(), Script(scores), config(patience=patience, max_epochs=8))
    stops = {1: 3, 2: 6, 3: 7}
    assert (result.epochs, result.stopped) == (stops[patience], "patience")
    assert result.best_epoch == (2 if patience == 1 else 4)


def test_patience_may_outlast_everything():
    assert train(One(), Script([0.5, 0.1, 0.1]), config(patience=3, max_epochs=3)).stopped == "max_epochs"


@pytest.mark.parametrize(("every", "expected"), [(1, 7), (2, 4), (3, 3), (10, 1)])
def test_evaluations_are_spaced_and_the_last_epoch_is_evaluated(every, expected):
    task = Script([0.1] * 10)
    result = train(One(), task, config(evaluate_every=every, max_epochs=7, curves=True))
    assert task.evaluations == expected
    assert result.curves["epoch"][-1] == 7
    assert task.epochs == list(range(1, 8))


def test_patience_between_evaluations():
    task = Script([0.5, 0.1, 0.1, 0.1])
    result = train(One(), task, config(evaluate_every=2, patience=3, max_epochs=100))
    assert (result.best_epoch, result.epochs) == (2, 6)


def test_the_best_state_is_restored():
    model = One()
    train(model, Script([0.1, 0.2, 0.9, 0.2, 0.1, 0.0]), config())
    assert model.weight.item() == pytest.approx(3.0, abs=1e-3)
    assert not model.training
    last = One()
    train(last, Script([0.1, 0.2, 0.9, 0.2, 0.1, 0.0]), config(restore_best=False))
    assert last.weight.item() == pytest.approx(6.0, abs=1e-3)


def test_curves_only_when_asked_for():
    scores = [0.1, 0.5, 0.3]
    assert train(One(), Script(scores), config(max_epochs=3)).curves == {}
    curves = train(One(), Script(scores), config(max_epochs=3, curves=True)).curves
    assert curves["epoch"] == [1, 2, 3]
    assert curves["score"] == scores
    assert curves["loss"] == pytest.approx([0.0, -1.0, -2.0], abs=1e-3)


def test_the_callback_sees_every_epoch_and_may_stop():
    seen = []

    def watch(progress):
        seen.append(progress)
        return progress.epoch == 4

    result = train(One(), Script([0.3, 0.2, 0.9]), config(evaluate_every=2), on_epoch=watch)
    assert [progress.epoch for progress in seen] == [1, 2, 3, 4]
    assert [progress.score for progress in seen] == [None, 0.3, None, 0.2]
    assert [progress.best_epoch for progress in seen] == [0, 2, 2, 2]
    assert (result.epochs, result.best_epoch, result.stopped) == (4, 2, "callback")


def test_stopping_before_the_first_evaluation_still_gives_a_result():
    result = train(One(), Script([0.3]), config(evaluate_every=5), on_epoch=lambda progress: True)
    assert (result.epochs, result.best_epoch, result.score) == (1, 1, 0.3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_divergence_is_an_error(bad):
    with pytest.raises(FloatingPointError, match="epoch 2"):
        train(One(), Script([0.1] * 3, losses=[1.0, bad, 1.0]), config(max_epochs=3))


def test_an_exception_leaves_the_generators_as_they_were():
    before = torch.get_rng_state()
    with pytest.raises(FloatingPointError):
        train(One(), Script([0.1], losses=[float("nan")]), config(deterministic=True))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"penalty": "much"}, "penalty"),
        ({"penalty": True}, "penalty"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"max_epochs": 1.5}, "max_epochs"),
        ({"patience": 0}, "patience"),
        ({"evaluate_every": 0}, "evaluate_every"),
        ({"evaluate_every": True}, "evaluate_every"),
    ],
)
def test_nonsense_is_refused(arguments, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        TrainConfig(**arguments)


def test_other_nonsense_is_refused():
    with pytest.raises(ValueError, match="'seed'"):
        train(One(), Script([0.1]), config(), seed=-1)
    with pytest.raises(ValueError, match="'seed'"):
        train(One(), Script([0.1]), config(), seed=0.5)
    with pytest.raises(ValueError, match="'model' has no parameters"):
        train(torch.nn.ReLU(), Script([0.1]), config())
    with pytest.raises(ValueError, match="'config'"):
        train(One(), Script([0.1]), {"max_epochs": 3})
    with pytest.raises(ValueError, match="'stream'"), seeded(0, stream="other"):
        pass


def test_the_papers_ways():
    node, link = TrainConfig.published("node"), TrainConfig.published("link", weight_decay=0.1)
    assert (node.max_epochs, node.patience, node.evaluate_every, node.weight_decay) == (10_000, 100, 1, 5e-4)
    assert (link.max_epochs, link.patience, link.evaluate_every, link.weight_decay) == (100, None, 10, 0.1)
    with pytest.raises(ValueError, match="'task'"):
        TrainConfig.published("graph")
    with pytest.raises(ValueError, match="epochs"):
        TrainConfig.published("node", epochs=3)


# With real models on the digits.


@pytest.fixture(scope="module")
def task():
    data = NoiseLevel(0.8, seed=1)(digits())
    return NodeClassification(data, make_split(data, seed=1))


def build(name, task, seed=1):
    spec = get_model(name)
    context = ModelContext("digits", "noise-level", task.name, task.num_features, task.num_outputs)
    with seeded(seed):
        return spec.build(context), dataclasses.asdict(spec.training(context))


def run(name, task, seed=1, epochs=6, **changes):
    model, training = build(name, task, seed)
    result = train(model, task, TrainConfig.published(task.name, **training, max_epochs=epochs, **changes), seed)
    state = {key: value.numpy().tobytes() for key, value in model.state_dict().items()}
    return result, state


def what_counts(result):
    return dataclasses.replace(result, seconds=0.0)


@pytest.mark.parametrize("name", ["bigcn", "bigcn:published", "bigcn:spectral", "gcn", "gat", "sage", "mlp"])
def test_two_runs_are_the_same_bit_for_bit(name, task):
    torch.manual_seed(0)
    first, first_state = run(name, task, curves=True)
    torch.manual_seed(12345)  # whatever was drawn before
    torch.rand(77)
    second, second_state = run(name, task, curves=True)
    assert what_counts(first) == what_counts(second)
    assert first_state == second_state
    other, other_state = run(name, task, seed=2, curves=True)
    assert other.curves["loss"] != first.curves["loss"]
    assert other_state != first_state


def test_link_prediction_is_the_same_bit_for_bit():
    task = LinkPrediction(digits(), seed=3)
    (first, first_state), (second, second_state) = (run("gcn", task, epochs=10) for _ in range(2))
    assert what_counts(first) == what_counts(second)
    assert first_state == second_state


def test_deterministic_algorithms_are_allowed_for_all(task):
    for name in ("bigcn", "bigcn:published", "gcn", "gat", "appnp"):
        run(name, task, epochs=2, deterministic=True)
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_generator_of_the_caller_is_left_alone(task):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    run("gcn", task)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_does_not_repeat_the_draws_of_the_weights():
    with seeded(3):
        weights = torch.rand(8)
    with seeded(3, stream="training"):
        dropout = torch.rand(8)
    assert not torch.equal(weights, dropout)


def test_restored_parameters_score_as_reported(task):
    model, training = build("gcn", task)
    result = train(model, task, TrainConfig.published("node", **training, max_epochs=40), seed=1)
    scores = task.evaluate(model)
    assert scores["test"] == result.metrics
    assert scores["val"] == result.val_metrics


class Nothing(Script):
    """A task that asks for nothing, so that only the penalty moves the parameters."""

    def loss(self, model, epoch=0):
        return sum(parameter.sum() for parameter in model.parameters()) * 0


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_penalty_reaches_the_logits(penalty, task):
    model, _ = build("bigcn:published", task)
    logits = [conv.feature_graph.packed_logits for conv in model.convs]
    before, norm = copy.deepcopy(logits), float(model.penalty().detach())
    train(model, Nothing([0.5] * 6), config(penalty=penalty, learning_rate=0.01), seed=1)
    first, second = (torch.equal(old, new) for old, new in zip(before, logits, strict=True))
    assert second  # the released code penalises the first layer alone
    assert first is (penalty == 0)
    assert (float(model.penalty().detach()) < norm - 1e-3) is (penalty > 0)


def test_models_without_a_penalty_do_not_mind_its_weight(task):
    model, training = build("gcn", task)
    train(model, task, TrainConfig.published("node", **training | {"penalty": 5.0}, max_epochs=2), seed=1)


def test_bigcn_reads_noisy_digits_that_a_perceptron_cannot():
    accuracy = {"mlp": [], "bigcn": [], "bigcn:exact+spectral": []}
    for seed in (1, 2, 3):
        data = NoiseLevel(0.8, seed=seed)(digits())
        task = NodeClassification(data, make_split(data, seed=seed))
        for name, found in accuracy.items():
            found.append(run(name, task, seed, epochs=40, restore_best=False)[0].metrics["accuracy"])
    mean = {name: sum(found) / 3 for name, found in accuracy.items()}
    assert mean["bigcn"] > mean["mlp"] + 0.15
    assert mean["bigcn:exact+spectral"] > mean["mlp"] + 0.15
