import json


def test_lists_what_there_is(bigcn, monkeypatch, tmp_path):
    monkeypatch.setenv("BIGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BIGCN_DATA", raising=False)
    table = bigcn("datasets").out
    assert "digits" in table
    assert "embedded" in table
    assert "2,708" in table
    assert "absent" in table
    rows = {row["graph"]: row for row in json.loads(bigcn("datasets", "--json").out)["rows"]}
    assert rows["digits"]["where"] == "embedded"
    assert rows["cora"] == {
        "graph": "cora", "nodes": 2708, "edges": 5278, "features": 1433, "classes": 7, "where": "absent",
        "path": rows["cora"]["path"], "bytes": rows["cora"]["bytes"], "verified": rows["cora"]["verified"],
        "problem": rows["cora"]["problem"],
    }  # fmt: skip


def test_downloads_from_the_mirror_and_verifies(bigcn, monkeypatch, tmp_path, benchmark_data):
    monkeypatch.setenv("BIGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    assert bigcn("datasets", "download", "cora").code == 0
    monkeypatch.delenv("BIGCN_DATA")
    outcome = bigcn("datasets", "verify", "cora")
    assert outcome.code == 0
    assert "yes" in outcome.out
    file = next((tmp_path / "cache").rglob("ind.cora.allx"))
    file.write_bytes(file.read_bytes()[:-10])
    broken = bigcn("datasets", "verify", "cora")
    assert broken.code == 2
    assert "ind.cora.allx" in broken.err
