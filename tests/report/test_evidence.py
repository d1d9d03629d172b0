from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bigcn.datasets import DatasetUnavailable
from bigcn.experiments.comparison import ComparisonResult
from bigcn.report import evidence as module
from bigcn.report.evidence import Evidence, NoEvidence, evidence, examples
from bigcn.report.grid import grid_of
from bigcn.report.sections import data_sections


def test_it_is_the_graph_of_the_first_seed(result: ComparisonResult) -> None:
    seen = evidence(result, 0.5)
    assert (seen.seed, seen.value, seen.rank) == (5, 0.5, 16)
    assert seen.is_digits
    assert seen.error == pytest.approx(0.25, rel=0.05)


def test_rank_is_that_of_a_compared_model(make_result) -> None:
    assert evidence(make_result(models=("gcn", "bigcn:spectral+rank=8")), 0.5).rank == 8
    assert evidence(make_result(models=("bigcn:spectral+rank=64",)), 0.5).rank == 16  # 64 of 64 would say nothing


def test_smoothing_both_ways_beats_one(result: ComparisonResult) -> None:
    seen = evidence(result, 0.5)
    one, two = seen.smoothed(two_way=False), seen.smoothed(two_way=True)
    assert two.error < one.error < seen.error
    assert one.error == pytest.approx(float(np.square(one.table - seen.clean.x.numpy()).mean()))
    assert one.lambda2 == 0 < two.lambda2


def test_dropped_pixels_listen_to_nothing(make_result) -> None:
    seen = evidence(make_result(case="feature-rate"), 0.5)
    weights = seen.listening()
    assert weights.shape == (64, 64)
    assert len(seen.columns) == 32
    lost = np.setdiff1d(np.arange(64), seen.columns)
    assert not weights[lost].any()
    assert weights[seen.columns].any()


def test_first_image_of_each_digit(result: ComparisonResult) -> None:
    seen = evidence(result, 0.5)
    assert seen.clean.y[examples(seen)].tolist() == list(range(10))


def test_features_without_names_have_numbers() -> None:
    x = torch.randn(30, 12, generator=torch.Generator().manual_seed(0))
    x[:, 7] = 3 * x[:, 4]
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]))
    edges = Evidence("cora", "clean", None, 5, data, data, rank=1).strongest_edges(3)
    assert edges[0][:2] == ("feature 4", "feature 7")
    assert len(edges) == 3


def test_reasons_for_showing_nothing(nasty: ComparisonResult, make_result, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoEvidence, match="by name"):
        evidence(nasty, 0.1)
    changed = make_result()
    pairs = tuple((replace(spec, dataset_fingerprint="old"), run) for spec, run in changed.pairs)
    with pytest.raises(NoEvidence, match="another version"):
        evidence(ComparisonResult(changed.comparison, pairs), 0.1)

    def unavailable(*args: object) -> Data:
        raise DatasetUnavailable("no network")

    monkeypatch.setattr(module, "noisy_graph", unavailable)
    with pytest.raises(NoEvidence, match="not on this machine"):
        evidence(make_result(), 0.1)
    with pytest.raises(NoEvidence, match="no runs"):
        evidence(ComparisonResult(changed.comparison, ()), None)


def test_nothing_to_denoise_where_features_are_clean(make_result) -> None:
    flipped = make_result(case="structure-mistakes", values=(0.001,))
    shown = data_sections(flipped, grid_of(flipped))
    assert shown["denoised"] is None
    assert shown["features"]["uri"]
