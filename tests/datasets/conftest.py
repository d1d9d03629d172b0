"""Fixtures: a tiny graph in Planetoid's format, and no network."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse
from torch_geometric.datasets import Planetoid

from bigcn.datasets import DATASETS, DatasetSpec, RawFile, fingerprint
from bigcn.datasets.files import sha256
from bigcn.datasets.graphs import build_graph, from_pyg


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Every test has a cache of its own, no mirror and no network."""

    def refuse(url: str, timeout: float) -> None:
        raise URLError("no network")

    monkeypatch.delenv("BIGCN_DATA", raising=False)
    monkeypatch.setenv("BIGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("bigcn.datasets.files.urlopen", refuse)
    return tmp_path / "cache"


def write_tiny(root: Path) -> None:
    """Writes a ring of 600 nodes as Planetoid's eight files."""
    nodes, test = 600, 10
    rng = np.random.default_rng(0)
    x = scipy.sparse.csr_matrix(rng.integers(0, 2, (nodes, 3)).astype(np.float32))
    y = np.eye(2, dtype=np.int32)[np.arange(nodes) % 2]
    ring = {node: [(node - 1) % nodes, (node + 1) % nodes] for node in range(nodes)}
    parts = {"x": x[:20], "tx": x[-test:], "allx": x[:-test], "y": y[:20], "ty": y[-test:], "ally": y[:-test]}
    raw = root / "Tiny" / "raw"
    raw.mkdir(parents=True)
    for part, content in {**parts, "graph": ring}.items():
        (raw / f"ind.tiny.{part}").write_bytes(pickle.dumps(content))
    (raw / "ind.tiny.test.index").write_text("".join(f"{node}\n" for node in range(nodes - test, nodes)))


def tiny_spec(root: Path) -> DatasetSpec:
    """The entry of the registry that accepts exactly the files that ``write_tiny`` left in ``root``."""
    build = from_pyg(Planetoid, "Tiny")
    files = {path.name: path.read_bytes() for path in sorted((root / "Tiny" / "raw").iterdir())}
    return DatasetSpec(
        name="tiny",
        title="Tiny",
        nodes=600,
        edges=600,
        features=3,
        classes=2,
        source="made up",
        licence="none",
        fingerprint=fingerprint(build_graph(build, "Tiny", files)),
        build=build,
        folder="Tiny",
        files=tuple(RawFile(name, f"https://example.org/{name}", (sha256(files[name]),)) for name in files),
        protocols=("authors", "public", "random"),
    )


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Registers the dataset ``tiny`` and returns a mirror that holds it."""
    mirror = tmp_path / "mirror"
    write_tiny(mirror)
    monkeypatch.setitem(DATASETS, "tiny", tiny_spec(mirror))
    return mirror


class Payload:
    """Creates a folder when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.target),)


@pytest.fixture
def payload() -> type[Payload]:
    return Payload


@pytest.fixture
def content() -> Callable[[Path], dict[Path, bytes]]:
    """A function that reads all files below a folder."""

    def read(folder: Path) -> dict[Path, bytes]:
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return read


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """A function that lets the network hold the files of a folder."""

    def start(folder: Path) -> None:
        def answer(url: str, timeout: float) -> BinaryIO:
            return (folder / url.rpartition("/")[2]).open("rb")

        monkeypatch.setattr("bigcn.datasets.files.urlopen", answer)

    return start
