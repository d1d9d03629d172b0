import dataclasses

from bigcn.experiments.comparison import Comparison, run_comparison
from bigcn.experiments.store import RunStore
from bigcn.experiments.stored import stored_comparisons

SHORT = {"max_epochs": 10}


def test_the_store_gives_comparisons_back(tmp_path):
    comparison = Comparison(
        dataset="digits", models=("mlp", "sgc"), case="noise-rate", values=(0.2, 0.6), seeds=(5, 10), training=SHORT
    )
    with RunStore(tmp_path / "store.sqlite") as store:
        result = run_comparison(comparison, store)
        seen = []
        run_comparison(comparison, store, on_run=lambda spec, outcome, known: seen.append(known))
        assert all(seen)
        assert len(seen) == 8
        (again,) = stored_comparisons(list(store.rows()))
    assert sorted(again.rows(), key=str) == sorted(result.rows(), key=str)
    assert again.comparison.values == (0.2, 0.6)


def test_other_settings_make_another_comparison(tmp_path):
    short = Comparison(dataset="digits", models=("mlp", "sgc"), seeds=(5, 10), training=SHORT)
    longer = dataclasses.replace(short, training={"max_epochs": 20, "weight_decay": 0.0})
    with RunStore(tmp_path / "store.sqlite") as store:
        expected = [run_comparison(comparison, store).rows() for comparison in (short, longer)]
        found = stored_comparisons(list(store.rows()))
    assert [result.comparison.training for result in found] == [short.training, longer.training]
    for result, rows in zip(found, expected, strict=True):
        assert sorted(result.rows(), key=str) == sorted(rows, key=str)
        assert "best" in result.verdict()
        # The same comparison again would find its runs in the store.
        assert {spec.key for spec in result.comparison.specs()} == {spec.key for spec, _ in result.pairs}
