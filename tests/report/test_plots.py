import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report import save_curves, save_responses

SVG = "{http://www.w3.org/2000/svg}"


def series_of(path: Path) -> list[str]:
    tree = ElementTree.parse(path)
    return [g.get("id", "") for g in tree.iter(f"{SVG}g") if g.get("id", "").startswith("series-")]


def texts_of(path: Path) -> list[str]:
    return ["".join(text.itertext()).strip() for text in ElementTree.parse(path).iter(f"{SVG}text")]


def test_curves_as_png_and_svg(result: ComparisonResult, tmp_path: Path, folder_is_tidy) -> None:
    png, svg = save_curves(tmp_path / "noise-0.5", result)
    assert (png.name, svg.name) == ("noise-0.5.png", "noise-0.5.svg")
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert series_of(svg) == ["series-1", "series-2", "series-3", "series-4"]
    texts = texts_of(svg)
    assert {"GCN", "MLP", "BiGCN (published)", "standard deviation of the noise", "accuracy, %"} <= set(texts)
    assert {"0.1", "0.5", "0.9"} <= set(texts)
    folder_is_tidy()


def test_dots_for_clean_data(make_result, tmp_path: Path) -> None:
    _, svg = save_curves(tmp_path / "clean.svg", make_result(case="clean", values=()))
    assert svg == tmp_path / "clean.svg"
    assert len(series_of(svg)) == 4
    assert {"GCN", "MLP", "accuracy, %"} <= set(texts_of(svg))


@pytest.mark.parametrize("save", [save_curves, save_responses])
def test_same_result_same_bytes(result: ComparisonResult, tmp_path: Path, save) -> None:
    first, second = save(tmp_path / "a", result), save(tmp_path / "b", result)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert b"<dc:date>" not in first[1].read_bytes()


def test_responses(result: ComparisonResult, make_result, tmp_path: Path) -> None:
    _, svg = save_responses(tmp_path / "filters", result)
    assert {"BiGCN (published)", "feature frequency", "node frequency"} <= set(texts_of(svg))
    assert save_responses(tmp_path / "none", make_result(models=("gcn",))) == ()


def test_any_name_can_be_drawn(nasty: ComparisonResult, make_result, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, svg = save_curves(tmp_path / "nasty", nasty)
    assert any("<script>alert(1)</script>" in text for text in texts_of(svg))
    for name in ("$x_1$ costs 5$", "_hidden", "no\x00control", "x" * 500):
        odd = make_result(models=("gcn",), seeds=(5, 10))
        for spec, _ in odd.pairs:
            object.__setattr__(spec, "model", name)
        _, svg = save_curves(tmp_path / "odd", odd)
        assert series_of(svg) == ["series-1"]
        assert any(name[:5].replace("\x00", "\ufffd") in text for text in texts_of(svg))


def test_failed_models_keep_their_looks(make_result, tmp_path: Path) -> None:
    lost = tuple(("gcn", value) for value in (0.1, 0.5, 0.9))
    _, svg = save_curves(tmp_path / "lost", make_result(failing=lost))
    assert "GCN" in texts_of(svg)


def test_global_state_is_left_alone(result: ComparisonResult, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    save_curves(tmp_path / "a", result)
    assert dict(matplotlib.rcParams) == before


def test_what_is_loaded_when() -> None:
    code = (
        "import sys, bigcn; print('matplotlib' in sys.modules, 'bigcn.report' in sys.modules);"
        "import bigcn.report; print('matplotlib.pyplot' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False", "False"]
