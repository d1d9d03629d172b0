"""Small pictures as PNG in data URIs: they need no file beside the page and no network."""

import base64
import io

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray

from bigcn.report.styles import BLUE, PURPLE, VERMILLION

Array = NDArray[np.floating]
#: The colour of a pixel in the picture of its own neighbours, seen on light and on dark paper.
SELF = "#808080"


def data_uri(pixels: Array) -> str:
    """Returns a picture as a data URI.

    Args:
        pixels (numpy.ndarray): Red, green, blue and opacity from 0 to 1, of shape :obj:`[height, width, 4]`.
    """
    file = io.BytesIO()
    imsave(file, np.round(255 * pixels.clip(0, 1)).astype(np.uint8), format="png", metadata={"Software": "bigcn"})
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def ink_strip(pictures: Array, gap: int = 2) -> str:
    """Returns pictures side by side, as black ink on white paper.

    Args:
        pictures (numpy.ndarray): How much ink there is, from 0 to 1, of shape :obj:`[count, height, width]`.
        gap (int, optional): The transparent pixels between two of them. (default: :obj:`2`)
    """
    count, height, width = pictures.shape
    strip = np.zeros((height, count * (width + gap) - gap, 4))
    for place, picture in enumerate(pictures):
        left = place * (width + gap)
        strip[:, left : left + width, :3] = 1 - picture.clip(0, 1)[..., None]
        strip[:, left : left + width, 3] = 1
    return data_uri(strip)


def listening_grid(weights: Array, side: int, gap: int = 2) -> str:
    r"""Returns, for every pixel of a picture, the picture of what it listens to, at the place of the pixel.

    Args:
        weights (numpy.ndarray): The weights of the feature graph, of shape :math:`(s^2, s^2)`.
        side (int): The side :math:`s` of the picture.
        gap (int, optional): The transparent pixels between two pictures. (default: :obj:`2`)
    """
    others = weights * (1 - np.eye(len(weights)))
    scale = float(np.quantile(np.abs(others), 0.995)) or 1.0
    tile = side + gap
    sheet = np.zeros((side * tile - gap, side * tile - gap, 4))
    for pixel, row in enumerate(others):
        top, left = pixel // side * tile, pixel % side * tile
        picture = _signed(row.reshape(side, side) / scale)
        picture[pixel // side, pixel % side] = [*_rgb(SELF), 1]
        sheet[top : top + side, left : left + side] = picture
    return data_uri(sheet)


def heat_map(response: Array) -> str:
    """Returns a frequency response: blue for what passes, vermillion for what passes with its sign flipped, purple for
    what is amplified, the paper where nothing passes.

    Args:
        response (numpy.ndarray): The response; the first row, the lowest frequency, comes to lie at the bottom.
    """
    pixels = _signed(response)
    # Blended, so that the edge of what is amplified is not a staircase.
    beyond = (2 * (response - 1)).clip(0, 1)[..., None]
    pixels[..., :3] = (1 - beyond) * pixels[..., :3] + beyond * _rgb(PURPLE)
    return data_uri(pixels[::-1])


def half_lines(response: Array, width: float, height: float) -> str:
    """Returns the lines along which a response is one half, as an SVG path; empty where there is none.

    Args:
        response (numpy.ndarray): The response.
        width, height (float): The size of the picture that the lines go over.
    """
    if not response.min() < 0.5 < response.max():
        return ""
    columns, rows = np.linspace(0, width, response.shape[1]), np.linspace(height, 0, response.shape[0])
    found = Figure().add_subplot().contour(columns, rows, response, levels=[0.5])
    lines = [line for line in found.allsegs[0] if len(line) > 1]
    return "".join("M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in line) for line in lines)


def _signed(values: Array) -> Array:
    colours = np.where(values[..., None] < 0, _rgb(VERMILLION), _rgb(BLUE))
    return np.concatenate([colours, np.abs(values).clip(0, 1)[..., None]], axis=-1)


def _rgb(colour: str) -> Array:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
