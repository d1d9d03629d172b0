"""Words on the command line that make no sense, and commands that are interrupted."""

import pytest


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("compare", "cora", "--seeds", "many"), "bigcn: invalid value for '--seeds': "),
        (("reproduce", "all", "--minutes", "few"), "bigcn: invalid value for '--minutes': "),
        (("train", "n", "e", "--dry-run", "--seed", str(2**63)), "bigcn: invalid value for '--seed': "),
        (("compare", "digits", "--seed", str(2**63)), "bigcn: invalid value for '--seed': "),
        (("partition", "n", "e", "--parts", "2", "-o", "s", "--seed", "9" * 30), "bigcn: invalid value for '--seed': "),
        (("partition", "n", "e", "--parts", "2", "-o", ""), "bigcn: invalid value for '--output' / '-o': "),
        (("links", "m", "n", "e", "--seed", str(2**64)), "bigcn: invalid value for '--seed': "),
        (("compare", "--sedes", "3"), "bigcn: no such option: --sedes"),
        (("comare",), "bigcn: no such command 'comare'"),
        (("train",), "bigcn: missing argument 'nodes'; see 'bigcn train --help'\n"),
    ],
)
def test_one_sentence_and_code_2(bigcn, words, sentence):
    outcome = bigcn(*words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(sentence)
    assert outcome.err.count("\n") == 1
    assert "--help'" in outcome.err


def test_no_words_show_the_help(bigcn):
    outcome = bigcn()
    assert "Learning on graphs" in outcome.out + outcome.err
    assert "bigcn: " not in outcome.err


def _interrupt(*args, **options):
    raise KeyboardInterrupt


def test_an_interruption_is_said(bigcn, monkeypatch):
    monkeypatch.setattr("bigcn.cli.compare.run_comparison", _interrupt)
    outcome = bigcn("compare", "digits")
    assert outcome.code == 130
    assert outcome.err.endswith(
        "bigcn: interrupted; finished runs are stored, and the same command goes on from there\n"
    )


def test_a_command_without_a_store_promises_nothing(bigcn, monkeypatch):
    monkeypatch.setattr("bigcn.cli.own.graph_from_options", _interrupt)
    outcome = bigcn("denoise", "nodes.csv", "edges.csv", "-o", "clean.csv")
    assert outcome.code == 130
    assert outcome.err == "bigcn: interrupted\n"


def test_tables_that_go_to_no_window_are_whole(bigcn):
    levels = ",".join(f"0.{level}" for level in range(10, 22))
    words = ("--models", "mlp,bigcn:spectral+exact+top=3", "--seeds", "1", "--max-epochs", "1")
    shown = bigcn("compare", "digits", "--case", "noise-level", "--values", levels, *words).out
    assert "…" not in shown
    row = next(line for line in shown.splitlines() if line.strip().startswith("MLP"))
    assert len(row.split()) >= 13
