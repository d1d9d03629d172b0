import doctest
import hashlib
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from bigcn.datasets import digits, get_spec, load_dataset


def test_images_are_real():
    data, images = digits(), load_digits()
    assert data.x.dtype == torch.float32
    assert data.x.shape == (1797, 64)
    assert (data.x.min(), data.x.max()) == (0, 1)
    np.testing.assert_array_equal(data.x.numpy() * 16, images.data)
    np.testing.assert_array_equal(data.y.numpy(), images.target)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_graph_facts(seed):
    data = digits(seed)
    source, target = data.edge_index
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    assert data.num_edges / data.num_nodes == 6
    within = (data.y[source] == data.y[target]).float().mean()
    assert within == pytest.approx(0.8, abs=1e-4)


def test_classes_have_the_same_degree():
    data = digits()
    degree = torch.bincount(data.edge_index[0], minlength=1797).float()
    for kind in range(10):
        assert degree[data.y == kind].mean() == pytest.approx(6, rel=0.1)


def test_seed_determines_the_graph():
    assert torch.equal(digits(3).edge_index, digits(3).edge_index)
    assert not torch.equal(digits(3).edge_index, digits(4).edge_index)
    assert torch.equal(digits(3).x, digits(4).x)


def test_graph_is_the_same_on_every_machine():
    content = digits().edge_index.numpy().astype("<i8").tobytes()
    assert hashlib.sha256(content).hexdigest() == "0ef6c1b9461f1bbd5a048df333098d4097445bd65a2ccaca313262f601ea112c"


def test_global_state_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    digits(1)
    assert np.array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())


def test_negative_seed():
    with pytest.raises(ValueError, match="seed must not be negative"):
        digits(-1)


def test_registered():
    spec, data = get_spec("digits"), load_dataset()
    assert torch.equal(data.edge_index, digits().edge_index)
    assert (spec.nodes, spec.edges, spec.features) == (1797, data.num_edges // 2, 64)
    assert len(spec.feature_names) == 64
    assert spec.feature_names[3 * 8 + 4] == "pixel 3,4"


def test_docstring():
    # The function hides the module of the same name.
    assert doctest.testmod(sys.modules["bigcn.datasets.digits"]).failed == 0
