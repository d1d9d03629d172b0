import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn import BiGCN
from bigcn.feature_graphs.learnable_packing import (
    ALIGN,
    STRIP,
    pack,
    packed_numel,
    packed_size,
    strip_views,
    strips,
    unpack,
)

SIZES = [1, 2, ALIGN, ALIGN + 1, STRIP - 1, STRIP, STRIP + 1, 2 * STRIP + 40]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (3,)])
def test_unpacking_gives_back_the_triangle(size, members):
    square = torch.randn(*members, size, size)
    packed = pack(square)
    assert packed.shape == (*members, packed_numel(size))
    assert torch.equal(unpack(packed, size), square.triu(1))
    assert torch.count_nonzero(packed) == torch.count_nonzero(square.triu(1))
    assert torch.equal(unpack(torch.full_like(packed, 3.0), size), torch.full_like(square, 3.0).triu(1))


@given(st.integers(1, 30_000))
@settings(max_examples=50, deadline=None)
def test_sizes(size):
    last = strips(size)[-1]
    assert last.offset + last.rows * last.width == packed_numel(size)
    assert packed_size(packed_numel(size)) == size
    assert packed_numel(size) < size**2 / 2 + size * (STRIP + 2 * ALIGN)
    with pytest.raises(ValueError, match="no number of features"):
        packed_size(packed_numel(size) + 1)


@pytest.mark.parametrize("size", SIZES)
def test_strips_are_views_with_aligned_rows(size):
    square = torch.randn(2, size, size)
    packed = pack(square)
    for strip, matrix in zip(strips(size), strip_views(packed, size), strict=True):
        assert strip.offset % ALIGN == 0
        assert strip.width % ALIGN == 0
        assert matrix.untyped_storage().data_ptr() == packed.untyped_storage().data_ptr()
        assert torch.equal(matrix, square.triu(1)[:, strip.start : strip.stop, strip.start :])
    for strip, matrix in zip(strips(size), strip_views(packed, size, aligned=True), strict=True):
        assert matrix.shape == (2, strip.rows, strip.width)
        assert not matrix[..., size - strip.start :].any()
    # Of a member as well, which begins somewhere in memory.
    for matrix, both in zip(strip_views(packed[1], size), strip_views(packed, size), strict=True):
        assert torch.equal(matrix, both[1])


def test_gradient_of_unpacking():
    size = STRIP + 9
    packed = torch.zeros(packed_numel(size), requires_grad=True)
    direction = torch.randn(size, size)
    (unpack(packed, size) * direction).sum().backward()
    assert torch.equal(packed.grad, pack(direction))


def test_the_format_of_stored_models():
    """Another layout would read stored models wrongly: this test is not to be changed along with the constants."""
    packed = pack(torch.arange(130.0 * 130).view(130, 130))
    assert packed.numel() == 128 * 144 + 2 * 16
    assert packed[:3].tolist() == [0, 1, 2]
    assert packed[144:148].tolist() == [0, 0, 132, 133]
    assert packed[128 * 144 : 128 * 144 + 3].tolist() == [0, 128 * 130 + 129, 0]


def test_a_model_stored_with_squares_is_read():
    model = BiGCN(7, 4, 2, 3, feature_graph="learnable")
    old = {key: value for key, value in model.state_dict().items() if "logits" not in key}
    old |= {f"convs.{i}.feature_graph.logits": conv.feature_graph.logits + 1 for i, conv in enumerate(model.convs)}
    for other in (BiGCN(7, 4, 2, 3, feature_graph="learnable"), BiGCN(-1, 4, 2, 3, feature_graph="learnable")):
        other.load_state_dict(old)
        for mine, theirs in zip(model.convs, other.convs, strict=True):
            assert torch.equal(theirs.feature_graph.logits, (mine.feature_graph.logits + 1).triu(1))
