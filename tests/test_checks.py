import numpy as np
import pytest
import torch

from bigcn import BiGCNConv, BiSmoother
from bigcn.checks import is_finite, is_whole
from bigcn.feature_graphs import SpectralGraph


def test_numbers_of_numpy_are_numbers():
    for value in (3, np.int64(3), np.uint8(3)):
        assert is_whole(value)
        assert is_finite(value)
    for value in (0.5, np.float32(0.5), np.float64(0.5)):
        assert is_finite(value)
        assert not is_whole(value)
    for value in (True, "3", None, 3.0, np.bool_(True)):
        assert not is_whole(value)
    for value in ("3", None, True, np.bool_(False), np.nan, np.float32(np.inf), 1j):
        assert not is_finite(value)


def test_they_may_be_given_wherever_numbers_are():
    torch.manual_seed(0)
    plain = BiGCNConv(8, 4, p=1.0, node_strength=2.0, iterations=2)
    torch.manual_seed(0)
    conv = BiGCNConv(np.int64(8), np.int64(4), p=np.float32(1), node_strength=np.float32(2), iterations=np.int64(2))
    x, edges = torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 0, 2]])
    torch.testing.assert_close(conv(x, edges), plain(x, edges))
    assert SpectralGraph(8, rank=np.int64(4)).rank == 4
    table = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(
        BiSmoother(lambda1=np.int64(2)).fit_transform(table, graph=edges),
        BiSmoother(lambda1=2.0).fit_transform(table, graph=edges),
    )
    with pytest.raises(ValueError, match="'rank' must be a whole number"):
        SpectralGraph(8, rank=2.5)
