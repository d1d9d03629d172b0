import pytest

from bigcn.experiments.own import OwnComparison, OwnResult, folder_name, is_own, own_result
from bigcn.experiments.records import RunResult, RunSpec


def pair(model: str, seed: int, accuracy: float):
    spec = RunSpec("node", "own:trees", "abc", "stratified", "clean", None, model, {}, seed, "cpu")
    return spec, RunResult(metrics={"accuracy": accuracy}, seconds=1.0, started="2026-03-01T12:00:00+00:00")


def test_names():
    assert is_own("own:cora")
    assert not is_own("cora")
    assert folder_name("../a b/c", "node") == "-a-b-c-node"
    assert folder_name("..", "link") == "graph-link"


def test_runs_side_by_side():
    result = own_result([pair("bigcn", 1, 0.8), pair("bigcn", 2, 0.9), pair("majority", 1, 0.25), pair("gcn", 1, 0.5)])
    assert isinstance(result, OwnResult)
    assert isinstance(result.comparison, OwnComparison)
    assert (result.comparison.models, result.comparison.seeds) == (("bigcn", "majority", "gcn"), (1, 2))
    assert result.verdict() == (
        "On trees, BiGCN gets 85.0 % of the test nodes right; beside it: the largest class alone 25.0 %, GCN 50.0 %."
    )
    assert [row["mean"] for row in result.rows()] == [pytest.approx(0.85), 0.25, 0.5]
    others = own_result([pair("bigcn", 1, 0.8), pair("sage", 1, 0.5), pair("of theirs", 1, 0.5)]).verdict()
    assert others.endswith("beside it: GraphSAGE 50.0 %, of theirs 50.0 %.")
    assert result.about == {}
