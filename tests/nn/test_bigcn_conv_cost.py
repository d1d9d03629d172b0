"""What the layer computes, and no more than that: the narrow side first, and no further than it reaches."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bigcn import BiGCNConv
from bigcn.feature_graphs import SpectralGraph

N, D, H = 89, 31, 7


class Record(TorchDispatchMode):
    """Notes every operation: the shapes it read and the shapes of new memory it wrote."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = [a for a in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        written = [o for o in torch.utils._pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
        known = {memory(tensor) for tensor in read}
        new = [tuple(o.shape) for o in written if o.layout == torch.strided and memory(o) not in known]
        self.calls.append((func.overloadpacket.__name__, [tuple(a.shape) for a in read], new))
        return out

    @property
    def written(self):
        return [shape for _, _, shapes in self.calls for shape in shapes]

    def products_with(self, shape):
        names = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "spmm")
        return sum(name in names and shape in read for name, read, _ in self.calls)


def memory(tensor):
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else id(tensor)


@pytest.fixture
def recorded(make_layer, exact):
    """Records a step of a layer, forward and backward."""

    def record(kind, h=H, layout=torch.strided, **options):
        x = torch.randn(N, D, dtype=torch.float64)
        edge_index = torch.randint(N, (2, 151))
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        if kind == "spectral":  # by name it is computed from smoothed features, which is another matter
            conv = BiGCNConv(D, h, feature_graph=SpectralGraph.from_data(x, None, rank=3), **exact, **options).double()
        else:
            conv = make_layer(kind, D, h, **options)
        x = x if layout == torch.strided else x.to_sparse(layout=layout)
        conv(x, edge_index)  # fills the cache
        with Record() as forward:
            out = conv(x, edge_index)
        with Record() as backward:
            out.sum().backward()
        return forward, backward

    return record


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("kind", ["learnable", "correlation", "spectral", "uniform", "identity", "none", "given"])
def test_the_narrow_side_is_multiplied_first(recorded, kind, form, layout, cached):
    options = {"node_filter": form, "feature_filter": form, "node_strength": 1.0, "cached": cached}
    for record in recorded(kind, layout=layout, **options):
        assert not [shape for shape in record.written if shape.count(N) > 1]  # nothing of the size of all pairs
        assert not [shape for shape in record.written if N in shape and D in shape]
    forward, _ = recorded(kind, layout=torch.strided, **options)
    own = 1 if kind == "correlation" and not cached else 0  # the similarity of the columns is a product of its own
    assert forward.products_with((N, D)) == 1 + own


@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("kind", ["learnable", "uniform", "identity", "none"])
def test_the_features_are_filtered_where_that_is_cheaper(recorded, kind, form):
    forward, backward = recorded(kind, h=997, node_filter=form, feature_filter=form, node_strength=1.0)
    wide = [shape for shape in forward.written if N in shape and 997 in shape]
    assert len(wide) <= 2  # the product with the weights, and the bias
    for record in (forward, backward):
        assert not [shape for shape in record.written if shape.count(N) > 1]
    if kind in ("identity", "none"):
        assert forward.products_with((N, D)) == 1


# Reach.


@pytest.mark.parametrize(
    "options",
    [
        {"node_filter": "taylor", "iterations": 1},
        {"node_filter": "taylor", "iterations": 3},
        {"node_filter": "exact", "tolerance": 0.05, "node_strength": 2.0},
        {"node_filter": "exact", "tolerance": 1e-3, "node_strength": 0.5},
        {"node_strength": 0.0},
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_reach_is_what_num_hops_says(options, cached):
    conv = BiGCNConv(2, 3, cached=cached, p=3.0, check_low_pass=False, **{"node_strength": 0.9, **options}).double()
    reach = conv.num_hops
    size = reach + 3
    path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    edge_index = torch.cat([path, path.flip(0)], dim=1)
    x = torch.randn(size, 2, dtype=torch.float64, requires_grad=True)
    influence = torch.autograd.grad(conv(x, edge_index)[0].sum(), x)[0].abs().sum(dim=1)
    assert influence[reach] > 0
    assert not influence[reach + 1 :].any()
