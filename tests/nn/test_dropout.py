"""Dropout against what PyTorch's does."""

import pytest
import torch

from bigcn import BiGCN
from bigcn.nn.product_layers import Dropout


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


def test_everything_may_be_dropped():
    assert torch.equal(Dropout(1.0)(torch.ones(3, 4)), torch.zeros(3, 4))


def test_the_model_drops_that_way():
    model = BiGCN(4, 8, 2, 3, dropout=0.3)
    assert isinstance(model.dropout, Dropout)
    assert model.dropout.p == 0.3
