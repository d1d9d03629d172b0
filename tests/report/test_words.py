import doctest
from types import SimpleNamespace

import pytest

from bigcn.experiments.comparison import PHRASES, ComparisonResult
from bigcn.report import charts, styles, words


@pytest.mark.parametrize("module", [words, styles, charts])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_every_kind_of_noise_has_its_words() -> None:
    assert set(words.AMOUNTS) == set(PHRASES) == set(words._TROUBLES)


def test_questions_name_the_graph_and_the_task(result: ComparisonResult, make_result) -> None:
    assert words.question(result.comparison) == (
        "Which model labels the nodes of Digits best when every feature of every node carries noise?"
    )
    links = make_result(task="link", case="clean", values=())
    assert words.question(links.comparison) == (
        "Which model finds the missing links of Digits best when the data are clean?"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (1.0, "1"), (20.0, "20"), (0.0, "0"), (1e-4, "0.0001"), (1e-9, "1e-09")]
)
def test_number(value: float, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (0.996, "1.0 s"), (9.96, "10.0 s"), (59.7, "1 min 0 s"), (3599.9, "1 h 0 min")]
)
def test_duration_never_shows_sixty_of_anything(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("name", "task", "asked"),
    [
        ("own:nodes", "node", "How well can these nodes be labelled?"),
        ("own:nodes", "link", "How well can these links be found?"),
        ("own:wine", "node", "How well can the nodes of wine be labelled?"),
    ],
)
def test_questions_about_a_graph_of_ones_own(name: str, task: str, asked: str) -> None:
    assert words.question(SimpleNamespace(dataset=name, task=task)) == asked
