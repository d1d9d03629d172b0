from pathlib import Path

import pytest

from bigcn.datasets.own import InputError, read_graph


@pytest.fixture
def read(tmp_path):
    """Reads a graph from the text of its tables."""

    def from_text(
        nodes: str, edges: str = "source,target\n", nodes_name="nodes.csv", edges_name="edges.csv", **options
    ):
        paths: list[Path] = []
        for name, text in ((nodes_name, nodes), (edges_name, edges)):
            (tmp_path / name).write_bytes(text.encode())
            paths.append(tmp_path / name)
        return read_graph(*paths, **options)

    return from_text


@pytest.fixture
def refused():
    """Returns what is said about a file; another kind of error lets the test fail, with its traceback."""

    def message(*arguments, **options) -> str:
        with pytest.raises(InputError) as caught:
            read_graph(*arguments, **options)
        said = str(caught.value)
        assert "\n" not in said
        assert len(said) < 500
        return said

    return message
