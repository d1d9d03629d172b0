"""Graphs kept as arrays: sparse matrices in .npz, and PyG's Data in .pt. Nothing is unpickled but tensors."""

import contextlib
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bigcn.datasets.own.encoding import check_size
from bigcn.datasets.own.graph import InputError
from bigcn.datasets.own.tables import first_line


@dataclass(eq=False)
class GraphArrays:
    """A graph as arrays.

    Args:
        x (numpy.ndarray): The features.
        source, target (numpy.ndarray): The ends of the edges.
        weight (numpy.ndarray, optional): Their weights. (default: :obj:`None`)
        labels (list, optional): The labels, :obj:`None` where there is none. (default: :obj:`None`)
        classes (tuple[str, ...], optional): The order of the classes. (default: :obj:`()`)
        split (list, optional): The part that each node is in, empty for none. (default: :obj:`None`)
        said (list[str], optional): What is to be said about it. (default: :obj:`[]`)
    """

    x: np.ndarray
    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None = None
    labels: list[Any] | None = None
    classes: tuple[str, ...] = ()
    split: list[str] | None = None
    said: list[str] = field(default_factory=list)


def read_npz(path: Path) -> GraphArrays:
    """Reads adjacency, features and labels in the layout of PyG's Amazon graphs."""
    arrays: dict[str, np.ndarray] = {}
    wanted = [f"{part}_{key}" for part in ("adj", "attr") for key in ("data", "indices", "indptr", "shape")]
    name = ""
    try:
        if not zipfile.is_zipfile(path):  # which NumPy would take for a pickle
            raise InputError(f"{path} is not an .npz file that can be read without unpickling: it is no zip archive")
        with np.load(path, allow_pickle=False) as file:
            found = file.files
            for name in (*wanted, "attr_matrix", "labels"):
                if name in found:
                    arrays[name] = file[name]
            with contextlib.suppress(ValueError, KeyError):  # names kept as Python objects are done without
                arrays["class_names"] = file["class_names"]
    except InputError:
        raise
    except Exception as error:  # zip, zlib and NumPy each have their own
        objects = isinstance(error, ValueError) and "allow_pickle" in str(error)
        what = f"the array {name!r} {'holds Python objects' if objects else 'is damaged'}" if name else "it is damaged"
        raise InputError(f"{path} is not an .npz file that can be read without unpickling: {what}") from error
    if "attr_matrix" in arrays:
        wanted = wanted[:4]
    if lacking := [name for name in wanted if name not in arrays]:
        raise InputError(f"{path} lacks the array {lacking[0]!r} of the usual layout: it has {', '.join(found[:12])}")
    adjacency = _csr(path, arrays, "adj").tocoo()
    n = adjacency.shape[0]
    if adjacency.shape[1] != n or n == 0:
        raise InputError(f"{path}: the adjacency matrix must be square, and has shape {adjacency.shape}")
    features: Any = arrays["attr_matrix"] if "attr_matrix" in arrays else _csr(path, arrays, "attr")
    if features.ndim != 2 or features.shape[0] != n:
        raise InputError(f"{path}: the features must have one row for each of the {n:,} nodes (got {features.shape})")
    check_size(n, features.shape[1])
    labels, classes = _npz_labels(path, arrays, n)
    kept = adjacency.data != 0
    weight = None if (adjacency.data[kept] == 1).all() else adjacency.data[kept]
    ends = _once(adjacency.row[kept], adjacency.col[kept], weight, n)
    x = features.toarray() if sp.issparse(features) else features
    return GraphArrays(x, *ends, labels, classes)


def _npz_labels(path: Path, arrays: dict[str, np.ndarray], n: int) -> tuple[list[Any] | None, tuple[str, ...]]:
    if "labels" not in arrays:
        return None, ()
    if arrays["labels"].dtype.kind not in "iuf":
        raise InputError(f"{path}: the labels must be numbers (got {arrays['labels'].dtype})")
    labels = _labels(path, torch.from_numpy(arrays["labels"].astype(np.float64)), n)
    names = arrays.get("class_names")
    if names is None or names.dtype.kind != "U" or names.ndim != 1 or len(set(names.tolist())) < len(names):
        return labels, ()
    if any(label is not None and (label >= len(names) or label != int(label)) for label in labels):
        return labels, ()
    classes = tuple(names.tolist())
    return [None if label is None else classes[int(label)] for label in labels], classes


def _csr(path: Path, arrays: dict[str, np.ndarray], part: str) -> sp.csr_matrix:
    try:
        matrix = sp.csr_matrix(
            (arrays[f"{part}_data"], arrays[f"{part}_indices"], arrays[f"{part}_indptr"]),
            shape=tuple(int(size) for size in arrays[f"{part}_shape"]),
        )
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{path}: the arrays {part}_* are no sparse matrix: {first_line(error)}") from error
    return matrix


def read_pyg(path: Path) -> GraphArrays:
    """Reads a PyG Data that was saved with torch.save."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        # Plain containers of PyG, which run nothing when they are built; anything else is refused.
        # Those that PyG allows already must not be named: they would be taken off its list at the end.
        containers = {Data, DataEdgeAttr, DataTensorAttr, GlobalStorage} - set(torch.serialization.get_safe_globals())
        with torch.serialization.safe_globals(list(containers)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = torch.load(path, map_location="cpu", weights_only=True)
        content = data.to_dict() if type(data) is Data else None
    except Exception as error:  # what a file of something else makes the reader stumble over can be anything
        raise InputError(f"{path} is not a PyG Data of tensors alone, and nothing else is unpickled") from error
    if content is None:
        raise InputError(f"{path} holds a {type(data).__name__}, and a PyG Data was expected")
    x = content.get("x")
    if not isinstance(x, Tensor) or x.dim() != 2:
        raise InputError(f"{path} has no features: a matrix 'x' with one row for each node was expected")
    n = x.size(0)
    if n == 0:
        raise InputError(f"{path} has no nodes")
    said: list[str] = []
    check_size(n, x.size(1))
    index, weight = _pyg_edges(path, content, said)
    y = content.get("y")
    labels = None if y is None else _labels(path, y, n)
    ends = _once(index[0].numpy(), index[1].numpy(), weight, n)
    dense = (x if x.layout == torch.strided else x.to_dense()).detach()
    dense = dense.float() if dense.dtype in (torch.bfloat16, torch.float16) else dense
    split = _pyg_split(path, content, n, said)
    return GraphArrays(dense.numpy(), *ends, labels, (), split, said)


def _pyg_edges(path: Path, content: dict[str, Any], said: list[str]) -> tuple[Tensor, np.ndarray | None]:
    index = content.get("edge_index")
    if not isinstance(index, Tensor) or index.dim() != 2 or index.size(0) != 2 or index.is_floating_point():
        raise InputError(f"{path} has no edges: whole numbers 'edge_index' of shape [2, num_edges] were expected")
    if hasattr(index, "as_tensor"):
        index = index.as_tensor()
    for key in ("edge_weight", "edge_attr"):
        weight = content.get(key)
        if not isinstance(weight, Tensor):
            continue
        if weight.numel() == index.size(1):
            return index, weight.detach().double().view(-1).numpy()
        if key == "edge_weight":
            raise InputError(f"{path}: 'edge_weight' must hold one number for each of the {index.size(1):,} edges")
        said.append(f"{path} has several attributes for each edge, which were left out.")
    return index, None


def _pyg_split(path: Path, content: dict[str, Any], n: int, said: list[str]) -> list[str] | None:
    masks: list[Any] = [content.get(f"{part}_mask") for part in ("train", "val", "test")]
    if any(not isinstance(mask, Tensor) for mask in masks):
        return None
    if any(mask.dtype != torch.bool or mask.shape != (n,) for mask in masks):
        said.append(f"{path} has masks that are not one split of the nodes, which were left out.")
        return None
    parts = np.full(n, "", dtype=object)
    for name, mask in zip(("train", "val", "test"), masks, strict=True):
        members = mask.numpy()
        if (parts[members] != "").any():
            raise InputError(f"{path}: train_mask, val_mask and test_mask must not overlap")
        parts[members] = name
    return parts.tolist()


def _labels(path: Path, y: Tensor, n: int) -> list[Any]:
    if not isinstance(y, Tensor) or y.numel() != n:
        raise InputError(f"{path}: the labels must be one for each of the {n:,} nodes")
    values = y.reshape(-1).tolist()
    return [None if value != value or value < 0 else value for value in values]


def _once(
    row: np.ndarray, col: np.ndarray, weight: np.ndarray | None, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Returns each edge of a symmetric matrix once; of another matrix, all entries."""
    row, col = row.astype(np.int64), col.astype(np.int64)
    if not len(row) or min(row.min(), col.min()) < 0 or max(row.max(), col.max()) >= n:
        return row, col, weight  # what is wrong with them is said where ids are matched
    matrix = sp.csr_array((np.ones(len(row)) if weight is None else weight, (row, col)), shape=(n, n))
    if matrix.nnz < len(row) or (matrix != matrix.T).nnz:
        return row, col, weight
    upper = row <= col
    return row[upper], col[upper], None if weight is None else weight[upper]
