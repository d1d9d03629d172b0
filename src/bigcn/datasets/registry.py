"""The registry: one entry a dataset. To add one, add a :class:`DatasetSpec` to :obj:`DATASETS`."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch_geometric.data import Data
from torch_geometric.datasets import Amazon, CitationFull, Planetoid

from bigcn.datasets.digits import FEATURE_NAMES, digits
from bigcn.datasets.graphs import from_pyg

NODES = "node_classification"
LINKS = "link_prediction"


@dataclass(frozen=True)
class RawFile:
    """One raw file of a dataset.

    Args:
        name (str): Its name in the dataset's ``raw`` folder.
        url (str): Where PyG downloads it.
        sums (tuple): The SHA-256 sums that are accepted; more than one where the same arrays are in
            circulation in differently compressed files.

    """

    name: str
    url: str
    sums: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """What is known about a dataset; each number is checked against the graph by the tests.

    Args:
        name (str): The name it is loaded by.
        title (str): The name for people.
        nodes (int): Number of nodes.
        edges (int): Number of undirected edges, without self-loops and duplicates.
        features (int): Number of features of a node.
        classes (int): Number of classes.
        source (str): Where it comes from.
        licence (str): The licence it is published under.
        fingerprint (str): The checksum of the graph (see :func:`~bigcn.datasets.fingerprint`).
        build (Callable): Builds the graph from a root folder with the raw files in it.
        folder (str): The dataset's folder below that root, as PyG calls it.
        files (tuple): The raw files; none for an embedded dataset.
        tasks (tuple): The tasks it serves in the experiments.
        protocols (tuple): The splits it has, the default one first.
        author_train (int, optional): Number of training nodes of the ``authors`` split where that split takes
            nodes in file order; without it that split is Planetoid's public one.
        by_content (bool): Whether a file with an unlisted sum may be opened and judged by the
            fingerprint of the graph in it. Only for formats that are read without unpickling.
        feature_names (tuple): A name for each feature, where there is one.

    """

    name: str
    title: str
    nodes: int
    edges: int
    features: int
    classes: int
    source: str
    licence: str
    fingerprint: str
    build: Callable[[Path], Data]
    folder: str = ""
    files: tuple[RawFile, ...] = ()
    tasks: tuple[str, ...] = (NODES, LINKS)
    protocols: tuple[str, ...] = ("random",)
    author_train: int | None = None
    by_content: bool = False
    feature_names: tuple[str, ...] = ()


def _planetoid(prefix: str, sums: Mapping[str, str]) -> tuple[RawFile, ...]:
    names = {part: f"ind.{prefix}.{part}" for part in sums}
    return tuple(RawFile(names[part], f"{Planetoid.url}/{names[part]}", (sums[part],)) for part in sums)


def _amazon(name: str, *sums: str) -> tuple[RawFile, ...]:
    return (RawFile(name, f"{Amazon.url}{name}", sums),)


_SPECS = (
    DatasetSpec(
        name="digits",
        title="Digits",
        nodes=1797,
        edges=5391,
        features=64,
        classes=10,
        source="UCI optical recognition of handwritten digits, as in scikit-learn; the graph is simulated",
        licence="CC BY 4.0",
        fingerprint="e0e6f8ff4f66aade0000dc093d0fd4eada99c06950e0dbf2f996fbc0e676d53b",
        build=lambda root: digits(),
        feature_names=FEATURE_NAMES,
    ),
    DatasetSpec(
        name="cora",
        title="Cora",
        nodes=2708,
        edges=5278,
        features=1433,
        classes=7,
        source="github.com/kimiyoung/planetoid",
        licence="MIT",
        fingerprint="054581281f824491b66228090279c3ea0b9dca5d70a8932845b0790c74de7f9f",
        build=from_pyg(Planetoid, "Cora"),
        folder="Cora",
        files=_planetoid(
            "cora",
            {
                "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
                "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
                "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
                "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
                "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
                "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
                "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
                "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
            },
        ),
        protocols=("authors", "public", "random"),
        # The released code tests on the nodes that follow, not on Planetoid's test nodes.
        author_train=140,
    ),
    DatasetSpec(
        name="citeseer",
        title="CiteSeer",
        nodes=3327,
        edges=4552,
        features=3703,
        classes=6,
        source="github.com/kimiyoung/planetoid",
        licence="MIT",
        fingerprint="53592a29d7103741f012ee1fa521be44d5e10d2d422b30cbdaec63aef14ddf68",
        build=from_pyg(Planetoid, "CiteSeer"),
        folder="CiteSeer",
        files=_planetoid(
            "citeseer",
            {
                "x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
                "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
                "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
                "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
                "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
                "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
                "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
                "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
            },
        ),
        protocols=("authors", "public", "random"),
    ),
    DatasetSpec(
        name="pubmed",
        title="PubMed",
        nodes=19717,
        edges=44324,
        features=500,
        classes=3,
        source="github.com/kimiyoung/planetoid",
        licence="MIT",
        fingerprint="87ebac49ef6e51ae38ecf3fc83d2302746f5529c89a2d614b6bd44eba3e65eb0",
        build=from_pyg(Planetoid, "PubMed"),
        folder="PubMed",
        files=_planetoid(
            "pubmed",
            {
                "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
                "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
                "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
                "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
                "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
                "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
                "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
                "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
            },
        ),
        protocols=("authors", "public", "random"),
    ),
    DatasetSpec(
        name="dblp",
        title="DBLP",
        nodes=17716,
        edges=52867,
        features=1639,
        classes=4,
        source="github.com/abojchevski/graph2gauss",
        licence="MIT",
        fingerprint="9123f2d304eddd09620f36a53755b32dc42e0e5ed13a90c67d7e51820d0d25e9",
        build=from_pyg(CitationFull, "DBLP"),
        folder="dblp",
        files=(
            RawFile(
                "dblp.npz",
                CitationFull.url.format("dblp"),
                # A compressed re-save. The sum of the file that PyG downloads is not known, hence `by_content`.
                ("733c4ec2eec712a3c2b6cf9660ba9f4e1bdf4ce27869114f1de29d8e7a5a24f5",),
            ),
        ),
        tasks=(LINKS,),
        by_content=True,
    ),
    DatasetSpec(
        name="computers",
        title="Computers",
        nodes=13752,
        edges=245861,
        features=767,
        classes=10,
        source="github.com/shchur/gnn-benchmark",
        licence="MIT",
        fingerprint="7ed85f345ffd87d5f74652f97577713e2f13de6e7815b3950684f875f3689917",
        build=from_pyg(Amazon, "Computers"),
        folder="Computers",
        files=_amazon(
            "amazon_electronics_computers.npz",
            "736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c",
            "e3a78127c122ce4a6a1bd6effb2112ec2b0ad1f795f5bd98bee206772777ca5e",
        ),
        tasks=(NODES,),
        protocols=("authors", "random"),
        author_train=int(13752 * 0.015),
    ),
    DatasetSpec(
        name="photo",
        title="Photo",
        nodes=7650,
        edges=119081,
        features=745,
        classes=8,
        source="github.com/shchur/gnn-benchmark",
        licence="MIT",
        fingerprint="a8ea0bfdd89e3020f7dcf681530cc205c26361ee8814c88d5cb2afbe75843a72",
        build=from_pyg(Amazon, "Photo"),
        folder="Photo",
        files=_amazon(
            "amazon_electronics_photo.npz",
            "bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a",
            "2b8d158fa1483bca508de5025cf31c17cf15e63600e294c547e6dc87f3189fe0",
        ),
        tasks=(NODES,),
        protocols=("authors", "random"),
        author_train=int(7650 * 0.021),
    ),
)

DATASETS: dict[str, DatasetSpec] = {spec.name: spec for spec in _SPECS}


def get_spec(name: str) -> DatasetSpec:
    """The entry of a dataset, in any spelling of upper and lower case."""
    key = str(name).lower()
    if key in DATASETS:
        return DATASETS[key]
    close = difflib.get_close_matches(key, DATASETS, n=1)
    hint = f"did you mean {close[0]!r}? Known" if close else "known"
    raise ValueError(f"dataset {name!r} is not known; {hint} are: {', '.join(DATASETS)}")
