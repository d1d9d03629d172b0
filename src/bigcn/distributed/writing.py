"""Writing shards: edges, halos and features, a piece at a time."""

import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bigcn.distributed.arrays import ArrayWriter, map_array, write_array
from bigcn.distributed.assign import DiskGraph
from bigcn.distributed.shards import DIRECTORY, MANIFEST, Manifest, describe_files, part_name
from bigcn.files import PathLike

#: Blocks of features, in the order of the node table: dense in single precision, or sparse.
Blocks = Iterable[np.ndarray | csr_array]


@dataclass(eq=False)
class NodeColumns:
    """What there is about the nodes, in the order of the node table.

    Args:
        blocks (Iterable): The features.
        width (int): How many there are.
        sparse (bool): Whether they are written as a sparse matrix.
        dtype (str, optional): Their precision. (default: :obj:`"float32"`)
        labels (numpy.ndarray, optional): The class of each node, -1 for none. (default: :obj:`None`)
        split (numpy.ndarray, optional): Its part of the split: 0 train, 1 val, 2 test, -1 none. (default: :obj:`None`)
        ids (numpy.ndarray, optional): Whole numbers, or texts. (default: :obj:`None`)
    """

    blocks: Blocks
    width: int
    sparse: bool
    dtype: str = "float32"
    labels: np.ndarray | None = None
    split: np.ndarray | None = None
    ids: Any = None


def write_shards(
    folder: PathLike, graph: DiskGraph, owner: np.ndarray, parts: int, nodes: NodeColumns, **about: Any
) -> Manifest:
    """Writes a folder of shards; see :mod:`bigcn.distributed.shards` for what is in it.

    Args:
        folder (str or path): An empty folder.
        graph (DiskGraph): The graph.
        owner (numpy.ndarray): The part of each node.
        parts (int): The number of parts.
        nodes (NodeColumns): What there is about the nodes.
        **about (optional): Further fields of the manifest.
    """
    root = Path(folder)
    for part in range(parts):
        (root / part_name(part)).mkdir(parents=True)
    sizes = np.bincount(owner, minlength=parts)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    # Nodes are numbered part after part; a stable sort keeps the order of the table within each.
    order = np.argsort(owner, kind="stable")
    number = np.empty(len(owner), dtype=np.int64)
    number[order] = np.arange(len(owner))
    write_array(root / DIRECTORY, number)
    for part in range(parts):
        place, rows = root / part_name(part), order[offsets[part] : offsets[part + 1]]
        write_array(place / "rows.npy", rows)
        if nodes.labels is not None:
            write_array(place / "y.npy", nodes.labels[rows].astype(np.int64))
        if nodes.split is not None:
            write_array(place / "split.npy", nodes.split[rows].astype(np.int8))
        _write_ids(place, nodes.ids, rows)
    halos = [
        _write_edges(root / part_name(part), graph, order[offsets[part] : offsets[part + 1]], number, offsets, part)
        for part in range(parts)
    ]
    _write_lists(root, order, offsets)
    _write_features(root, owner, parts, nodes)
    manifest = Manifest(
        parts=parts,
        nodes=len(owner),
        edges=int(graph.crow[-1]) // 2,
        features=nodes.width,
        sizes=tuple(int(size) for size in sizes),
        halos=tuple(halos),
        weighted=graph.weight is not None,
        sparse=nodes.sparse,
        labelled=nodes.labels is not None,
        split=nodes.split is not None,
        files=describe_files(root),
        **about,
    )
    manifest.save(root)
    return manifest


@contextmanager
def new_folder(folder: PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Gives a folder to write shards into, which takes its place only when all went well.

    Args:
        folder (str or path): Where it will be.
        overwrite (bool, optional): If set to :obj:`True`, older shards may stand there. (default: :obj:`False`)
    """
    target = Path(folder).resolve()
    if target.exists() and not target.is_dir():
        raise ValueError(f"{folder} is a file, and shards are a folder")
    if not target.parent.is_dir():
        raise ValueError(f"{folder} cannot be made: there is no folder {target.parent}")
    if target.exists() and any(target.iterdir()):
        if not (target / MANIFEST).is_file():
            raise ValueError(f"{folder} holds something that is not shards, and was left as it is")
        if not overwrite:
            raise ValueError(f"{folder} already holds shards, and was left as it is ('--overwrite' replaces them)")
    draft = target.with_name(f".{uuid.uuid4().hex}.tmp")
    draft.mkdir()
    try:
        yield draft
        if target.exists():
            old = target.with_name(f".{uuid.uuid4().hex}.tmp")
            target.rename(old)
            draft.rename(target)
            shutil.rmtree(old)
        else:
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_ids(place: Path, ids: Any, rows: np.ndarray) -> None:
    if ids is None:
        return
    chosen = ids[rows]
    if chosen.dtype.kind in "iu":
        write_array(place / "ids.npy", chosen.astype(np.int64))
        return
    texts = [str(value).encode() for value in chosen]
    write_array(place / "id_ends.npy", np.cumsum([len(text) for text in texts], dtype=np.int64))
    write_array(place / "id_bytes.npy", np.frombuffer(b"".join(texts), dtype=np.uint8))


def _entries(graph: DiskGraph, rows: np.ndarray, number: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields the entries of rows, a few rows at a time: row within the part, number of the column, weight."""
    counts = graph.crow[rows + 1] - graph.crow[rows]
    ends = np.cumsum(counts)
    start = 0
    while start < len(rows):
        before = ends[start] - counts[start]
        stop = max(int(np.searchsorted(ends, before + 2_000_000, side="right")), start + 1)
        piece = counts[start:stop]
        first = np.cumsum(piece) - piece
        places = np.arange(int(piece.sum())) + np.repeat(graph.crow[rows[start:stop]] - first, piece)
        weight = None if graph.weight is None else np.asarray(graph.weight[places])
        columns = number[np.asarray(graph.col[places])]
        yield np.repeat(np.arange(start, stop), piece), columns, weight  # type: ignore[misc]
        start = stop


def _write_edges(
    place: Path, graph: DiskGraph, rows: np.ndarray, number: np.ndarray, offsets: np.ndarray, part: int
) -> int:
    """Writes the edges of a part, and which nodes of other parts they lead to; returns how many these are."""
    low, high = offsets[part], offsets[part + 1]
    needed = np.zeros(offsets[-1], dtype=bool)
    for _, columns, _ in _entries(graph, rows, number):
        needed[columns] = True
    needed[low:high] = False
    halo = np.flatnonzero(needed)
    write_array(place / "halo.npy", halo)
    del needed
    small = max(len(rows), len(halo), int(graph.crow[-1])) < 2**31
    index = np.int32 if small else np.int64
    writers: dict[str, ArrayWriter] = {}
    for name in ("own", "halo"):
        writers[name] = ArrayWriter(place / f"{name}_col.npy", index)
        if graph.weight is not None:
            writers[f"{name} weight"] = ArrayWriter(place / f"{name}_weight.npy", graph.weight.dtype)
    counts = {name: np.zeros(len(rows) + 1, dtype=np.int64) for name in ("own", "halo")}
    for row, columns, weight in _entries(graph, rows, number):
        inside = (columns >= low) & (columns < high)
        for name, chosen in (("own", inside), ("halo", ~inside)):
            r, c = row[chosen], columns[chosen]
            c = c - low if name == "own" else np.searchsorted(halo, c)
            within = np.lexsort((c, r))
            writers[name].append(c[within])
            if weight is not None:
                writers[f"{name} weight"].append(weight[chosen][within])
            counts[name][1:] += np.bincount(r, minlength=len(rows))
    for writer in writers.values():
        writer.close()
    for name, count in counts.items():
        write_array(place / f"{name}_crow.npy", np.cumsum(count).astype(index))
    return len(halo)


def _write_lists(root: Path, order: np.ndarray, offsets: np.ndarray) -> None:
    """Writes which rows each part sends to each other, from what the others need."""
    parts = len(offsets) - 1
    halos = [map_array(root / part_name(part) / "halo.npy") for part in range(parts)]
    bounds = [np.searchsorted(halo, offsets) for halo in halos]
    for part in range(parts):
        place = root / part_name(part)
        send = [halo[bound[part] : bound[part + 1]] - offsets[part] for halo, bound in zip(halos, bounds, strict=True)]
        write_array(place / "send.npy", np.concatenate(send).astype(np.int32 if offsets[-1] < 2**31 else np.int64))
        write_array(place / "send_counts.npy", np.array([len(rows) for rows in send], dtype=np.int64))
        write_array(place / "receive_counts.npy", np.diff(bounds[part]).astype(np.int64))
        write_array(place / "halo_rows.npy", order[halos[part]])


def _write_features(root: Path, owner: np.ndarray, parts: int, nodes: NodeColumns) -> None:
    places = [root / part_name(part) for part in range(parts)]
    if nodes.sparse:
        _write_sparse_features(places, owner, nodes)
        return
    writers = [ArrayWriter(place / "x.npy", nodes.dtype, nodes.width) for place in places]
    start = 0
    for block in nodes.blocks:
        dense = block.toarray() if isinstance(block, csr_array) else block
        owners = owner[start : start + len(dense)]
        for part in np.unique(owners):
            writers[part].append(dense[owners == part])
        start += len(dense)
    assert start == len(owner)
    for writer in writers:
        writer.close()


def _write_sparse_features(places: list[Path], owner: np.ndarray, nodes: NodeColumns) -> None:
    columns = [ArrayWriter(place / "x_col.npy", np.int32) for place in places]
    values = [ArrayWriter(place / "x_value.npy", nodes.dtype) for place in places]
    lengths: list[list[np.ndarray]] = [[] for _ in places]
    start = 0
    for block in nodes.blocks:
        matrix = block if isinstance(block, csr_array) else csr_array(block)
        owners = owner[start : start + matrix.shape[0]]
        for part in np.unique(owners):
            chosen = matrix[np.flatnonzero(owners == part)]
            columns[part].append(chosen.indices)
            values[part].append(chosen.data)
            lengths[part].append(np.diff(chosen.indptr))
        start += matrix.shape[0]
    for part, place in enumerate(places):
        columns[part].close()
        values[part].close()
        write_array(place / "x_crow.npy", np.concatenate([[0], np.cumsum(np.concatenate(lengths[part]))]))
