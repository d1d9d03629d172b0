"""A search that is interrupted anywhere, any number of times, ends as if it had not been."""

from dataclasses import replace

import pytest
import torch

from bigcn.estimators import BiGCNClassifier

SETTINGS = {"max_epochs": 6, "settings": {"hidden_channels": 8}, "seed": 3}


@pytest.fixture(scope="module")
def whole(graph):
    return BiGCNClassifier(**SETTINGS).fit(graph)


@pytest.mark.parametrize("every", [2, 17])
def test_resumed_is_undisturbed(whole, graph, tmp_path, every):
    asked = 0

    def now_and_then(candidate, progress):
        nonlocal asked
        asked += 1
        return asked % every == 0

    found = BiGCNClassifier(**SETTINGS).fit(graph, on_epoch=now_and_then)
    stops = 0
    while found.interrupted_:
        stops += 1
        assert found.report_ is None
        assert found.predict(graph).shape == (75,)  # the best so far
        found.save(tmp_path / "model", overwrite=True)
        found = BiGCNClassifier.load(tmp_path / "model").resume(graph, on_epoch=now_and_then)
    assert stops >= 3
    assert found.report_ == whole.report_
    assert [(t.name, t.score, t.loss, t.epochs) for t in found.trials_] == [
        (t.name, t.score, t.loss, t.epochs) for t in whole.trials_
    ]
    for name, tensor in whole.model_.state_dict().items():
        assert torch.equal(tensor, found.model_.state_dict()[name]), name


def test_the_best_so_far_is_the_best_so_far(graph):
    seen: list[float] = []

    def stop_in_the_third(candidate, progress):
        seen.append(progress.best_score)
        return len(seen) == 15  # the third candidate, in its third epoch

    stopped = BiGCNClassifier(**SETTINGS).fit(graph, on_epoch=stop_in_the_third)
    assert len(stopped.trials_) == 2
    best = max(*(trial.score for trial in stopped.trials_), seen[-1])
    predicted = stopped.predict_proba(graph).argmax(axis=1)
    val = stopped._ordered.order[stopped.split_.val]
    assert (predicted[val] == graph.data.y[val].numpy()).mean() == pytest.approx(best)


@pytest.mark.parametrize(("finished", "unfinished"), [(0.0, True), (2.0, False)])
def test_an_unfinished_candidate_counts_with_its_best_epoch(graph, finished, unfinished):
    asked: list[str] = []

    def stop_in_the_second(candidate, progress):
        asked.append(candidate.name)
        return len(asked) == 9

    search = BiGCNClassifier(**SETTINGS).fit(graph, on_epoch=stop_in_the_second)._search
    search.trials = [replace(trial, score=finished) for trial in search.trials]
    model, chosen = search.best_model()
    assert chosen.name == (asked[-1] if unfinished else asked[0])
    expected = search.session.best_state if unfinished else search.best_state
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())


def test_another_graph_cannot_be_gone_on_with(graph, make_graph, tmp_path):
    stopped = BiGCNClassifier(**SETTINGS).fit(graph, on_epoch=lambda candidate, progress: True)
    stopped.save(tmp_path / "model")
    with pytest.raises(ValueError, match="not the graph"):
        BiGCNClassifier.load(tmp_path / "model").resume(make_graph(seed=9))
    # The same graph in another order is the same graph.
    again = BiGCNClassifier.load(tmp_path / "model").resume(make_graph(shuffle=2), on_epoch=lambda *_: True)
    assert again.interrupted_


def test_what_came_to_its_end_stays(whole, graph):
    before = whole.report_
    assert whole.resume(graph).report_ is before


def test_equal_candidates_and_seeds_give_equal_models(graph):
    first, second = (BiGCNClassifier(search=False, **SETTINGS).fit(graph) for _ in range(2))
    torch.manual_seed(99)
    for name, tensor in first.model_.state_dict().items():
        assert torch.equal(tensor, second.model_.state_dict()[name])
