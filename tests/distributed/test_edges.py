import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from bigcn.distributed.edges import EdgeSorter


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    nodes=st.integers(1, 30),
    edges=st.integers(0, 120),
    bucket=st.integers(1, 80),
    weighted=st.booleans(),
)
def test_sorting_through_buckets_equals_scipy(seed, nodes, edges, bucket, weighted, tmp_path_factory):
    generator = np.random.default_rng(seed)
    source, target = generator.integers(nodes, size=(2, edges))
    weight = generator.random(edges) if weighted else None
    folder = tmp_path_factory.mktemp("sorter")
    sorter = EdgeSorter(folder, nodes, edges, weighted, bucket)
    for piece in np.array_split(np.arange(edges), 3):
        sorter.add(source[piece], target[piece], None if weight is None else weight[piece])
    graph = sorter.finish()

    proper = source != target
    low, high = np.minimum(source, target)[proper], np.maximum(source, target)[proper]
    values = np.ones(len(low)) if weight is None else weight[proper]
    upper = coo_array((values, (low, high)), shape=(nodes, nodes)).toarray()
    wanted = upper + upper.T
    found = np.zeros((nodes, nodes))
    row = graph.row_numbers(0, nodes)
    found[row, graph.col] = 1 if graph.weight is None else graph.weight
    assert np.array_equal(found > 0, wanted > 0)
    assert (graph.weight is None) == (not weighted)
    if weighted:
        assert np.allclose(found, wanted, rtol=1e-6)
        assert np.array_equal(found, found.T)
    assert (np.diff(row * nodes + graph.col) > 0).all()
    assert sorter.self_loops == int((~proper).sum())
    assert sorter.duplicates == len(low) - int((upper > 0).sum())
    assert not list(folder.glob("bucket-*"))
