from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import pytest
from torch_geometric.utils import to_networkx

from bigcn.datasets import digits, make_split
from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.own import count_test_nodes, own_result
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.report.grid import grid_of
from bigcn.report.lonely import lonely
from bigcn.report.page import render_page


def own(counts: dict[str, int] | None, **scores: tuple[float, float]) -> ComparisonResult:
    """Models on a graph of one's own, by their scores on nodes with few neighbours and with none."""
    pairs = []
    for model, (few, none) in scores.items():
        metrics = {"accuracy": 0.9, "accuracy_low_degree": few, "accuracy_isolated": none}
        details = {"own": {"test_nodes": counts}} if counts and model == "bigcn" else {}
        spec = RunSpec("node", "own:trees", "abc", "stratified", "clean", None, model, {}, 1, "cpu")
        pairs.append((spec, RunResult(metrics=metrics, seconds=1.0, started="2026-03-01T12:00:00Z", details=details)))
    return own_result(pairs)


def stars(shown: dict, column: int) -> list[str]:
    return [row["name"] for row in shown["rows"] if row["cells"][column]["best"]]


def test_few_nodes_are_left_out_with_a_word() -> None:
    result = own(
        {"accuracy": 1300, "accuracy_low_degree": 40, "accuracy_isolated": 9}, bigcn=(0.5, 0.0), gcn=(0.4, 0.0)
    )
    shown = lonely(result, grid_of(result))
    assert shown["headings"] == ["all 1,300 test nodes", "at most 2 neighbours: 40 nodes"]
    assert shown["left_out"] == "no neighbour (9)"
    assert [len(row["cells"]) for row in shown["rows"]] == [2, 2]
    result = own({"accuracy": 1300, "accuracy_low_degree": 9, "accuracy_isolated": 2}, bigcn=(0.5, 0.0), gcn=(0.4, 0.0))
    assert lonely(result, grid_of(result)) is None


@pytest.mark.parametrize("counts", [{"accuracy": 1300, "accuracy_low_degree": 40, "accuracy_isolated": 10}, None])
def test_nobody_is_best_where_all_are_equal(counts) -> None:
    result = own(counts, bigcn=(0.5, 0.0), gcn=(0.4, 0.0), mlp=(0.5, 0.0))
    shown = lonely(result, grid_of(result))
    assert shown["headings"][2] == ("no neighbour: 10 nodes" if counts else "no neighbour")
    assert stars(shown, 1) == ["BiGCN", "MLP"]
    assert stars(shown, 2) == []
    assert shown["equal"]
    # The first column is that of the table above, where all that are equal are best.
    assert stars(shown, 0) == ["BiGCN", "GCN", "MLP"]
    assert not any(cell["tie"] for row in shown["rows"] for cell in row["cells"])
    alone = own(counts, bigcn=(0.5, 0.1))
    assert stars(lonely(alone, grid_of(alone)), 2) == ["BiGCN"]


def test_nodes_are_counted_as_networkx_counts() -> None:
    data = digits()
    test = make_split(data, "digits", "random", 5).test
    degrees = [nx.degree(to_networkx(data, to_undirected=True))[node] for node in test.tolist()]
    assert count_test_nodes(data, test) == {
        "accuracy": len(degrees),
        "accuracy_low_degree": sum(degree <= 2 for degree in degrees),
        "accuracy_isolated": sum(degree == 0 for degree in degrees),
    }


def test_headings_say_how_many_nodes(make_result: Callable[..., ComparisonResult]) -> None:
    result = make_result(seeds=(10, 15))
    data = digits()
    parts = [make_split(data, "digits", result.comparison.protocol, seed).test for seed in (10, 15)]
    low = sorted(count_test_nodes(data, part)["accuracy_low_degree"] for part in parts)
    shown = lonely(result, grid_of(result))
    assert shown["headings"] == [
        f"all {len(parts[0]):,} test nodes",
        f"at most 2 neighbours: {low[0]} to {low[1]} nodes",
    ]
    unknown = lonely(result, grid_of(result), at_hand=False)
    assert unknown["headings"] == ["all test nodes", "at most 2 neighbours", "no neighbour"]
    assert unknown["left_out"] == ""


def test_a_split_may_have_no_such_nodes(make_result: Callable[..., ComparisonResult]) -> None:
    result = make_result(case="structure-mistakes", values=(0.001,))
    shown = lonely(result, grid_of(result))
    assert shown["headings"] == ["all test nodes", "at most 2 neighbours", "no neighbour (in 2 of 3 seeds)"]
    assert "no neighbour (in 2 of 3 seeds)" in render_page(result, "")


def test_runs_of_another_graph_are_not_counted(make_result: Callable[..., ComparisonResult]) -> None:
    result = make_result()
    pairs = tuple((replace(spec, dataset_fingerprint="of another"), run) for spec, run in result.pairs)
    page = render_page(ComparisonResult(result.comparison, pairs), "")
    assert "at most 2 neighbours</th>" in page
    assert "no neighbour (in 2 of 3 seeds)" in page
