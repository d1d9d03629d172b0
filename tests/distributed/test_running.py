import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bigcn import BiGCN
from bigcn.distributed import joined, partition_data, predict_shards
from bigcn.tasks import LinkPrediction, NodeClassification
from bigcn.training import TrainConfig, seeded, train

EPOCHS = 4
CONFIG = {"patience": None, "learning_rate": 0.02}


def node_cases():
    common = {"hidden_channels": 8, "num_layers": 2, "cached": True}
    wide = {"hidden_channels": 16, "num_layers": 2, "cached": True}  # wider than the input: features are filtered
    taylor = {"node_filter": "taylor", "feature_filter": "taylor", "node_strength": 0.4, "feature_strength": 0.4}
    yield common
    yield common | taylor | {"feature_graph": "learnable", "check_low_pass": False}
    yield common | {"feature_graph": "learnable"}
    yield common | {"feature_graph": "correlation"}
    yield common | {"feature_graph": "spectral", "feature_graph_kwargs": {"rank": 4}}
    yield wide | {"feature_graph": "spectral", "feature_graph_kwargs": {"rank": 4, "weighting": "soft"}}
    yield wide | taylor | {"feature_graph": "uniform", "check_low_pass": False}
    yield common | {"feature_graph": "identity", "jk": "cat", "num_layers": 3, "cached": False}
    yield wide | {"node_strength": 0.0}


def expected(task, settings, penalty=0.0):
    """The run of a single process, by the library's own loop."""
    with seeded(0):
        model = BiGCN(task.num_features, out_channels=task.num_outputs, **settings).double()
    model.train()
    loss = task.loss(model, 1)
    loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    result = train(model, task, TrainConfig(max_epochs=EPOCHS, curves=True, penalty=penalty, **CONFIG))
    with torch.no_grad():
        return loss.detach(), gradients, result, task.outputs(model)


def compare(found, wanted, graphs):
    loss, gradients, result, outputs = wanted
    for part in found:
        assert abs(part["loss"] - loss) < 1e-9
        assert max(float((a - b).abs().max()) for a, b in zip(part["gradients"], gradients, strict=True)) < 1e-9
        assert np.allclose(part["losses"], result.curves["loss"], rtol=0, atol=1e-9)
        scores = result.val_metrics | {f"test {name}": value for name, value in result.metrics.items()}
        assert part["scores"] == pytest.approx(scores, abs=1e-12)
        assert part["best"] == result.best_epoch
        assert part["sent"] == part["predicted"]
        assert part["sent in training"] == part["predicted in training"]
    assert (graphs.by_row(found, "outputs") - outputs).abs().max() < 1e-9


@pytest.mark.parametrize("size", [1, 2, 3])
def test_training_nodes_equals_the_single_process(size, spread, graphs, tmp_path):
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", size, split=split)
    cases = list(node_cases())
    told = [("node", settings, {}, CONFIG | {"penalty": 0.01}) for settings in cases]
    found = spread("learn", size, shards=str(tmp_path / "shards"), cases=told, epochs=EPOCHS)
    for i, settings in enumerate(cases):
        wanted = expected(NodeClassification(data, split), settings, penalty=0.01)
        compare([part[i] for part in found], wanted, graphs)
    if size > 1:
        assert found[0][0]["sent"] > 0


@pytest.mark.parametrize("size", [2, 3])
def test_sparse_features_and_weights_equal_the_single_process(size, spread, graphs, tmp_path):
    data, split = graphs.random(weighted=True)
    data.x = torch.where(data.x > 1, data.x, 0)
    dense, data.x = data.x, data.x.to_sparse_csr()
    partition_data(data, tmp_path / "shards", size, split=split, method="contiguous")
    cases = [
        {"hidden_channels": 8, "num_layers": 2, "cached": True, "feature_graph": graph}
        for graph in ("none", "correlation", "spectral")
    ]
    cases[2]["feature_graph_kwargs"] = {"rank": 4}
    cases[1]["feature_graph_kwargs"] = {"neighbours": 3}
    told = [("node", settings, {}, CONFIG) for settings in cases]
    found = spread("learn", size, shards=str(tmp_path / "shards"), cases=told, epochs=EPOCHS)
    data.x = dense
    for i, settings in enumerate(cases):
        compare([part[i] for part in found], expected(NodeClassification(data, split), settings), graphs)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_predicting_links_equals_the_single_process(size, spread, graphs, tmp_path):
    data, _ = graphs.random()
    partition_data(data, tmp_path / "shards", size)
    settings = {"hidden_channels": 8, "num_layers": 2, "cached": True}
    told = [("link", settings, {"negatives": "fixed", "embedding_channels": 6}, CONFIG)]
    found = [part[0] for part in spread("learn", size, shards=str(tmp_path / "shards"), cases=told, epochs=EPOCHS)]
    pairs = {
        part: [torch.cat([f["pairs"][part][kind] for f in found], dim=1) for kind in (0, 1)]
        for part in ("train", "val", "test")
    }
    check_pairs(pairs, data, found)
    # The library's own task, told to ask about the very same pairs.
    task = LinkPrediction(data, embedding_channels=6, negatives="fixed")
    task.positives = {part: both[0] for part, both in pairs.items()}
    task.fixed_negatives = {part: both[1] for part, both in pairs.items()}
    edges = pairs["train"][0]
    task.edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    compare(found, expected(task, settings), graphs)


def check_pairs(pairs, data, found):
    """Every edge is in one part, and no negative is an edge or in two parts."""
    edges = {tuple(sorted(pair)) for pair in data.edge_index.t().tolist()}
    seen = [tuple(sorted(pair)) for both in pairs.values() for pair in both[0].t().tolist()]
    assert sorted(seen) == sorted(edges)
    negatives = {part: {tuple(sorted(pair)) for pair in both[1].t().tolist()} for part, both in pairs.items()}
    assert not set.union(*negatives.values()) & edges
    assert sum(map(len, negatives.values())) == len(set.union(*negatives.values()))
    for both in pairs.values():
        assert both[0].size(1) == both[1].size(1) > 0
        assert (both[1][0] != both[1][1]).all()


def test_pairs_do_not_depend_on_the_number_of_processes(spread, graphs, tmp_path):
    data, _ = graphs.random()
    told = [("link", {"hidden_channels": 4, "num_layers": 1}, {"embedding_channels": 4}, CONFIG)]
    seen = []
    for size, method in ((1, "contiguous"), (2, "random"), (3, "neighbours")):
        partition_data(data, tmp_path / str(size), size, method=method)
        found = [part[0] for part in spread("learn", size, shards=str(tmp_path / str(size)), cases=told, epochs=2)]
        listed = [torch.cat([f["pairs"][p][kind] for f in found], dim=1) for p in ("val", "test") for kind in (0, 1)]
        listed += [torch.cat([f["fresh"][kind] for f in found], dim=1) for kind in (0, 1)]
        seen.append([sorted(map(tuple, pairs.t().tolist())) for pairs in listed] + [found[0]["losses"]])
    assert seen[0][:-1] == seen[1][:-1] == seen[2][:-1]
    assert np.allclose(seen[0][-1], seen[1][-1], rtol=0, atol=1e-9)
    assert np.allclose(seen[0][-1], seen[2][-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("drops_input", [False, True])
def test_dropout_drops_the_same_whatever_the_number_of_processes(spread, graphs, tmp_path, drops_input):
    data, split = graphs.random()
    masks, losses = [], []
    for size in (1, 2, 3):
        partition_data(data, tmp_path / str(size), size, split=split, method="random")
        found = spread("masks", size, shards=str(tmp_path / str(size)), p=0.3, drops_input=drops_input)
        for epoch in (1, 2):
            for part in found:
                part[f"epoch {epoch}"] = torch.stack(part["kept"][epoch], dim=1)
        masks.append(torch.stack([graphs.by_row(found, f"epoch {epoch}") for epoch in (1, 2)]))
        losses.append(found[0]["losses"])
        assert all(part["evaluates"] for part in found), "a model that was trained drops nothing any more"
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])
    assert np.allclose(losses[0], losses[1], rtol=0, atol=1e-9)
    assert np.allclose(losses[0], losses[2], rtol=0, atol=1e-9)
    drawn = masks[0].reshape(4, -1)
    assert abs(float(drawn.double().mean()) - 0.7) < 0.03
    for i in range(4):
        for j in range(i):  # epochs and layers have nothing to do with each other
            assert abs(float(torch.corrcoef(drawn[[i, j]].double())[0, 1])) < 0.12


def test_a_graph_without_a_split_gets_one_that_no_process_count_changes(spread, graphs, tmp_path):
    data, _ = graphs.random()
    losses = []
    for size in (1, 2):
        partition_data(data, tmp_path / str(size), size)
        found = spread("run", size, shards=str(tmp_path / str(size)))
        losses.append(found[0]["losses"])
    assert np.allclose(losses[0], losses[1], rtol=0, atol=1e-9)


def test_predictions_equal_the_outputs_of_the_model(spread, graphs, tmp_path):
    data, split = graphs.random()
    shards, model = tmp_path / "shards", tmp_path / "model"
    partition_data(data, shards, 2, split=split)
    found = spread("run", 2, shards=str(shards), save=str(model))
    restored = BiGCN.from_pretrained(model).double().eval()
    with torch.no_grad():
        outputs = restored(data.x, data.edge_index)
    assert (graphs.by_row(found, "outputs") - outputs).abs().max() < 1e-9
    assert not list(tmp_path.glob("*.run.safetensors"))


def test_classes_without_names_are_called_by_their_numbers(graphs, tmp_path):
    data, _ = graphs.random(classes=3)
    data.y = None
    partition_data(data, tmp_path / "shards", 1)
    with joined() as processes:
        predictions = predict_shards(tmp_path / "shards", processes, BiGCN(12, 4, 2, out_channels=3))
    assert predictions.classes == ("0", "1", "2")


def test_data_that_is_not_tidy_is_refused(tmp_path):
    loop = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 2], [1, 0, 2]]))
    with pytest.raises(ValueError, match="both directions"):
        partition_data(loop, tmp_path / "shards", 1)
