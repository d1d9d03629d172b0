import dataclasses

import numpy as np
import pytest

from bigcn.datasets import load_dataset, make_split
from bigcn.experiments.comparison import Comparison, ComparisonResult
from bigcn.experiments.execution import run
from bigcn.experiments.records import RunResult, utc_now
from bigcn.nn.registry import get_model
from bigcn.noise import CASES, NoiseLevel
from bigcn.tasks import NodeClassification
from bigcn.training import TrainConfig, seeded, train

SHORT = {"max_epochs": 10}


def test_a_run_is_what_one_would_write_by_hand():
    comparison = Comparison(
        dataset="digits", models=("gcn",), case="noise-level", values=(0.4,), seeds=(7,), training=SHORT
    )
    (spec,) = comparison.specs()
    data = NoiseLevel(0.4, seed=7)(load_dataset("digits"))
    task = NodeClassification(data, make_split(data, "digits", "random", 7))
    model = get_model("gcn").model(64, out_channels=10, **spec.settings["model"])
    with seeded(7):
        model.reset_parameters()
    config = TrainConfig(learning_rate=0.01, weight_decay=5e-4, max_epochs=10, patience=100)
    expected = train(model, task, config, seed=7)
    assert run(spec).metrics["accuracy"] == expected.metrics["accuracy"]
    assert run(spec).metrics["val_accuracy"] == expected.score


def test_every_model_of_a_seed_sees_the_same_graph():
    comparison = Comparison(
        dataset="digits", models=("mlp", "gcn"), case="noise-level", values=(0.4, 0.5), seeds=(5, 10), training=SHORT
    )
    specs = comparison.specs()
    assert [(s.value, s.seed, s.model) for s in specs[:3]] == [(0.4, 5, "mlp"), (0.4, 5, "gcn"), (0.4, 10, "mlp")]
    assert len({spec.key for spec in specs}) == 8


def test_training_changes_make_other_runs():
    base = Comparison(dataset="digits", models=("gcn",), seeds=(5,))
    longer = dataclasses.replace(base, training={"weight_decay": 0.01})
    assert base.specs()[0].key != longer.specs()[0].key
    with pytest.raises(ValueError, match="momentum"):
        dataclasses.replace(base, training={"momentum": 1}).specs()


def fake(comparison: Comparison, table: dict[str, list[float]]) -> ComparisonResult:
    pairs = []
    for spec in comparison.specs():
        score = table[spec.model][comparison.seeds.index(spec.seed)]
        pairs.append((spec, RunResult(metrics={"accuracy": score}, seconds=1.0, started=utc_now())))
    return ComparisonResult(comparison, tuple(pairs))


def test_rows_mark_the_best_and_its_ties():
    comparison = Comparison(dataset="digits", models=("bigcn", "gcn", "mlp"), seeds=(1, 2, 3, 4))
    table = {"bigcn": [0.9, 0.8, 0.9, 0.8], "gcn": [0.88, 0.82, 0.87, 0.81], "mlp": [0.5, 0.4, 0.5, 0.4]}
    result = fake(comparison, table)
    rows = {row["model"]: row for row in result.rows()}
    assert [rows[name]["best"] for name in table] == [True, False, False]
    assert [rows[name]["tie"] for name in table] == [False, True, False]
    assert rows["gcn"]["mean"] == pytest.approx(np.mean(table["gcn"]))
    assert rows["gcn"]["std"] == pytest.approx(np.std(table["gcn"], ddof=1))
    verdict = result.verdict()
    assert "BiGCN is best with 85.0 %" in verdict
    assert "GCN cannot be told from it" in verdict
    assert "MLP, is 40.0 points behind" in verdict


def test_a_failed_run_is_told_and_not_counted():
    comparison = Comparison(dataset="digits", models=("gcn",), seeds=(1, 2))
    specs = comparison.specs()
    ok = RunResult(metrics={"accuracy": 0.5}, seconds=1.0, started=utc_now())
    failed = RunResult(metrics={}, status="failed", error="diverged", seconds=0.0, started=utc_now())
    result = ComparisonResult(comparison, ((specs[0], ok), (specs[1], failed)))
    assert result.rows()[0]["seeds"] == 1
    assert [spec.seed for spec, _ in result.failures()] == [2]
    assert ComparisonResult(comparison, ((specs[1], failed),)).verdict() == "No run succeeded."


def test_divergence_is_a_failed_run():
    comparison = Comparison(dataset="digits", models=("gin",), seeds=(1,), training={"learning_rate": 1e30} | SHORT)
    result = run(comparison.specs()[0])
    assert result.status == "failed"
    assert "diverged" in result.error


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"dataset": "nope"}, "nope"),
        ({"models": ()}, "'models'"),
        ({"models": ("bigcn", "what")}, "what"),
        ({"seeds": (1, 1)}, "'seeds'"),
        ({"values": (0.1,)}, "'values'"),
        ({"case": "noise-level"}, "'values'"),
        ({"case": "noise-level", "values": (-0.1,)}, "level"),
        ({"task": "graph"}, "'task'"),
        ({"task": "link", "protocol": "public"}, "'protocol'"),
        ({"task": "link", "case": "structure-mistakes", "values": (0.1,)}, "'case'"),
    ],
)
def test_bad_comparisons_are_refused(change, part):
    with pytest.raises(ValueError, match=part):
        Comparison(**{"dataset": "digits", "models": ("gcn",), **change})


def test_a_new_kind_of_noise_is_one_line_in_one_registry(monkeypatch):
    monkeypatch.setitem(CASES, "louder", NoiseLevel)
    comparison = Comparison(
        dataset="digits", models=("mlp", "bigcn:published"), case="louder", values=(0.5,), seeds=(1,)
    )
    assert fake(comparison, {"mlp": [0.5], "bigcn:published": [0.6]}).verdict().startswith("On Digits with louder 0.5,")
