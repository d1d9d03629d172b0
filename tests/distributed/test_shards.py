import json

import pytest
import torch
from torch_geometric.data import Data

from bigcn.distributed import Manifest, partition_data


def test_altered_and_missing_files_are_refused_by_all_processes(spread, graphs, tmp_path):
    data, split = graphs.random()
    shards = tmp_path / "shards"
    partition_data(data, shards, 2, split=split)
    path = shards / "part-00001" / "own_col.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    for part in spread("run", 2, codes=(2,), shards=str(shards)):
        assert part["error"] == f"{path}: not the file that was written (its checksum differs): partition again"
    path.unlink()
    for part in spread("run", 2, codes=(2,), shards=str(shards)):
        assert part["error"] == f"{path}: a file of the shards is missing: partition the graph again"


def test_shards_for_another_number_of_processes_are_refused(spread, graphs, tmp_path):
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", 3, split=split)
    for size in (1, 2):
        for part in spread("run", size, codes=(2,), shards=str(tmp_path / "shards")):
            assert f"made for 3 processes, and {size} process" in part["error"]


def test_processes_with_different_options_are_refused(spread, graphs, tmp_path):
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", 2, split=split)
    for part in spread("run", 2, codes=(2,), shards=str(tmp_path / "shards"), different=True):
        assert part["error"] == (
            "process 2 of 2 was started with another 'seed' than the first (1 and 0): start all with the same options"
        )


def test_shards_without_labels_and_bad_models_are_refused(spread, graphs, tmp_path):
    data, _ = graphs.random()
    data.y = None
    partition_data(data, tmp_path / "shards", 2)
    for part in spread("run", 2, codes=(2,), shards=str(tmp_path / "shards")):
        assert "the shards have no labels" in part["error"]
    for model, what in (({"norm": "batch_norm"}, "'norm' must be None"), ({"gcn_layers": 1}, "'gcn_layers' must be 0")):
        for part in spread("run", 2, codes=(2,), shards=str(tmp_path / "shards"), task="link", model=model):
            assert what in part["error"]


def test_the_state_of_a_run_with_other_options_is_refused(spread, graphs, tmp_path):
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", 2, split=split)
    from safetensors.torch import save_file

    state = tmp_path / "model.run.safetensors"
    save_file({"a": torch.ones(1)}, state, {"fingerprint": "another", "numbers": "{}"})
    for part in spread("run", 2, codes=(2,), shards=str(tmp_path / "shards"), save=str(tmp_path / "model")):
        assert part["error"].startswith(f"{state}: the state of a run with other options")
    state.write_bytes(b"no")
    for part in spread("run", 2, codes=(2,), shards=str(tmp_path / "shards"), save=str(tmp_path / "model")):
        assert part["error"].startswith(f"{state}: not the state of a run, or damaged")


def test_manifests_that_are_not_are_refused(graphs, tmp_path):
    with pytest.raises(ValueError, match="there are no shards here"):
        Manifest.load(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text("[]")
    with pytest.raises(ValueError, match="not the manifest of shards"):
        Manifest.load(tmp_path)
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", 2, split=split)
    document = json.loads((tmp_path / "shards" / "manifest.json").read_text())
    path.write_text(json.dumps(document | {"version": 99}))
    with pytest.raises(ValueError, match="another version of the format"):
        Manifest.load(tmp_path)
    for field, value in (("sizes", [document["nodes"]]), ("nodes", document["nodes"] + 1), ("parts", 3)):
        path.write_text(json.dumps(document | {field: value}))
        with pytest.raises(ValueError, match="the sizes of its parts do not fit"):
            Manifest.load(tmp_path)
    del document["sizes"]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="fields are missing or unknown"):
        Manifest.load(tmp_path)


def test_graphs_that_nothing_can_learn_from_are_refused(graphs, tmp_path):
    data, _ = graphs.random()
    for y in (data.y.float(), data.y[:-1], data.y[:, None]):
        with pytest.raises(ValueError, match="one class number for each node"):
            partition_data(Data(x=data.x, edge_index=data.edge_index, y=y), tmp_path / "shards", 2)
    holes = data.x.clone()
    holes[0, 0] = float("nan")
    for x in (holes, holes.to_sparse(), holes.to_sparse_csr()):
        with pytest.raises(ValueError, match="'x' has missing or infinite values, the first in row 0, column 0"):
            partition_data(Data(x=x, edge_index=data.edge_index), tmp_path / "shards", 2)
    assert not (tmp_path / "shards").exists()
