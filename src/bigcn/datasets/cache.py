"""Loading: from the cache, else from the mirror, else from the network, and never without verification.

A file is read into memory, its SHA-256 is compared with the registry's, and only then are those very bytes handed to
PyG. The graph that PyG makes of them is compared with the registry's fingerprint. Only a file that passed both enters
the cache. A file whose sum is not listed is refused by name; there is no switch to trust it anyway, because the
Planetoid files are pickles and a pickle can run any program. The one exception is DBLP (``by_content``): its file is
read without unpickling, so a differently compressed one may be opened, and is accepted if the graph in it is the same.
"""

from dataclasses import dataclass, replace
from os.path import isfile
from pathlib import Path
from typing import Literal

from torch_geometric.data import Data

from bigcn.datasets.files import (
    DatasetCorrupt,
    DatasetUnavailable,
    Folder,
    cache_folder,
    fetch,
    mirror_folder,
    sha256,
    store,
)
from bigcn.datasets.graphs import build_graph, graph_fingerprint
from bigcn.datasets.registry import DatasetSpec, RawFile, get_spec
from bigcn.user_warnings import warn_user


@dataclass(frozen=True)
class DatasetStatus:
    """Where a dataset is and whether it can be trusted.

    Args:
        name (str): The dataset.
        where (str): ``"embedded"``, ``"cache"``, ``"mirror"`` or ``"absent"``.
        path (Path, optional): The folder of the raw files; for an absent dataset, where they belong.
        bytes (int): The size of the raw files found.
        verified (bool, optional): Whether every file is a published one; :obj:`None` if there is nothing to verify.
        problem (str, optional): What is wrong, in one sentence.

    """

    name: str
    where: Literal["embedded", "cache", "mirror", "absent"]
    path: Path | None
    bytes: int
    verified: bool | None
    problem: str | None


def load(name: str = "digits", cache: Folder | None = None, mirror: Folder | None = None) -> Data:
    """Loads a dataset of the registry.

    The graph is undirected with both directions stored, sorted, and free of self-loops and duplicates. Features are
    dense and raw, as PyG gives them (not normalised by row). The Planetoid graphs carry their public split as masks.

    Args:
        name (str, optional): A name in the registry. (default: :obj:`"digits"`)
        cache (str or Path, optional): The folder that keeps raw files. (default: the variable ``BIGCN_CACHE``,
            else the platform's cache folder)
        mirror (str or Path, optional): A folder with raw files that is only read. (default: the variable
            ``BIGCN_DATA``)

    Raises:
        DatasetCorrupt: A file is not the published one.
        DatasetUnavailable: Files are missing and cannot be downloaded.

    """
    spec = get_spec(name)
    home = _raw(spec, cache_folder(cache))
    found = _locate(spec, cache, mirror)
    data, files = _obtain(spec, found, home)
    try:
        _keep(files, found, home)
    except OSError as error:
        warn_user(f"{spec.title} was loaded, but not kept in {home}: {error}")
    return data


def download(name: str, cache: Folder | None = None, mirror: Folder | None = None) -> DatasetStatus:
    """Puts a dataset into the cache, from the mirror or the network, and replaces what is damaged there.

    Args:
        name (str): A name in the registry.
        cache (str or Path, optional): As in :func:`load`.
        mirror (str or Path, optional): As in :func:`load`.

    """
    spec = get_spec(name)
    now = status(name, cache, mirror)
    if now.where == "embedded" or (now.where == "cache" and now.verified):
        return now
    home = _raw(spec, cache_folder(cache))
    found = _locate(spec, cache, mirror, skip_damaged=True)
    _, files = _obtain(spec, found, home)
    try:
        _keep(files, found, home)
    except OSError as error:
        raise DatasetUnavailable(f"{spec.title} cannot be kept in {home}: {error}") from error
    return status(name, cache, mirror)


def verify(name: str, cache: Folder | None = None, mirror: Folder | None = None) -> DatasetStatus:
    """Verifies the files on this machine and the graph made of them; nothing is written or downloaded.

    Args:
        name (str): A name in the registry.
        cache (str or Path, optional): As in :func:`load`.
        mirror (str or Path, optional): As in :func:`load`.

    Raises:
        DatasetCorrupt: A file is not the published one.
        DatasetUnavailable: Files are missing.

    """
    spec = get_spec(name)
    found = _locate(spec, cache, mirror)
    missing = [file for file in spec.files if file.name not in found]
    home = _raw(spec, cache_folder(cache))
    if missing:
        raise DatasetUnavailable(_advice(spec, missing, home))
    _obtain(spec, found, home)
    return replace(status(name, cache, mirror), verified=True)


def status(name: str, cache: Folder | None = None, mirror: Folder | None = None) -> DatasetStatus:
    """Says where a dataset is and whether its files are the published ones, without loading or downloading it.

    Args:
        name (str): A name in the registry.
        cache (str or Path, optional): As in :func:`load`.
        mirror (str or Path, optional): As in :func:`load`.

    """
    spec = get_spec(name)
    if not spec.files:
        return DatasetStatus(spec.name, "embedded", None, 0, None, None)
    home = _raw(spec, cache_folder(cache))
    try:
        found = _locate(spec, cache, mirror)
        size = sum(path.stat().st_size for path in found.values())
    except (DatasetUnavailable, OSError) as error:
        return DatasetStatus(spec.name, "absent", home, 0, None, str(error))
    if len(found) < len(spec.files):
        gone = [file.name for file in spec.files if file.name not in found]
        problem = f"{len(gone)} of {len(spec.files)} files are missing: {', '.join(gone)}" if found else None
        return DatasetStatus(spec.name, "absent", home, size, None, problem)
    elsewhere = [path.parent for path in found.values() if path.parent != home]
    where: Literal["cache", "mirror"] = "mirror" if elsewhere else "cache"
    path = elsewhere[0] if elsewhere else home
    try:
        files = {file.name: _read(spec, file, found[file.name]) for file in spec.files}
        if any(sha256(files[file.name]) not in file.sums for file in spec.files):
            _open(spec, files, found)
    except DatasetUnavailable as error:
        return DatasetStatus(spec.name, where, path, size, False, str(error))
    return DatasetStatus(spec.name, where, path, size, True, None)


def fingerprint(dataset: str | Data) -> str:
    """A checksum of a graph for the record of a run, the same on every machine.

    Args:
        dataset (str or Data): A name in the registry, for the checksum that every load of it is held to; or a graph,
            for the SHA-256 of its tensors.

    """
    return graph_fingerprint(dataset) if isinstance(dataset, Data) else get_spec(dataset).fingerprint


def _raw(spec: DatasetSpec, folder: Path) -> Path:
    return folder / spec.folder / "raw"


def _locate(
    spec: DatasetSpec, cache: Folder | None, mirror: Folder | None, skip_damaged: bool = False
) -> dict[str, Path]:
    """The path of each raw file that is on this machine; the cache goes before the mirror."""
    home = _raw(spec, cache_folder(cache))
    found = {file.name: home / file.name for file in spec.files if isfile(home / file.name)}
    if skip_damaged:
        found = {file.name: path for file in spec.files if (path := found.get(file.name)) and _listed(file, path)}
    # Asked only when needed, so that a wrong BIGCN_DATA does not get in the way of a full cache.
    if len(found) < len(spec.files) and (folder := mirror_folder(mirror)):
        there = _raw(spec, folder)
        for file in spec.files:
            if file.name not in found and isfile(there / file.name):
                found[file.name] = there / file.name
    return found


def _listed(file: RawFile, path: Path) -> bool:
    try:
        return sha256(path.read_bytes()) in file.sums
    except OSError:
        return False


def _obtain(spec: DatasetSpec, found: dict[str, Path], home: Path) -> tuple[Data, dict[str, bytes]]:
    """The graph and the bytes it was made of, all verified; what is not on this machine is downloaded."""
    files = {file.name: _read(spec, file, found[file.name]) for file in spec.files if file.name in found}
    missing = [file for file in spec.files if file.name not in found]
    for file in missing:
        try:
            content = fetch(file.url)
        except DatasetUnavailable as error:
            raise DatasetUnavailable(_advice(spec, missing, home, str(error))) from error
        files[file.name] = _checked(spec, file, content, file.url)
    return _open(spec, files, found), files


def _read(spec: DatasetSpec, file: RawFile, path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetUnavailable(f"{path} cannot be read: {error.strerror}") from error
    return _checked(spec, file, content, str(path))


def _checked(spec: DatasetSpec, file: RawFile, content: bytes, origin: str) -> bytes:
    found = sha256(content)
    if found in file.sums or spec.by_content:
        return content
    raise DatasetCorrupt(
        f"{origin} is not the published file of {spec.title} and was not opened: it has {len(content)} bytes and the "
        f"SHA-256 {found} instead of {' or '.join(file.sums)}; replace it, or delete it to have it fetched again"
    )


def _open(spec: DatasetSpec, files: dict[str, bytes], found: dict[str, Path]) -> Data:
    """The graph in verified files, held to its fingerprint."""
    urls = {file.name: file.url for file in spec.files}
    origin = ", ".join(f"{found.get(name, urls[name])} (SHA-256 {sha256(files[name])})" for name in files)
    try:
        data = build_graph(spec.build, spec.folder, files)
    except OSError as error:
        raise DatasetUnavailable(f"{spec.title} cannot be unpacked in a temporary folder: {error}") from error
    except Exception as error:
        raise DatasetCorrupt(f"{spec.title} cannot be read from {origin or 'scikit-learn'}: {error}") from error
    if graph_fingerprint(data) != spec.fingerprint:
        raise DatasetCorrupt(f"the graph in {origin or 'scikit-learn'} is not the published {spec.title}")
    return data


def _keep(files: dict[str, bytes], found: dict[str, Path], home: Path) -> None:
    for name, content in files.items():
        if found.get(name) != home / name:
            store(home / name, content)


def _advice(spec: DatasetSpec, missing: list[RawFile], home: Path, reason: str | None = None) -> str:
    source = missing[0].url.removesuffix(missing[0].name)
    attempt = f" and could not be downloaded ({reason})" if reason else ""
    return (
        f"{spec.title} is not on this machine{attempt}. Put "
        f"{', '.join(file.name for file in missing)} from {source} into {home}, or set BIGCN_DATA to a folder that "
        f"holds them in {spec.folder}/raw"
    )
