"""Reading a graph as another one was read, for a model that was trained on that."""

import statistics

import pytest

from bigcn.datasets.own import Column, Encoding, InputError

NODES = "id,size,colour,member,kind\na,1,red,yes,u\nb,2,blue,no,v\nc,6,red,no,\n"
EDGES = "source,target\na,b\n"


def test_reads_with_the_stored_encoding(read):
    encoding = read(NODES, EDGES, label="kind").encoding
    other = read(
        "kind,member,extra,size,id,colour\nv,1,5,9,k,blue\n,,7,3,l,\n", "source,target,weight\nk,l,2\n",
        like=Encoding.from_dict(encoding.to_dict()), missing="fill",
    )  # fmt: skip
    assert other.encoding == encoding
    assert other.feature_names == ("size", "colour=blue", "colour=red", "member")
    assert other.data.x[0].tolist() == pytest.approx([(9 - 3) / statistics.pstdev([1, 2, 6]), 1, 0, 1])
    assert other.data.y.tolist() == [1, -1]
    assert other.data.edge_weight is None
    assert any("'extra'" in warning for warning in other.summary.warnings)
    assert any("weights" in warning for warning in other.summary.warnings)


def test_what_training_left_out_is_no_news(read):
    nodes = "id,size,date,note,kind,split\n" + "".join(
        f"n{i},{i}.5,2026-01-0{i + 1},,{kind},{part}\n"
        for i, (kind, part) in enumerate(zip("uvuvuv", ["train", "val", "test"] * 2, strict=True))
    )
    edges = "source,target\nn0,n1\n"
    encoding = Encoding.from_dict(read(nodes, edges, label="kind").encoding.to_dict())
    assert encoding.unused == ("date", "note")
    assert read(nodes, edges, label="kind", features=["size"]).encoding.unused == ("date", "note")
    assert not read(
        "id,size,date\nk,1,2026-02-01\nl,2,2026-02-02\n", "source,target\nk,l\n", like=encoding
    ).summary.warnings
    for rest, said in (("x", "'x', which was left out."), ("x,y", "'x', 'y', which were left out.")):
        row = ",".join("1" for _ in rest.split(","))
        other = read(f"id,size,date,{rest}\nk,1,2026-02-01,{row}\nl,2,,{row}\n", "source,target\nk,l\n", like=encoding)
        assert other.summary.warnings == (f"The model does not know {said}",)
    old = {key: value for key, value in encoding.to_dict().items() if key != "unused"}
    assert Encoding.from_dict(old).unused == ()


def test_labels_are_not_needed(read):
    encoding = read(NODES, EDGES, label="kind").encoding
    other = read("id,size,colour,member\nk,9,blue,no\n", like=encoding)
    assert other.data.y is None
    assert other.classes == ("u", "v")


def test_the_names_of_the_columns_are_remembered(read):
    encoding = read(NODES.replace("id", "key", 1), "s,t,w\na,b,1\n", id="key", source="s", target="t",
                    weight="w").encoding  # fmt: skip
    other = read("key,size,colour,member,kind\nk,9,blue,no,u\nl,9,blue,no,v\n", "s,t,w\nk,l,3\n", like=encoding)
    assert other.data.edge_weight.tolist() == [3, 3]
    with pytest.raises(InputError, match="no column 'w'"):
        read("key,size,colour,member,kind\nk,9,blue,no,u\n", "s,t\nk,k\n", like=encoding)


@pytest.mark.parametrize(
    ("nodes", "fragments"),
    [
        ("id,colour,sise\nk,blue,3\n", ["lacks 'size', 'member'", "has 'sise'"]),
        ("id,size,colour,member\nk,big,blue,no\n", ["row 2, column 'size': 'big' is not a number"]),
        ("id,size,colour,member\nk,1,green,no\n", ["row 2, column 'colour'", "'green'", "'blue', 'red'"]),
        ("id,size,colour,member\nk,1,blue,2\n", ["row 2, column 'member'", "2"]),
        ("id,size,colour,member\nk,big,green,maybe\n", ["'big'", "'green'", "'maybe'"]),
        ("id,size,colour,member,kind\nk,1,blue,no,w\n", ["row 2, column 'kind'", "'w'", "'u', 'v'"]),
    ],
)
def test_refuses_what_differs(read, nodes, fragments):
    encoding = read(NODES, EDGES, label="kind").encoding
    with pytest.raises(InputError) as caught:
        read(nodes, like=encoding)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_other_features_than_the_models(read):
    encoding = read(NODES, EDGES, label="kind").encoding
    with pytest.raises(InputError, match="was trained on"):
        read(NODES, EDGES, like=encoding, features=["size"])


def test_a_split_that_is_not_whole_is_no_matter(read):
    encoding = read(NODES, EDGES, label="kind").encoding
    assert read("id,size,colour,member,split\nk,9,blue,no,test\n", like=encoding).split is None


def test_a_slip_in_a_split_that_is_of_no_use_is_no_matter(read):
    encoding = read(NODES, EDGES, label="kind").encoding
    rows = "".join(f"{i},9,blue,no,{part}\n" for i, part in enumerate(["train", "val", "test", "tset"]))
    assert read("id,size,colour,member,split\n" + rows, like=encoding).split is None


def test_a_column_that_is_empty_now(read):
    encoding = Encoding((Column("x", "number", 5.0, 2.0), Column("c", "category", categories=("a", "b"))))
    graph = read("id,x,c\nk,,a\nl,,b\n", "source,target\nk,l\n", like=encoding)
    assert graph.data.x[:, 0].tolist() == [0, 0]
