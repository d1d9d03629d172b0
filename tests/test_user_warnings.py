import pytest
import torch
from torch_geometric.nn import Sequential

from bigcn import BiGCN, smooth
from bigcn.filters import NotLowPassWarning
from bigcn.smoothing.solvers import ConvergenceWarning

DIRECTED = torch.tensor([[0, 1], [1, 2]])


def warned_by(call, category=UserWarning):
    with pytest.warns(category) as caught:
        call()
    return {warning.filename for warning in caught if issubclass(warning.category, category)}


def test_making_a_model_names_the_line_that_makes_it():
    assert warned_by(lambda: BiGCN(4, 8, 2, 3, node_filter="taylor", node_strength=1.8), NotLowPassWarning) == {
        __file__
    }


def test_a_call_through_modules_of_others_names_the_line_of_the_call():
    model = Sequential("x, edge_index", [(BiGCN(4, 8, 2, 3), "x, edge_index -> x")])
    assert warned_by(lambda: model(torch.rand(3, 4), DIRECTED)) == {__file__}


def test_smoothing_names_the_line_that_smooths():
    path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    edges = torch.cat([path, path.flip(0)], dim=1)
    x = torch.rand(4, 3, dtype=torch.float64)
    settings = {"lambda1": 50.0, "lambda2": 50.0, "method": "admm", "p": 1e-3}
    assert warned_by(lambda: smooth(x, edges, "correlation", **settings), ConvergenceWarning) == {__file__}
