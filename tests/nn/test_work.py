"""The work of a training step, counted instead of timed: a slow path cannot return unnoticed."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from bigcn import BiGCN
from bigcn.feature_graphs import FeatureGraph

N, D, H, C = 701, 613, 7, 3  # primes, so that sizes tell what a tensor is


class NewTensors(TorchDispatchMode):
    """Counts the tensors of some sizes that operators allocate; views and results written in place are not new."""

    def __init__(self, **sizes):
        super().__init__()
        self.sizes, self.found = sizes, dict.fromkeys(sizes, 0)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given = {
            tensor.untyped_storage().data_ptr()
            for tensor in torch.utils._pytree.tree_leaves((args, kwargs))
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
        }
        for tensor in torch.utils._pytree.tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                for name, size in self.sizes.items():
                    if 0.5 * size < tensor.numel() and tensor.untyped_storage().data_ptr() not in given:
                        self.found[name] += 1
        return out


def graph():
    source = torch.arange(N)
    return torch.cat([torch.stack([source, source.roll(1)]), torch.stack([source.roll(1), source])], dim=1)


def step(model, x, edge_index, optimizer):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edge_index), torch.arange(N) % C)
    (loss + model.penalty()).backward()
    optimizer.step()


@pytest.mark.parametrize("density", [1.0, 0.02])
def test_learnable_step_makes_two_triangles_and_nothing_as_large_as_the_features(density):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(N, D, generator=generator) * (torch.rand(N, D, generator=generator) < density)
    settings = BiGCN.published("cora") | {"hidden_channels": H}
    model, edge_index = BiGCN(D, out_channels=C, cached=True, **settings), graph()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    step(model, x, edge_index, optimizer)
    with NewTensors(square=D * D) as counted:
        step(model, x, edge_index, optimizer)
    # The triangle of the forward pass and the gradient of the backward pass. As N > D, this counts features too.
    assert counted.found["square"] == 2


@pytest.mark.parametrize("name", ["correlation", "spectral", "uniform", "identity", "none"])
@pytest.mark.parametrize("form", ["taylor", "exact"])
def test_other_graphs_make_neither(name, form):
    x, edge_index = torch.rand(N, D, generator=torch.Generator().manual_seed(0)), graph()
    model = BiGCN(
        D, H, 2, C, feature_graph=name, node_filter=form, feature_filter=form, cached=True, check_low_pass=False
    )
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    step(model, x, edge_index, optimizer)
    with NewTensors(large=min(N * D, D * D)) as counted:
        step(model, x, edge_index, optimizer)
    assert counted.found["large"] == 0


def test_strips_and_squares_agree(monkeypatch):
    """The step in strips against plain autograd on squares, values, penalty and gradients."""
    torch.manual_seed(0)
    model = BiGCN(D, out_channels=C, **(BiGCN.published("cora") | {"dropout": 0.0})).double()
    x, edge_index = torch.rand(N, D, dtype=torch.float64), graph()

    def run():
        model.zero_grad()
        loss = F.cross_entropy(model(x, edge_index), torch.arange(N) % C) + model.penalty()
        loss.backward()
        return [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]

    def plain():
        with monkeypatch.context() as changed:
            changed.setattr("bigcn.feature_graphs.LearnableGraph.powers", FeatureGraph.powers)
            return run()

    run()  # the penalty has been asked for, and takes its sums from the forward pass from now on
    for found, expected in zip(run(), plain(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    model.float()
    x = x.float()
    for found, expected in zip(run(), plain(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_sparse_features_are_found_once_and_change_nothing():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(N, D, generator=generator) * (torch.rand(N, D, generator=generator) < 0.02)
    model, edge_index = BiGCN(D, H, 2, C, feature_graph="none", cached=True).eval(), graph()
    found = model(x, edge_index)
    assert len(model.convs[0]._features) == 1
    assert len(model.convs[1]._features) == 0
    model.convs[0].cached = False
    torch.testing.assert_close(found, model(x, edge_index))
    dense = torch.rand(N, D, generator=generator)
    model.convs[0].cached = True
    torch.testing.assert_close(model(dense, edge_index), model(dense.to_sparse_csr(), edge_index))


def test_a_population_with_penalties_is_its_members():
    """Mapped over stacked parameters, the penalty too, and the same as each network alone."""
    settings = BiGCN.published("cora") | {"dropout": 0.0, "cached": True}
    models = [BiGCN(11, out_channels=C, **settings).double() for _ in range(3)]
    x, edge_index = torch.rand(N, 11, dtype=torch.float64), graph()

    class Loss(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self):
            return F.cross_entropy(self.model(x, edge_index), torch.arange(N) % C) + self.model.penalty()

    parameters, buffers = torch.func.stack_module_state([Loss(model) for model in models])
    base = Loss(models[0])
    torch.func.vmap(lambda p, b: torch.func.functional_call(base, (p, b), ()))(parameters, buffers).sum().backward()
    for member, model in enumerate(models):
        model.zero_grad()
        Loss(model)().backward()
        for key, parameter in Loss(model).named_parameters():
            torch.testing.assert_close(parameters[key].grad[member], parameter.grad, rtol=1e-9, atol=1e-12)
