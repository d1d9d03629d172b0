import json

COLUMNS = {"bench", "graph", "contender", "against", "ratio", "spread"}


def test_command(bigcn, tmp_path):
    outcome = bigcn("bench", "peers", "--graphs", "digits", "--rounds", "2", "--json", "-o", "bench.json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert all(row.keys() >= COLUMNS for row in document["rows"])
    assert json.loads((tmp_path / "bench.json").read_text()) == document
    quick = json.loads(bigcn("bench", "peers", "--quick", "--graphs", "digits", "--rounds", "2", "--json").out)
    assert {row["graph"] for row in quick["rows"]} == {"digits"}
    for words, part in (
        (("bench", "speed"), "speed"),
        (("bench", "peers", "--graphs", "nope"), "nope"),
        (("bench", "peers", "--quick", "--graphs", "nope"), "nope"),
        (("bench", "--rounds", "1"), "--rounds"),
    ):
        outcome = bigcn(*words)
        assert outcome.code == 2
        assert part in outcome.err
