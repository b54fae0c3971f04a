"""Line charts and dot plots as inline SVG, without a library.

Colours are CSS classes (`series-0`, `series-1`, ...), so that the page's light, dark and print themes hold inside a chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

Format = Callable[..., str]  # (value) -> text, and (tick, step between ticks) -> text
DASHES = ("", "6 4", "2 3", "9 3 2 3")
SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (  # markers, told apart without colour; the first is a circle
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, -1.2), (1.2, 0.9), (-1.2, 0.9)),
)


@dataclass(frozen=True, slots=True)
class Point:
    """A value at an update, with its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A curve: `series` chooses colour and marker, `dash` the stroke."""

    name: str
    points: tuple[Point, ...]
    series: int = 0
    dash: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """The plotting area in a chart's own units, and the values at its edges."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return self.left + share * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)


def line_chart(
    lines: Sequence[Line],
    *,
    label: str,
    show: Format,
    width: int,
    height: int,
    from_zero: bool = True,
    end_labels: bool = False,
    guides: Sequence[tuple[str, float]] = (),
) -> Markup:
    """Curves over updates with interval bands, markers and a tooltip on each point.

    `label` is read out by screen readers; `show` writes a value; `guides` are horizontal lines with a name.
    """
    points = [point for line in lines for point in line.points]
    values = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    ticks = nice_ticks(*_bounds([*values, *(value for _, value in guides)], from_zero), 5 if height > 220 else 3)
    x_low, x_high = _bounds([point.x for point in points], from_zero=False)
    right = min(_end_room(lines, show), width // 3) if end_labels else 12
    frame = Frame(width, height, 46, right, 12, 26, x_low, x_high, ticks[0], ticks[-1])
    parts = [_axes(frame, ticks, show), *(_guide(frame, *guide) for guide in guides)]
    parts += [_band(frame, line) for line in lines]
    parts += [_curve(frame, line, show) for line in lines]
    parts += _end_labels(frame, lines, show) if end_labels else []
    return _svg(width, height, label, parts)


def dot_plot(rows: Sequence[tuple[str, Point, int | None]], *, label: str, show: Format, width: int) -> Markup:
    """One row per name: a dot at `point.y` on its interval, on a scale from 0 to 1; a series of None is drawn in grey."""
    step, top = 26, 6
    height = top + step * len(rows) + 20
    frame = Frame(width, height, 82, 46, top, 20, 0.0, 1.0, 0.0, 1.0)
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_segment("grid", frame.x(tick), top, frame.x(tick), height - 20))
        parts.append(_text("tick", frame.x(tick), height - 5, show(tick), "middle"))
    for index, (name, point, series) in enumerate(rows):
        y = top + step * (index + 0.5)
        low, high = (point.y if end is None else end for end in (point.low, point.high))
        drawn = [
            _text("row", frame.left - 12, y + 4, name, "end"),
            _segment("whisker", frame.x(low), y, frame.x(high), y),
            _marker(frame.x(point.y), y, series or 0, 5.0),
            _text("value", width, y + 4, show(point.y), "end"),
        ]
        parts.append(_group("muted" if series is None else series, drawn))
    return _svg(width, height, label, parts)


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten that enclose the range, about `count` of them."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _bounds(values: Sequence[float], from_zero: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high > low:
        return low, high
    room = abs(high) * 0.1 or 1.0
    return (low, high + room) if from_zero else (low - room, high + room)


def _svg(width: int, height: int, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        width, height, label, Markup("").join(parts)
    )


def _group(series: int | str, parts: Sequence[Markup]) -> Markup:
    return Markup('<g class="series-{}">{}</g>').format(series, Markup("").join(parts))


def _segment(style: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(style, x1, y1, x2, y2)


def _text(style: str, x: float, y: float, text: str | Markup, anchor: str = "start") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(style, x, y, anchor, text)


def _axes(frame: Frame, ticks: Sequence[float], show: Format) -> Markup:
    parts, right = [], frame.width - frame.right
    for tick in ticks:
        parts.append(_segment("zero" if tick == 0 else "grid", frame.left, frame.y(tick), right, frame.y(tick)))
        parts.append(_text("tick", frame.left - 8, frame.y(tick) + 4, show(tick, ticks[1] - ticks[0]), "end"))
    for update in _whole_ticks(frame.x_low, frame.x_high):
        parts.append(_text("tick", frame.x(update), frame.height - 8, str(update), "middle"))
    return Markup("").join(parts)


def _whole_ticks(low: float, high: float) -> list[int]:
    """Whole updates inside the range, at most about six."""
    step = max(1, round(nice_ticks(low, high, 5)[1] - nice_ticks(low, high, 5)[0]))
    return [update for update in range(math.ceil(low), math.floor(high) + 1) if update % step == 0]


def _guide(frame: Frame, name: str, value: float) -> Markup:
    y = frame.y(value)
    return _segment("guide", frame.left, y, frame.width - frame.right, y) + _text("tick", frame.left + 6, y - 5, name)


def _band(frame: Frame, line: Line) -> Markup:
    sided = [(each.x, each.low, each.high) for each in line.points if each.low is not None and each.high is not None]
    if len(sided) < 2:
        return Markup("")
    corners = [(x, high) for x, _, high in sided] + [(x, low) for x, low, _ in reversed(sided)]
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in corners)
    return Markup('<polygon class="band series-{}" points="{}"/>').format(line.series, path)


def _curve(frame: Frame, line: Line, show: Format) -> Markup:
    places = [(frame.x(point.x), frame.y(point.y)) for point in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    small = len(places) > 30 or frame.height < 220
    dots = [
        Markup('<g class="dot">{}<circle class="reach" cx="{:.1f}" cy="{:.1f}" r="7"/><title>{}</title></g>').format(
            _marker(x, y, line.series, 1.6 if small else 3.4), x, y, _tooltip(line.name, point, show)
        )
        for (x, y), point in zip(places, line.points, strict=True)
    ]
    stroke = Markup('<polyline class="line" points="{}" stroke-dasharray="{}"/>').format(path, _dashes(line.dash))
    return _group(line.series, [stroke, *dots])


def _dashes(dash: int) -> str:
    return DASHES[dash % len(DASHES)]


def _tooltip(name: str, point: Point, show: Format) -> str:
    interval = "" if point.low is None or point.high is None else f" ({show(point.low)} to {show(point.high)})"
    return f"{name}, update {point.x:g}: {show(point.y)}{interval}"


def _marker(x: float, y: float, series: int, size: float) -> Markup:
    shape = SHAPES[series % len(SHAPES)]
    if not shape:
        return Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(x, y, size)
    path = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in shape)
    return Markup('<polygon class="mark" points="{}"/>').format(path)


def _end_room(lines: Sequence[Line], show: Format) -> int:
    """Width that the longest label beside a curve's end needs."""
    longest = max(len(f"{line.name} {show(line.points[-1].y)}") for line in lines)
    return max(88, 16 + 8 * longest)


def _end_labels(frame: Frame, lines: Sequence[Line], show: Format) -> list[Markup]:
    """Name and last value beside the end of each curve, pushed apart where they would overlap."""
    ends = sorted(((frame.y(line.points[-1].y), line) for line in lines), key=lambda end: end[0])
    labels, free = [], float(frame.top)
    for y, line in ends:
        y = max(y + 4, free)
        free = y + 16
        text = Markup('{} <tspan class="strong">{}</tspan>').format(line.name, show(line.points[-1].y))
        labels.append(_text(f"end series-{line.series}", frame.x(line.points[-1].x) + 10, y, text))
    return labels


def legend_mark(series: int | None, dash: int = 0) -> Markup:
    """A short piece of a curve, for a legend; a series of None has no colour and no marker."""
    return Markup(
        '<svg class="key series-{}" viewBox="0 0 30 12" aria-hidden="true">'
        '<polyline class="line" points="1,6 29,6" stroke-dasharray="{}"/>{}</svg>'
    ).format(
        "muted" if series is None else series,
        _dashes(dash),
        "" if series is None else _marker(15, 6, series, 3.4),
    )
