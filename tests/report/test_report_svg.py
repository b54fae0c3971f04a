import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.report.numbers import number, percent
from seed_opd.report.svg import Line, Point, dot_plot, line_chart, nice_ticks


def parse(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def test_nice_ticks_hand_numbers() -> None:
    assert nice_ticks(0, 0.74, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert nice_ticks(0.9962, 1.0041, 3) == pytest.approx([0.995, 1.0, 1.005])
    assert nice_ticks(-3, 7, 5) == pytest.approx([-4, -2, 0, 2, 4, 6, 8])


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 8))
def test_nice_ticks_enclose_the_range(low: float, width: float, count: int) -> None:
    ticks = nice_ticks(low, low + width, count)
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step and ticks[-1] >= low + width - 1e-6 * step
    assert 2 <= len(ticks) <= count + 3  # a step may be a thousandth less than the range asks for


def test_points_stand_where_their_values_are() -> None:
    """560 x 270, margins left 46, right 12, top 12, bottom 26, axis 0 to 0.8: 0.4 is half of 232 below 12, so 128."""
    line = Line("SEED", (Point(0, 0.0), Point(5, 0.4, 0.3, 0.5), Point(10, 0.8)))
    picture = parse(line_chart([line], label="success", show=percent, width=560, height=270))
    (stroke,) = picture.iter("polyline")
    assert stroke.get("points") == "46.0,244.0 297.0,128.0 548.0,12.0"
    titles = [title.text for title in picture.iter("title")]
    assert titles[1] == "SEED, update 5: 40% (30% to 50%)"


def test_band_goes_along_the_high_ends_and_back_along_the_low_ones() -> None:
    line = Line("SEED", (Point(0, 0.4, 0.2, 0.6), Point(10, 0.6, 0.4, 0.8)), series=1)
    picture = parse(line_chart([line], label="success", show=percent, width=560, height=270))
    band = next(each for each in picture.iter("polygon") if "band" in each.get("class", ""))
    assert band.get("class") == "band series-1"
    assert band.get("points") == "46.0,70.0 548.0,12.0 548.0,128.0 46.0,186.0"


@pytest.mark.parametrize("points", [(Point(3, 0.5),), (Point(3, 0.0),), (Point(1, -2.0), Point(2, -2.0))])
@pytest.mark.parametrize("from_zero", [True, False])
def test_a_single_value_can_be_drawn(points: tuple[Point, ...], from_zero: bool) -> None:
    picture = line_chart([Line("a", points)], label="one", show=number, width=340, height=170, from_zero=from_zero)
    assert "nan" not in picture and len(list(parse(picture).iter("title"))) == len(points)


def test_labels_of_curves_that_end_together_do_not_overlap() -> None:
    lines = [Line(name, (Point(0, 0.1), Point(1, 0.5)), series) for series, name in enumerate("ab")]
    picture = parse(line_chart(lines, label="x", show=percent, width=560, height=270, end_labels=True))
    heights = sorted(float(text.get("y", "0")) for text in picture.iter("text") if "end " in text.get("class", ""))
    assert heights[1] - heights[0] >= 16


def test_a_long_name_beside_the_end_of_its_curve_has_room() -> None:
    line = Line("skill_grpo", (Point(0, 0.1), Point(1, 0.5)))
    picture = parse(line_chart([line], label="x", show=percent, width=760, height=360, end_labels=True))
    (end,) = [text for text in picture.iter("text") if "end " in text.get("class", "")]
    assert 760 - float(end.get("x", "0")) >= 7.5 * len("skill_grpo 50%")


def test_names_are_escaped() -> None:
    hostile = '"><script>alert(1)</script>'
    line = Line(hostile, (Point(0, 1.0), Point(1, 2.0)))
    options = {"label": hostile, "show": number}
    chart = line_chart([line], width=560, height=270, end_labels=True, guides=[(hostile, 1.0)], **options)
    plot = dot_plot([(hostile, Point(0, 0.5), 0)], width=340, **options)
    for picture in (chart, plot):
        assert not list(parse(picture).iter("script"))
        assert parse(picture).get("aria-label") == hostile


def test_dot_plot_hand_numbers() -> None:
    """340 wide, margins 82 and 46: 212 for the scale; 0.5 stands at 188, the interval from 0.25 (135) to 0.75 (241)."""
    picture = parse(dot_plot([("SEED", Point(0, 0.5, 0.25, 0.75), 0)], label="x", show=percent, width=340))
    (dot,) = picture.iter("circle")
    whisker = next(each for each in picture.iter("line") if each.get("class") == "whisker")
    assert dot.get("cx") == "188.0"
    assert (whisker.get("x1"), whisker.get("x2")) == ("135.0", "241.0")
