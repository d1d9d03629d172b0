"""The format of a partitioned graph: a manifest, a directory of nodes, and one folder of arrays for each process.

::

    shards/
      manifest.json       what there is, with the size and SHA-256 of every file
      directory.npy       where each node went, in the order of the node table
      part-00000/
        rows.npy          the place of each node in the node table, ascending
        x.npy             features, or x_crow.npy, x_col.npy and x_value.npy of sparse ones
        y.npy, split.npy  classes (-1 for none) and parts of the split (-1 for none, 0 train, 1 val, 2 test), if any
        own_*.npy         edges between nodes of this part: crow, col and, of a weighted graph, weight
        halo_*.npy        edges to nodes of other parts; columns number the rows received
        halo.npy          which nodes these are: numbers in the order of parts
        halo_rows.npy     their places in the node table
        send.npy          which own rows the other parts need, grouped by part
        send_counts.npy, receive_counts.npy
        id_bytes.npy, id_ends.npy     the ids of the nodes, as UTF-8, or ids.npy if these are whole numbers

Nodes are numbered part after part, and within a part in the order of the node table.
"""

import json
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bigcn.distributed.arrays import map_array, sha256
from bigcn.files import PathLike, write_text

FORMAT, VERSION = "bigcn-shards", 1
MANIFEST, DIRECTORY = "manifest.json", "directory.npy"
#: The parts of a split, by the number that stands for each.
SPLIT = ("train", "val", "test")


@dataclass(frozen=True)
class Manifest:
    """What a folder of shards holds.

    Args:
        parts (int): The number of shards.
        nodes, edges, features (int): The size of the graph; an undirected edge counts once.
        sizes (tuple[int, ...]): The nodes of each part.
        halos (tuple[int, ...]): The nodes of other parts that each part needs.
        method (str): How nodes were assigned to parts.
        weighted, sparse, labelled, split (bool): Whether edges have weights, features are sparse, and labels and
            a split are there.
        classes (tuple[str, ...]): The names of the classes.
        name (str): What to call the graph.
        encoding (dict): How tables became tensors, see :class:`bigcn.datasets.own.Encoding`.
        removed (dict): The edges merged, removed and skipped: :obj:`duplicates`, :obj:`self_loops`, :obj:`unknown`.
        warnings (tuple[str, ...]): What was left out of the tables, and what looks wrong in them.
        files (dict): The size and SHA-256 of every file, by its path in the folder.
    """

    parts: int
    nodes: int
    edges: int
    features: int
    sizes: tuple[int, ...]
    halos: tuple[int, ...]
    method: str
    weighted: bool = False
    sparse: bool = False
    labelled: bool = False
    split: bool = False
    classes: tuple[str, ...] = ()
    name: str = "graph"
    encoding: dict[str, Any] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def offsets(self) -> np.ndarray:
        """Where the numbers of each part begin, and where those of the last one end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def save(self, folder: PathLike) -> None:
        """Writes the manifest, last of all files, so that an unfinished folder is never taken for a finished one."""
        document = {"format": FORMAT, "version": VERSION} | asdict(self)
        write_text(Path(folder) / MANIFEST, json.dumps(document, indent=1) + "\n")

    @classmethod
    def load(cls, folder: PathLike) -> "Manifest":
        """Reads the manifest of a folder.

        Args:
            folder (str or path): The folder that :obj:`bigcn partition` wrote.
        """
        path = Path(folder) / MANIFEST
        if not path.is_file():
            raise ValueError(
                f"{folder}: there are no shards here, which 'bigcn partition' makes ({MANIFEST} is missing)"
            )
        try:
            document = json.loads(path.read_text("utf-8"))
            found = (document.pop("format"), document.pop("version"))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise ValueError(f"{path}: not the manifest of shards") from None
        if found != (FORMAT, VERSION):
            raise ValueError(f"{path}: made by another version of the format ({found[0]} {found[1]}, not {VERSION})")
        try:
            for name in ("sizes", "halos", "classes"):
                document[name] = tuple(document[name])
            document["warnings"] = tuple(document.get("warnings", ()))
            manifest = cls(**document)
            consistent = len(manifest.sizes) == len(manifest.halos) == manifest.parts
            consistent = consistent and sum(manifest.sizes) == manifest.nodes
        except (KeyError, TypeError):
            raise ValueError(f"{path}: fields are missing or unknown: partition the graph again") from None
        if not consistent:
            raise ValueError(f"{path}: the sizes of its parts do not fit: partition the graph again")
        return manifest

    def check(self, folder: PathLike, part: int, contents: bool = True) -> None:
        """Refuses files of a part that are missing, or are not those that were written.

        Args:
            folder (str or path): The folder.
            part (int): The part.
            contents (bool, optional): If set to :obj:`False`, looks at sizes alone. (default: :obj:`True`)
        """
        for name, known in self.files.items():
            if name != DIRECTORY and Path(name).parts[0] != part_name(part):
                continue
            path = Path(folder) / name
            if not path.is_file():
                raise ValueError(f"{path}: a file of the shards is missing: partition the graph again")
            if path.stat().st_size != known["bytes"] or (contents and sha256(path) != known["sha256"]):
                raise ValueError(f"{path}: not the file that was written (its checksum differs): partition again")


class Shard:
    """The rows of one process, memory-mapped.

    Args:
        folder (str or path): The folder of shards.
        part (int): Which one.
        manifest (Manifest, optional): Its manifest, if it was read already. (default: :obj:`None`)
    """

    def __init__(self, folder: PathLike, part: int, manifest: Manifest | None = None) -> None:
        self.folder, self.part = Path(folder), part
        self.manifest = Manifest.load(folder) if manifest is None else manifest
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def num_rows(self) -> int:
        """How many nodes the part has."""
        return self.manifest.sizes[self.part]

    def array(self, name: str) -> np.ndarray:
        """Returns an array of the part."""
        if name not in self._arrays:
            self._arrays[name] = map_array(self.folder / part_name(self.part) / f"{name}.npy")
        return self._arrays[name]

    def tensor(self, name: str) -> Tensor:
        """Returns an array of the part as a tensor over the same memory, which must not be written to."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(np.asarray(self.array(name)))

    def counts(self, name: str) -> list[int]:
        """Returns a short array as a list."""
        listed: list[int] = self.array(name).tolist()
        return listed

    def features(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Returns the features, dense or sparse; in the precision they are stored in they stay memory-mapped."""
        if not self.manifest.sparse:
            return self.tensor("x").to(dtype)
        value = self.tensor("x_value").to(dtype)
        crow, col = self.tensor("x_crow").long(), self.tensor("x_col").long()
        shape = (self.num_rows, self.manifest.features)
        return torch.sparse_csr_tensor(crow, col, value, shape, check_invariants=False)

    def directory(self) -> np.ndarray:
        """Returns the number of each node, by its place in the node table, memory-mapped."""
        return map_array(self.folder / DIRECTORY)

    def ids(self) -> np.ndarray:
        """Returns the ids of the nodes, whole numbers or texts."""
        if (self.folder / part_name(self.part) / "ids.npy").is_file():
            return self.array("ids")
        if not (self.folder / part_name(self.part) / "id_ends.npy").is_file():
            return self.array("rows")
        text, ends = bytes(self.array("id_bytes")), self.array("id_ends").tolist()
        starts = [0, *ends[:-1]]
        return np.array([text[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=object)


def part_name(part: int) -> str:
    """Returns the name of a part's folder."""
    return f"part-{part:05d}"


def describe_files(folder: PathLike) -> dict[str, dict[str, Any]]:
    """Returns the size and SHA-256 of every array in a folder of shards."""
    root = Path(folder)
    return {
        path.relative_to(root).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(root.rglob("*.npy"))
    }
