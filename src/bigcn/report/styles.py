"""How the lines of a plot are told apart: by colour, by marker and by dashes, any one of which is enough."""

import math
from typing import NamedTuple

Point = tuple[float, float]

#: The palette of Okabe and Ito, which colour-blind people can tell apart, and the shades of it that stand out from
#: light paper and from dark (3:1 at least): name, as published, on light, on dark.
OKABE_ITO: tuple[tuple[str, str, str, str], ...] = (
    ("blue", "#0072B2", "#0072B2", "#4AA8E0"),
    ("vermillion", "#D55E00", "#C85800", "#F08A4B"),
    ("bluish green", "#009E73", "#00875F", "#2FC79B"),
    ("reddish purple", "#CC79A7", "#B4578C", "#E09CC2"),
    ("orange", "#E69F00", "#A97400", "#E9B44C"),
    ("sky blue", "#56B4E9", "#2E86BD", "#8FD0F5"),
    ("black", "#000000", "#4A4F55", "#C9CDD2"),
)
BLUE, VERMILLION, PURPLE = OKABE_ITO[0][1], OKABE_ITO[1][1], OKABE_ITO[3][1]

# Matplotlib's name of each marker, with its corners (a circle has none), the angle of the first and its size.
_MARKERS: tuple[tuple[str, int, float, float], ...] = (
    ("o", 0, 0, 1.0),
    ("s", 4, 45, 1.2),
    ("^", 3, -90, 1.35),
    ("D", 4, 0, 1.3),
    ("v", 3, 90, 1.35),
    ("p", 5, -90, 1.2),
    ("h", 6, 30, 1.15),
    (">", 3, 0, 1.35),
    ("<", 3, 180, 1.35),
)
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (9, 3, 2, 3), (12, 4))


class Style(NamedTuple):
    """The looks of one line.

    Args:
        colour (str): The colour, as Okabe and Ito published it.
        on_light, on_dark (str): Its shades for light and dark paper.
        marker (str): The marker, as Matplotlib calls it.
        path (str): The marker as an SVG path around the origin, about ten units wide.
        dashes (tuple[float, ...]): The lengths of dashes and gaps; empty for a solid line.
    """

    colour: str
    on_light: str
    on_dark: str
    marker: str
    path: str
    dashes: tuple[float, ...]


def style_of(index: int) -> Style:
    """Returns the looks of a line by its number; 315 lines go by before one looks like another.

    Example:
        >>> style_of(0).marker, style_of(1).marker, style_of(1).dashes
        ('o', 's', (6, 3))
    """
    _, colour, on_light, on_dark = OKABE_ITO[index % len(OKABE_ITO)]
    marker, corners, angle, size = _MARKERS[index % len(_MARKERS)]
    path = _polygon(corners, math.radians(angle), 4.6 * size)
    return Style(colour, on_light, on_dark, marker, path, _DASHES[index % len(_DASHES)])


def _polygon(corners: int, angle: float, radius: float) -> str:
    if corners == 0:
        arc = f"a{radius:g},{radius:g} 0 1,0"
        return f"M{-radius:g},0{arc} {2 * radius:g},0{arc} {-2 * radius:g},0z"
    turns = [angle + 2 * math.pi * corner / corners for corner in range(corners)]
    return "M" + "L".join(f"{radius * math.cos(turn):.2f},{radius * math.sin(turn):.2f}" for turn in turns) + "z"
