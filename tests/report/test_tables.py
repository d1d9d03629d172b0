import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report import comparison_table, markdown_table, text_table, write_csv


def on_terminal(result: ComparisonResult, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(comparison_table(result))
    return file.getvalue()


def test_text(make_result) -> None:
    lines = text_table(make_result(models=("gcn", "mlp"), values=(0.1, 0.9))).splitlines()
    assert lines[:6] == [
        "Digits, node classification, noise level",
        "",
        "model         0.1           0.9",
        "-----  ------------  ------------",
        "GCN    95.2 ± 0.4 *  91.2 ± 0.4 *",
        "MLP    90.9 ± 0.2    70.9 ± 0.2",
    ]
    assert lines[-1] == (
        "accuracy in percent, mean ± standard deviation over 3 seeds; columns: standard deviation of the noise; * best."
    )


def test_ties_and_failures_are_in_the_legend(make_result) -> None:
    text = text_table(make_result(seeds=(5,), failing=(("mlp", 0.9),)))
    assert "; one seed cannot tell models apart; " in text
    assert "≈" not in text
    assert "1 run of 12 failed." in text
    assert "±" not in text  # a single run has no spread


@pytest.mark.parametrize("count", [1, 3, 9])
def test_table_fits_a_terminal(make_result, count: int) -> None:
    shown = on_terminal(make_result(values=tuple(0.1 * (i + 1) for i in range(count))))
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "…" not in shown
    assert shown.partition("accuracy in percent")[0].count("±") == 4 * count  # none is cut off
    assert "95.2" in shown
    assert "*" in shown


def test_names_are_not_markup(nasty: ComparisonResult, make_result) -> None:
    assert "<script>alert(1)</script>" in on_terminal(nasty, width=300)
    bracketed = make_result(models=("gcn",))
    pairs = tuple((spec, run) for spec, run in bracketed.pairs)
    for spec, _ in pairs:
        object.__setattr__(spec, "model", "[bold]x[/nonsense]")
    assert "[bold]x[/nonsense]" in on_terminal(ComparisonResult(bracketed.comparison, pairs), width=200)


def test_markdown(make_result, nasty: ComparisonResult) -> None:
    lines = markdown_table(make_result(models=("gcn", "mlp"), values=(0.1,))).splitlines()
    assert lines[:4] == [
        "| model | 0.1 |",
        "| --- | ---: |",
        "| GCN | **95.2 ± 0.4 \\*** |",
        "| MLP | 90.9 ± 0.2 |",
    ]
    assert "<" not in markdown_table(nasty).replace("\\<", "")


def test_csv(result: ComparisonResult, make_result, tmp_path: Path, folder_is_tidy) -> None:
    assert write_csv(tmp_path / "rows.csv", result) == tmp_path / "rows.csv"
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0] == "model,dataset,task,case,value,protocol,metric,mean,std,seeds"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 12
    for row, known in zip(rows, result.rows(), strict=True):
        assert row["model"] == known["model"]
        assert float(row["mean"]) == known["mean"]  # every digit
        assert float(row["value"]) == known["value"]
    folder_is_tidy()

    write_csv(tmp_path / "rows.csv", make_result(case="clean", values=()))
    assert {row["value"] for row in csv.DictReader((tmp_path / "rows.csv").open(encoding="utf-8"))} == {""}
