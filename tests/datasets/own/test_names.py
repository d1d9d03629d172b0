"""What a graph is called."""

from pathlib import Path

from bigcn import read_graph


def test_a_table_that_is_just_called_nodes_has_the_name_of_its_folder(tmp_path, monkeypatch):
    folder = tmp_path / "wine"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for file in ("nodes.csv", "bottles.csv"):
        Path(file).write_text("id,size\na,1\nb,2\n")
    Path("edges.csv").write_text("source,target\na,b\n")

    def name(nodes: str) -> str:
        return read_graph(nodes, folder / "edges.csv").name

    assert name(str(folder / "nodes.csv")) == "wine"
    assert name(str(folder / "bottles.csv")) == name("bottles.csv") == "bottles"
    # Where the program runs is no part of a graph.
    assert name("nodes.csv") == name("./nodes.csv") == "nodes"
    assert name("../wine/nodes.csv") == "wine"
