"""Against scikit-learn, and against counting by hand."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss

from bigcn.datasets import Split
from bigcn.estimators.scoring import assess, assess_majority, assess_nodes, fit_temperature

GENERATOR = torch.Generator().manual_seed(0)
LABEL = torch.randint(0, 4, (300,), generator=GENERATOR)
LOGITS = 2 * torch.randn(300, 4, generator=GENERATOR).double() + 2 * torch.nn.functional.one_hot(LABEL, 4)


def test_agrees_with_scikit_learn():
    probabilities = torch.softmax(LOGITS, dim=1)
    predicted = probabilities.argmax(dim=1)
    report = assess(probabilities, LABEL)
    assert report["nodes"] == 300
    assert report["scores"]["accuracy"] == pytest.approx(accuracy_score(LABEL, predicted))
    assert report["scores"]["macro_f1"] == pytest.approx(f1_score(LABEL, predicted, average="macro"))
    assert report["scores"]["log_loss"] == pytest.approx(log_loss(LABEL, probabilities))
    matrix = np.zeros((4, 4), dtype=int)
    for truth, said, count in report["confusion"]:
        matrix[truth, said] = count
    assert (matrix == confusion_matrix(LABEL, predicted)).all()


def test_calibration_counted_by_hand():
    probabilities = torch.tensor([[0.95, 0.05], [0.91, 0.09], [0.55, 0.45], [0.35, 0.65], [0.0, 1.0]])
    report = assess(probabilities.double(), torch.tensor([0, 1, 0, 0, 1]))
    bins = {
        (row["from"], row["to"]): (row["nodes"], row["confidence"], row["accuracy"]) for row in report["reliability"]
    }
    assert bins[0.5, 0.6] == (1, pytest.approx(0.55), 1.0)
    assert bins[0.6, 0.7] == (1, pytest.approx(0.65), 0.0)
    assert bins[0.9, 1.0] == (3, pytest.approx((0.95 + 0.91 + 1) / 3), pytest.approx(2 / 3))
    expected = (0.45 + 0.65 + abs(0.95 + 0.91 + 1 - 2)) / 5
    assert report["scores"]["ece"] == pytest.approx(expected)


def test_temperature_is_found_again():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(20_000, 3, generator=generator).double() * 2
    label = torch.multinomial(torch.softmax(logits, dim=1), 1, generator=generator).view(-1)
    for temperature in (0.5, 1.0, 3.0):
        assert fit_temperature(logits * temperature, label) == pytest.approx(temperature, rel=0.05)


def test_a_few_right_answers_are_no_certainty():
    temperature = fit_temperature(torch.eye(3).double() * 5, torch.arange(3))
    assert 0.4 < temperature < 1


def test_test_nodes_have_no_say_in_the_temperature():
    split = Split("test", torch.arange(100), torch.arange(100, 200), torch.arange(200, 300))
    first = assess_nodes(LOGITS, LABEL, split)
    other = torch.where(torch.arange(300) >= 200, (LABEL + 1) % 4, LABEL)
    second = assess_nodes(LOGITS, other, split)
    assert first["temperature"] == second["temperature"]
    assert first["val_scores"] == second["val_scores"]
    assert first["scores"]["accuracy"] > second["scores"]["accuracy"]
    probabilities = torch.softmax(LOGITS[200:] / first["temperature"], dim=1)
    assert first["scores"]["log_loss"] == pytest.approx(log_loss(LABEL[200:], probabilities))


def test_majority():
    label = torch.tensor([0, 1, 1, 1, 0, 1, 0, 0, 1])
    split = Split("test", torch.arange(4), torch.arange(4, 6), torch.arange(6, 9))
    report = assess_majority(label, split, 2)
    assert report["scores"]["accuracy"] == pytest.approx(1 / 3)
    assert report["reliability"] == [
        {"from": 0.7, "to": 0.8, "nodes": 3, "confidence": 0.75, "accuracy": pytest.approx(1 / 3)}
    ]
