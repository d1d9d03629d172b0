import math
import pickle
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from bigcn.experiments import records
from bigcn.experiments.records import RunResult, RunSpec, current_versions, describe_host, summarise, utc_now

SPEC = RunSpec("node", "cora", "f1", "public", "noise-level", 0.5, "gcn", {"lr": 0.01, "hidden": [16]}, 0, "cpu")
CHANGES = {
    "task": "link",
    "dataset": "Cora",
    "dataset_fingerprint": "f2",
    "protocol": "random",
    "case": "noise-rate",
    "value": None,
    "model": "gat",
    "settings": {"lr": 0.01, "hidden": [16], "dropout": 0.5},
    "seed": 1,
    "device": "cuda",
}


def done(accuracy=0.8, **changes):
    fixed = {"seconds": 1.5, "epochs": 7, "started": "2024-05-01T10:00:00+00:00", "versions": {}, "host": {}}
    return RunResult(**({"metrics": {"accuracy": accuracy}} | fixed | changes))


FAILED = done(metrics={}, status="failed", error="loss became NaN")


def test_key_is_pinned():
    # Results already stored are found by this key: if it has to change, so does KEY_FORMAT.
    assert records.KEY_FORMAT == 1
    assert SPEC.key == "598f09c7e6454b6f1642e1d4fb12a37a2c628a01a2e47c27920741c6980d2695"


def test_changes_name_every_field():
    assert tuple(CHANGES) == records.SPEC_FIELDS


@pytest.mark.parametrize("name", CHANGES)
def test_key_depends_on_every_field(name):
    other = replace(SPEC, **{name: CHANGES[name]})
    assert other.key != SPEC.key
    assert other != SPEC


def test_key_forgets_what_does_not_matter():
    def key(settings, value=0.5):
        return replace(SPEC, settings=settings, value=value).key

    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    assert key({"a": 1}) == key({"a": 1.0}) == key({"a": np.float64(1)}) == key({"a": np.int64(1)})
    assert key({"a": 0.0}) == key({"a": -0.0}) == key({"a": 0})
    assert key({"a": [1, 2]}) == key({"a": (1.0, 2.0)})
    assert key({}, value=1) == key({}, value=1.0)
    assert len({key({"a": a}) for a in (1, True, "1", None, [1], {"1": 1}, 1.5, math.nextafter(1, 2))}) == 8


def test_spec_is_a_value():
    assert replace(SPEC, settings=dict(SPEC.settings)) == SPEC
    assert len({SPEC, replace(SPEC), replace(SPEC, seed=1)}) == 2
    assert pickle.loads(pickle.dumps(SPEC)) == SPEC
    mine = {"layers": [1]}
    spec = replace(SPEC, settings=mine)
    mine["layers"].append(2)
    assert spec.settings == {"layers": [1]}


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "graph"},
        {"device": "cuda:0"},
        {"value": math.nan},
        {"value": math.inf},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": True},
        {"seed": 0.0},
        {"dataset": None},
        {"settings": [1]},
        {"settings": {"a": [math.nan]}},
        {"settings": {"a": -math.inf}},
        {"settings": {1: "a"}},
        {"settings": {"a": Path("b")}},
    ],
)
def test_bad_spec(changes):
    with pytest.raises(ValueError, match=r"\.$"):
        replace(SPEC, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": math.nan},
        {"status": "running"},
        {"status": "failed"},
        {"error": "but it is ok"},
        {"started": "2024-05-01T10:00:00"},
        {"started": "yesterday"},
        {"seconds": math.inf},
    ],
)
def test_bad_result(changes):
    with pytest.raises(ValueError, match=r"nan|running|error|start|Invalid isoformat|inf"):
        done(**changes)


def test_result_says_with_what_it_was_made():
    result = RunResult(metrics={"auc": np.float32(0.5)}, seconds=1, started=utc_now(), details={"loss": [1, math.nan]})
    assert result.versions == current_versions()
    assert {"bigcn", "python", "torch", "torch_geometric", "numpy"} <= set(result.versions)
    assert result.host == describe_host()
    assert {"platform", "cpu"} <= set(result.host)
    assert "/" not in result.host["platform"]
    assert datetime.fromisoformat(result.started).utcoffset() == timedelta(0)
    assert result.details == {"loss": [1, None]}
    assert done(started="2024-05-01T12:00:00+02:00") == done(started="2024-05-01T10:00:00+00:00")


def test_summarise_one_seed_twice():
    (row,) = summarise([(SPEC, done(0.1)), (SPEC, done(0.3))])
    assert (row["mean"], row["std"], row["seeds"]) == (0.3, 0.0, 1)
    assert summarise([(SPEC, FAILED)]) == summarise([]) == []


def test_summarise_keeps_what_differs_apart():
    tuned = replace(SPEC, settings={"lr": 1})
    rows = summarise([(SPEC, done(0.1)), (tuned, done(0.3)), (replace(SPEC, value=1), done(0.2))])
    assert [row["mean"] for row in rows] == [0.1, 0.3, 0.2]
    names = [row["model"] for row in rows]
    assert names[0] == names[2] != names[1]
    assert all(name.startswith("gcn [settings ") for name in names)
    names = [row["model"] for row in summarise([(SPEC, done()), (replace(SPEC, device="cuda"), done())])]
    assert names == ["gcn [cpu]", "gcn [cuda]"]
    # Settings that follow the value, the case or the dataset are no clash.
    apart = [SPEC, *(replace(tuned, **{name: CHANGES[name]}) for name in ("value", "case", "dataset"))]
    assert {row["model"] for row in summarise((spec, done()) for spec in apart)} == {"gcn"}
