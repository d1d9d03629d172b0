"""Dropout against what PyTorch's does."""

import pytest
import torch

from bigcn import BiGCN, BiGCNConv
from bigcn.nn.cache import TensorCache
from bigcn.nn.product_layers import Dropout, drop_features


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_drops_a_share_and_scales_the_rest(p, dtype):
    torch.manual_seed(0)
    x = torch.rand(400, 500, dtype=dtype) + 0.5
    dropout = Dropout(p)
    out = dropout(x)
    assert out.dtype == dtype
    kept = out != 0
    # Six standard deviations of a binomial of 200,000 draws.
    assert abs(float((~kept).double().mean()) - p) <= 6 * (p * (1 - p) / x.numel()) ** 0.5
    torch.testing.assert_close(out[kept], x[kept] / (1 - p))
    assert dropout.eval()(x) is x


def test_gradients_go_where_values_went():
    torch.manual_seed(0)
    x = torch.ones(30, 40, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_rows_and_columns_are_drawn_apart_and_anew():
    torch.manual_seed(0)
    dropout = Dropout(0.5)
    first, second = (dropout(torch.ones(1000, 64)) for _ in range(2))
    agree = (first == second).double().mean()
    assert abs(float(agree) - 0.5) < 0.02
    assert torch.linalg.matrix_rank(first) == 64


def test_compiled_and_mapped_it_drops_without_a_word(recwarn):
    compiled = torch.compile(Dropout(0.5), backend="eager", fullgraph=True)
    mapped = torch.func.vmap(Dropout(0.5), randomness="different")
    for out in (compiled(torch.ones(200, 300)), mapped(torch.ones(2, 100, 300))):
        assert set(out.unique().tolist()) == {0.0, 2.0}
        assert abs(float(out.mean()) - 1) < 0.03
    assert not [warning for warning in recwarn if "performance" in str(warning.message)]


def test_everything_may_be_dropped():
    assert torch.equal(Dropout(1.0)(torch.ones(3, 4)), torch.zeros(3, 4))


def test_the_model_drops_that_way():
    model = BiGCN(4, 8, 2, 3, dropout=0.3)
    assert isinstance(model.dropout, Dropout)
    assert model.dropout.p == 0.3


def test_of_features_that_are_mostly_zero_the_others_are_drawn():
    torch.manual_seed(0)
    x = torch.where(torch.rand(400, 500) < 0.1, torch.rand(400, 500) + 0.5, 0)
    entries = TensorCache(1)
    first, second = (drop_features(x, 0.4, True, entries) for _ in range(2))
    assert len(entries) == 1
    assert not torch.equal(first, second)
    for out in (first, second):
        assert not (out[x == 0]).any()
        kept = out != 0
        torch.testing.assert_close(out[kept], x[kept] / 0.6)
        # Six standard deviations of a binomial of 20,000 draws.
        assert abs(float(kept[x != 0].double().mean()) - 0.6) < 6 * (0.24 / int((x != 0).sum())) ** 0.5
    x.mul_(2)  # edited in place: what was kept of it no longer counts
    again = drop_features(x, 0.4, True, entries)
    torch.testing.assert_close(again[again != 0], x[again != 0] / 0.6)
    assert drop_features(x, 0.4, False, entries) is x


@pytest.mark.parametrize("cached", [False, True])
def test_the_input_is_dropped_if_asked_for(cached):
    torch.manual_seed(0)
    x, edge_index = torch.randn(9, 4), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    settings = {"dropout": 0.5, "cached": cached, "feature_graph": "none"}
    usual, dropping = BiGCN(4, 8, 2, 3, **settings), BiGCN(4, 8, 2, 3, drops_input=True, **settings)
    assert [conv.dropout is not None for conv in dropping.convs] == [True, False]
    assert dropping.convs[0].dropout.p == 0.5
    assert all(conv.dropout is None for conv in usual.convs)
    first, second = (dropping.convs[0](x, edge_index) for _ in range(2))
    assert not torch.equal(first, second)
    usual.load_state_dict(dropping.state_dict())
    torch.testing.assert_close(usual.eval()(x, edge_index), dropping.eval()(x, edge_index))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("channels", [(40, 4), (4, 40)])
def test_dropout_alone_can_be_in_training(channels, cached):
    torch.manual_seed(0)
    x, edge_index = torch.randn(9, channels[0]), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    conv = BiGCNConv(*channels, dropout=0.5, cached=cached).eval()
    assert torch.equal(conv(x, edge_index), conv(x, edge_index))
    conv.dropout.train()
    assert not torch.equal(conv(x, edge_index), conv(x, edge_index))


def test_what_is_known_of_features_is_forgotten_with_them():
    x, edge_index = torch.eye(9), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    conv = BiGCNConv(9, 4, node_strength=0.0, dropout=0.5, cached=True)
    conv(x, edge_index)
    assert len(conv._entries) == 1
    conv.reset_parameters()
    assert len(conv._entries) == 0
    conv(x.expand(2, 9, 9), edge_index)
    assert len(conv._entries) == 0, "a batch is filtered anew in every step"


def test_features_stay_where_they_are():
    x = torch.eye(9)
    with torch.device("meta"):
        assert drop_features(x, 0.5, True, TensorCache()).device == x.device


def test_nothing_is_dropped_with_a_probability_of_zero():
    assert BiGCN(4, 8, 2, 3, dropout=0.0, drops_input=True).convs[0].dropout is None
