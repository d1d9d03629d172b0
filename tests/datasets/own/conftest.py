from pathlib import Path

import pytest

from bigcn.datasets.own import read_graph


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
