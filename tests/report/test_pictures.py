import base64
import io

import numpy as np
from matplotlib.image import imread

from bigcn.report.pictures import half_lines, heat_map, ink_strip, listening_grid


def pixels(uri: str) -> np.ndarray:
    head, _, body = uri.partition(",")
    assert head == "data:image/png;base64"
    return imread(io.BytesIO(base64.b64decode(body)), format="png")


def test_ink_is_black_on_white_with_gaps_between() -> None:
    strip = pixels(ink_strip(np.stack([np.zeros((8, 8)), np.full((8, 8), 3.0)])))
    assert strip.shape == (8, 18, 4)
    assert (strip[:, :8] == 1).all()
    assert (strip[:, 8:10, 3] == 0).all()
    assert (strip[:, 10:, :3] == 0).all()
    assert (strip[:, 10:, 3] == 1).all()


def test_each_pixel_has_its_picture_at_its_place() -> None:
    weights = np.zeros((4, 4))
    weights[0, 3] = weights[3, 0] = 1.0
    sheet = pixels(listening_grid(weights, side=2, gap=1))
    assert sheet.shape == (5, 5, 4)
    assert sheet[1, 1, 3] == 1  # the first pixel listens to the last
    assert sheet[1, 1, 2] > sheet[1, 1, 0]  # in blue
    assert sheet[0, 1, 3] == 0
    assert np.allclose(sheet[0, 0, :3], 128 / 255)  # itself


def test_low_frequencies_are_at_the_bottom_left() -> None:
    response = np.outer(np.linspace(1, 0, 5), np.linspace(1, 0, 5))
    heat = pixels(heat_map(response))
    assert heat[-1, 0, 3] == 1
    assert heat[0, -1, 3] == 0


def test_signs_have_colours() -> None:
    heat = pixels(heat_map(np.array([[1.0, -1.0, 2.0]])))
    assert heat[0, 0, 2] > heat[0, 0, 0]
    assert heat[0, 1, 0] > heat[0, 1, 2]
    assert heat[0, 2, 0] > heat[0, 2, 1]


def test_half_lines() -> None:
    falling = np.tile(np.linspace(1, 0, 9), (9, 1))
    path = half_lines(falling, 100, 100)
    assert path.startswith("M50.0,")
    assert half_lines(np.ones((4, 4)), 100, 100) == ""
