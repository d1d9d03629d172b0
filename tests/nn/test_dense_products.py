"""What a layer keeps for products on a GPU: the exact node filter as a dense matrix, against an inverse and hops, and
features by columns.
"""

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, stack_module_state, vmap

from bigcn import BiGCNConv, dense_filter
from bigcn.dense_filter import constant_product, dense_pays, dense_resolvent
from bigcn.nn import kept_input
from bigcn.node_graphs import normalized_graph

N, D = 25, 6


def graph(seed=0, nodes=N):
    """A graph of which the last node has no edge."""
    adjacency = torch.rand(nodes, nodes, generator=torch.Generator().manual_seed(seed)).triu(1) > 0.8
    adjacency[-1] = adjacency[:, -1] = False
    return (adjacency | adjacency.t()).nonzero().t().contiguous()


@pytest.fixture
def dense(monkeypatch):
    """Dense filters everywhere, and how many are made."""
    made = []

    def counted(*args):
        made.append(args)
        return dense_resolvent(*args)

    monkeypatch.setattr(kept_input, "dense_pays", lambda *args: True)
    monkeypatch.setattr(kept_input, "dense_resolvent", counted)
    return made


@pytest.mark.parametrize("strength", [0.5, 10, 1000])
def test_it_is_the_inverse_that_the_filter_stands_for(strength):
    edge_index = graph()
    adjacency = np.zeros((N, N))
    adjacency[tuple(edge_index.numpy())] = 1
    degree = adjacency.sum(0)
    scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0)
    laplacian = np.diag((degree > 0).astype(float)) - scale[:, None] * adjacency * scale
    expected = np.linalg.inv(np.eye(N) + strength * laplacian)
    found = dense_resolvent(normalized_graph(edge_index, num_nodes=N, dtype=torch.float64), strength)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["none", "uniform", "spectral", "learnable"])
@pytest.mark.parametrize("width", [3, 20])
def test_output_and_gradients_are_those_of_hops(dense, name, width):
    edge_index = graph()
    x = torch.randn(N, D, dtype=torch.float64, requires_grad=True)  # as that of a hidden layer: nothing is kept of it
    torch.manual_seed(1)
    kept = BiGCNConv(D, width, feature_graph=name, cached=True, tolerance=1e-12).double()
    plain = BiGCNConv(D, width, feature_graph=name, cached=False, tolerance=1e-12).double()
    plain.load_state_dict(kept.state_dict())
    found, expected = [
        (out := conv(x, edge_index), *torch.autograd.grad(out.square().sum(), [x, *conv.parameters()]))
        for conv in (kept, plain)
    ]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    kept(x, edge_index)
    assert len(dense) == 1, "it is made once"
    kept(x, graph(1))
    assert len(dense) == 2, "and anew for another graph"


@pytest.mark.parametrize("own", [True, False], ids=["graphs of their own", "one graph"])
def test_members_are_as_if_alone(own):
    matrices = torch.stack(
        [dense_resolvent(normalized_graph(graph(seed), num_nodes=N, dtype=torch.float64), 3) for seed in range(4)]
    )
    blocks = torch.randn(4, N, 5, dtype=torch.float64)
    dim = 0 if own else None
    given = matrices if own else matrices[0]

    def energy(matrix, block):
        return constant_product(matrix, block).square().sum()

    out = vmap(constant_product, in_dims=(dim, 0))(given, blocks)
    torch.testing.assert_close(out, given @ blocks)
    grads = vmap(grad(energy, argnums=1), in_dims=(dim, 0))(given, blocks)
    torch.testing.assert_close(grads, 2 * given @ given @ blocks)
    leaf = blocks.clone().requires_grad_()
    vmap(energy, in_dims=(dim, 0))(given, leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * given @ given @ blocks)


def test_a_mapped_layer_takes_hops_where_it_was_given_nothing(dense):
    convs = [BiGCNConv(D, 2, cached=True).double() for _ in range(3)]
    parameters, buffers = stack_module_state(convs)
    x, edge_index = torch.randn(N, D, dtype=torch.float64), graph()
    out = vmap(lambda p, b: functional_call(convs[0], (p, b), (x, edge_index)))(parameters, buffers)
    torch.testing.assert_close(out, torch.stack([conv(x, edge_index) for conv in convs]), rtol=1e-4, atol=1e-4)


def test_it_takes_a_gpu_and_a_small_or_dense_graph(monkeypatch):
    matrix = normalized_graph(graph(), num_nodes=N)
    assert not dense_pays(matrix, 20), "on a CPU hops are cheap"

    class OnGPU:
        def __init__(self, entries):
            self.entries = entries

        is_cuda = True

        def numel(self):
            return self.entries

        def element_size(self):
            return 4

    def pays(nodes, entries):
        return dense_pays(matrix._replace(num_rows=nodes, value=OnGPU(entries)), 20)

    assert pays(2_708, 10_556), "few nodes"
    assert pays(13_752, 491_722), "many edges"
    assert not pays(13_752, 40_000), "neither"
    assert not pays(20_000, 10**7), "more than it may take"
    monkeypatch.setattr(dense_filter, "MAX_BYTES", 2**34)
    assert pays(20_000, 10**7)
