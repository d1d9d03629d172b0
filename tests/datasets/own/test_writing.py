"""Tables that are written whole or not at all, and read as they were."""

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import Split, digits
from bigcn.datasets.own import InputError, read_graph, write_graph, write_table
from bigcn.datasets.own.tables import open_table
from bigcn.datasets.own.writing import carried

ENDINGS = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet")


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_reads_the_same(ending, read, tmp_path):
    graph = read(
        'id,age,colour,member,kind,split\na,1.5,red,yes,u,train\n"b,c",,"q""x",no,v,val\nd,-7,red,,u,test\n01,3,,yes,,\n',
        "source,target,weight\na,d,0.1\nd,01,3\nd,a,1\n",
        label="kind",
    )
    nodes, edges = tmp_path / "out" / f"n.{ending}", tmp_path / "out" / f"e.{ending}"
    write_graph(graph, nodes, edges)
    again = read_graph(nodes, edges, label="kind", name="nodes")
    assert again.ids.tolist() == ["a", "b,c", "d", "01"]
    assert again.encoding.feature_names == graph.encoding.feature_names
    assert again.encoding.columns[1:] == graph.encoding.columns[1:]
    assert torch.equal(again.missing, graph.missing)
    assert torch.allclose(again.data.x, graph.data.x, atol=1e-5)
    assert torch.equal(again.data.edge_index, graph.data.edge_index)
    assert torch.equal(again.data.edge_weight, graph.data.edge_weight)
    assert torch.equal(again.data.y, graph.data.y)
    assert again.split.val.tolist() == [1]
    assert (again.summary.duplicates, again.summary.edges) == (0, 2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_data_of_pyg(ending, tmp_path):
    data = digits()
    split = Split("mine", torch.tensor([3, 1]), torch.tensor([2]), torch.tensor([0]))
    write_graph(data, tmp_path / f"n.{ending}", tmp_path / f"e.{ending}", split=split, classes=list("abcdefghij"))
    again = read_graph(tmp_path / f"n.{ending}", tmp_path / f"e.{ending}", label="label", standardize=False)
    assert torch.equal(again.data.x, data.x)
    assert torch.equal(again.data.edge_index, data.edge_index)
    assert torch.equal(again.data.y, data.y)
    assert again.classes[3] == "d"
    assert again.split.train.tolist() == [1, 3]


def test_what_stood_there_stays_if_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("before")

    def full(self, target, **options):
        target.write_text("half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match="No space"):
        write_table(pd.DataFrame({"a": [1]}), path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_the_same_table_is_the_same_file(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    first = write_table(frame, tmp_path / "a.csv.gz").read_bytes()
    assert write_table(frame, tmp_path / "a.csv.gz").read_bytes() == first


def test_a_column_that_is_carried_has_decimal_points(tmp_path):
    cells = {
        "numbers": ["0,50", "NA", "", "-1e3", "2.5"] + ["1,25"] * 20,
        "slip": ["1,5", "a,b", "3", "", "NA"] + ["1,25"] * 20,
        "words": ["1,5", "a,b", "c", "", "1"] * 5,
        "empty": [""] * 25,
    }
    pd.DataFrame({"id": range(25), **cells}).to_csv(tmp_path / "n.csv", sep=";", index=False)
    table = open_table(tmp_path / "n.csv", "", ["id"])
    assert carried(table, "numbers").tolist() == ["0.50", "NA", "", "-1e3", "2.5"] + ["1.25"] * 20
    assert carried(table, "slip").tolist() == ["1.5", "a,b", "3", "", "NA"] + ["1.25"] * 20
    assert carried(table, "words").tolist() == cells["words"]
    assert carried(table, "empty").tolist() == cells["empty"]
    pd.DataFrame(cells).to_csv(tmp_path / "n.csv", index=False)  # where a comma separates, "1,5" is a text
    assert carried(open_table(tmp_path / "n.csv", "", ["numbers"]), "numbers").tolist() == cells["numbers"]


def test_mistakes(tmp_path):
    with pytest.raises(InputError, match=r"t\.xlsx: a table is written as"):
        write_table(pd.DataFrame(), tmp_path / "t.xlsx")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="folder"):
        write_table(pd.DataFrame(), tmp_path / "folder.csv")
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="'id'"):
        write_graph(data, tmp_path / "n.csv", tmp_path / "e.csv", feature_names=["id"])
    with pytest.raises(ValueError, match="must name the 1 features"):
        write_graph(data, tmp_path / "n.csv", tmp_path / "e.csv", feature_names=["a", "b"])
    assert not (tmp_path / "n.csv").exists()
