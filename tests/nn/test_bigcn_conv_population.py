"""Layers of many models at once, with torch.func.vmap, against one after the other."""

import copy

import pytest
import torch

from bigcn import BiGCN

N, D, H = 9, 5, 3  # nodes and features of the small inputs, and outputs
MEMBERS = {
    "same settings": [{"seed": 0}, {"seed": 1}, {"seed": 2}],
    "own settings": [
        {"p": 3.0, "node_strength": 1.8, "feature_strength": 0.5},
        {"p": 0.1, "node_strength": 0.8, "feature_strength": 1.8},
        {"p": 8.5, "node_strength": 1.2, "feature_strength": 0.01},
    ],
}


def population(kind, name, form, cached):
    models = []
    for options in MEMBERS[kind]:
        options = {key: value for key, value in options.items() if key != "seed"}
        kwargs = {"rank": 2} if name == "spectral" else None
        models.append(
            BiGCN(
                D,
                4,
                2,
                H,
                feature_graph=name,
                feature_graph_kwargs=kwargs,
                node_filter=form,
                feature_filter=form,
                check_low_pass=False,
                cached=cached,
                **options,
            )
            .double()
            .eval()
        )
    params, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0])

    def run(params, buffers, x, edge_index):
        return torch.func.functional_call(base, (params, buffers), (x, edge_index))

    return models, params, buffers, run


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("own_features", [False, True])
@pytest.mark.parametrize(
    ("kind", "form"), [("same settings", "taylor"), ("same settings", "exact"), ("own settings", "taylor")]
)
@pytest.mark.parametrize("name", ["learnable", "uniform", "identity", "none", "correlation", "spectral"])
def test_a_population_is_its_members(oracle, small_inputs, name, kind, form, own_features, cached):
    x, edge_index = small_inputs(torch.float64)
    models, params, buffers, run = population(kind, name, form, cached)
    features = torch.randn(3, N, D, dtype=torch.float64) if own_features else x
    vmapped = torch.func.vmap(run, in_dims=(0, 0, 0 if own_features else None, None))
    for _ in range(2):  # the second time from the cache
        out = vmapped(params, buffers, features, edge_index)
        for i, model in enumerate(models):
            expected = model(features[i] if own_features else x, edge_index)
            assert oracle.distance(out[i], expected) < 1e-9
    out.square().sum().backward()
    for i, model in enumerate(models):
        expected = model(features[i] if own_features else x, edge_index).square().sum()
        for key, parameter in model.named_parameters():
            gradient = torch.autograd.grad(expected, parameter, retain_graph=True)[0]
            assert oracle.distance(params[key].grad[i], gradient) < 1e-9, key
