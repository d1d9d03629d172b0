import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report import write_page
from bigcn.report.page import render_page

COMMAND = "bigcn compare --dataset digits --models 'a b'"
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Outline(HTMLParser):
    """Reads a page strictly: what is opened is closed, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> stands twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module")
def page(result: ComparisonResult) -> str:
    return render_page(result, COMMAND)


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def test_file_is_written_whole(result: ComparisonResult, page: str, tmp_path: Path, folder_is_tidy) -> None:
    path = write_page(tmp_path / "out" / "page.html", result, COMMAND)
    assert path.read_text(encoding="utf-8") == page  # and the same result gives the same page
    assert path.stat().st_size < 400_000
    folder_is_tidy()


def test_it_answers_the_question(outline: Outline, result: ComparisonResult) -> None:
    text = " ".join(" ".join(outline.text).split())
    assert "Which model labels the nodes of Digits best when every feature of every node carries noise?" in text
    assert result.verdict().split(" %")[0] in text
    for row in result.rows():
        assert f"{100 * row['mean']:.1f}" in text
        assert f"± {100 * row['std']:.1f}" in text
    assert COMMAND in " ".join("".join(outline.text).split())
    assert "the graph is simulated" in text
    for spec, _ in result.pairs:
        assert spec.key in text
    assert result.pairs[0][0].dataset_fingerprint in text
    assert "Nothing: all 36 runs came to an end." in text
    assert "Not low-pass" in text
    assert "at most 2 neighbours: " in text
    assert "Left out, too few to judge by: test nodes with no neighbour (" in text


def test_nothing_is_loaded_and_nothing_runs(page: str, outline: Outline) -> None:
    for attributes in outline.all("a", "link", "img", "image", "use", "iframe", "form", "object", "embed"):
        target = attributes.get("src") or attributes.get("href") or ""
        assert target.startswith(("data:", "#"))
    assert outline.all("script", "iframe", "form", "object", "embed", "base") == []
    assert not [name for _, attributes in outline.tags for name in attributes if name.startswith("on")]
    assert re.findall(r"https?://", page) == []
    assert "@import" not in page
    assert re.findall(r"url\(", page) == []
    (policy,) = [meta["content"] for meta in outline.all("meta") if "http-equiv" in meta]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "script" not in policy


def test_it_can_be_read_aloud(outline: Outline) -> None:
    assert outline.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(attributes.get("alt") for attributes in outline.all("img"))
    assert all(attributes.get("scope") for attributes in outline.all("th"))
    for svg in outline.all("svg"):
        assert svg.get("aria-hidden") == "true" or (svg.get("role") == "img" and svg.get("aria-label"))
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in outline.tags:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids


def test_points_carry_their_numbers(page: str) -> None:
    assert page.count('class="point"') == 12
    assert "<title>GCN at 0.9: 51.5 ± 0.2 % over 3 seeds</title>" in page


def test_names_cannot_break_out(nasty: ComparisonResult) -> None:
    page = render_page(nasty, "bigcn <script>alert(3)</script>")
    outline = Outline(page)
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "49" not in [text.strip() for text in outline.text]
    assert outline.all("script") == []
    assert not [name for _, attributes in outline.tags for name in attributes if name.startswith("on")]
    # It is all there to read: as the name of a model in a label of a picture, in a table, in settings, in an error.
    assert any("<script>alert(1)</script>" in (svg.get("aria-label") or "") for svg in outline.all("svg"))
    assert "".join(outline.text).count("<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>{{7*7}}") > 20
    assert "The data themselves are not shown" in page


def test_failures_are_told(make_result) -> None:
    lost = make_result(case="structure-mistakes", values=(0.001, 0.01), failing=(("gcn", 0.01),))
    page = render_page(lost, COMMAND)
    assert "3 of 24 runs failed; they are in no mean above." in page
    assert page.count("the loss became NaN") == 3
    assert '<td class="missing">failed' in page
    assert page.count('class="point"') == 7


def test_nothing_succeeded(make_result) -> None:
    lost = make_result(models=("gcn",), case="clean", values=(), failing=(("gcn", None),))
    page = render_page(lost, COMMAND)
    Outline(page)
    assert "No run succeeded." in page
    assert page.count('class="point"') == 0


def test_clean_links(make_result) -> None:
    page = render_page(make_result(task="link", case="clean", values=()), COMMAND)
    Outline(page)
    assert "ROC-AUC" in page
    assert "Where the graph helps least" not in page
    assert "Before and after" not in page


def test_large_comparisons_stay_small(make_result) -> None:
    models = (*(f"bigcn:k={k}" for k in range(1, 7)), "gcn", "gat", "mlp", "sgc")
    large = make_result(
        models=models, case="structure-mistakes", values=tuple(0.001 * (i + 1) for i in range(9)), seeds=tuple(range(9))
    )
    assert len(render_page(large, COMMAND).encode()) < 400_000


def test_one_seed_marks_no_ties(make_result) -> None:
    page = render_page(make_result(seeds=(10,)), COMMAND)
    assert "≈" not in page
    assert "cannot be told from the best" not in page
    assert "One seed cannot tell models apart." in page
    assert "≈" in render_page(make_result(), COMMAND)
