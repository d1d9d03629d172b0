"""The page in a real browser. `make browser` installs one."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report import write_page

OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# The lowest contrast of any text with what is behind it, and the text it belongs to.
CONTRAST = """
const channels = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = node => {
  for (; node; node = node.parentElement) {
    const colour = channels(getComputedStyle(node).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
};
let lowest = [21, ''];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].filter(n => n.nodeType === 3 && n.textContent.trim());
  const shown = node.closest('title, style') === null && node.getClientRects().length;
  if (!own.length || !shown) continue;
  const style = getComputedStyle(node);
  const [a, b] = [light(channels(node.closest('svg') ? style.fill : style.color)), light(behind(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < lowest[0]) lowest = [ratio, own[0].textContent.trim()];
}
return lowest;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "no Chromium on this machine: `make browser` installs it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options, Service(executable_path=driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def page(result: ComparisonResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page") / "page.html", result, "bigcn compare --dataset digits")


def look(browser: Any, page: Path, width: int = 1280, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.as_uri())


def background(browser: Any) -> str:
    return str(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize("width", [375, 1280])
def test_no_errors_and_no_sideways_scroll(browser: Any, page: Path, nasty, tmp_path: Path, width: int) -> None:
    for path in (page, write_page(tmp_path / "nasty.html", nasty, "x" * 300)):
        look(browser, path, width)
        # What is folded away must fit, too.
        browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert [entry for entry in browser.get_log("browser") if entry["level"] != "DEBUG"] == []


def test_charts_have_their_data(browser: Any, page: Path, result: ComparisonResult) -> None:
    look(browser, page)
    boxes = browser.execute_script(
        "const frame = document.querySelector('#chart .chart').getBoundingClientRect();"
        "return [...document.querySelectorAll('#chart .point')].map(point => {"
        " const box = point.querySelector('.mark').getBoundingClientRect();"
        " return [point.querySelector('title').textContent, box.width > 5, box.left > frame.left,"
        "  box.right < frame.right, box.top > frame.top, box.bottom < frame.bottom]; })"
    )
    assert len(boxes) == len(result.comparison.models) * len(result.comparison.values)
    assert all(all(box[1:]) for box in boxes)
    assert len({box[0] for box in boxes}) == len(boxes)
    assert browser.execute_script("return document.querySelectorAll('#chart .legend li').length") == 4


def test_pictures_are_there(browser: Any, page: Path) -> None:
    look(browser, page)
    sizes = browser.execute_script("return [...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])")
    assert len(sizes) == 5  # four strips of digits and the feature graph
    assert all(complete and natural > 0 and shown > natural for complete, natural, shown in sizes)
    assert browser.execute_script("return document.querySelectorAll('.heat image').length") == 2


def test_dark_and_light(browser: Any, page: Path) -> None:
    papers = set()
    for scheme in ("light", "dark"):
        look(browser, page, scheme=scheme)
        papers.add(background(browser))
        ratio, text = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, f"{text!r} on {scheme} paper"
        marks = browser.execute_script(
            "return [...document.querySelectorAll('#chart .mark')].map(mark => getComputedStyle(mark).fill)"
        )
        assert all(contrast(mark, background(browser)) >= 3 for mark in marks)
    assert len(papers) == 2


def test_print_is_light(browser: Any, page: Path) -> None:
    look(browser, page)
    light = background(browser)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert background(browser) == light
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_names_stay_names(browser: Any, nasty: ComparisonResult, tmp_path: Path) -> None:
    from selenium.common.exceptions import NoAlertPresentException

    look(browser, write_page(tmp_path / "nasty.html", nasty, "<script>alert(3)</script>"))
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert.accept()
    assert browser.execute_script("return document.querySelectorAll('script, [onerror], img[src=x]').length") == 0
    assert "<script>alert(1)</script>" in browser.execute_script("return document.querySelector('h1').textContent")
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []


def contrast(first: str, second: str) -> float:
    def light(colour: str) -> float:
        shares = [int(part) / 255 for part in colour[4:-1].split(",")]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)
