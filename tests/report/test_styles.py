from bigcn.report.styles import OKABE_ITO, style_of


def test_lines_differ_without_colour() -> None:
    looks = {(style_of(i).marker, style_of(i).dashes) for i in range(45)}
    assert len(looks) == 45
    assert len({style_of(i) for i in range(315)}) == 315


def test_palette_is_the_published_one() -> None:
    assert {colour for _, colour, _, _ in OKABE_ITO} <= {
        *("#000000", "#E69F00", "#56B4E9", "#009E73"),
        *("#F0E442", "#0072B2", "#D55E00", "#CC79A7"),
    }
