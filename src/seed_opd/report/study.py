"""A study as one page: tables, learning curves, and sample efficiency; and the tables once more as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from seed_opd.evaluation.compare import TableText
from seed_opd.evaluation.study import TRENDS, Results, last, over_seeds, read_results, tables
from seed_opd.files import write_atomically
from seed_opd.report.numbers import number, percent
from seed_opd.report.svg import Format, Line, Point, legend_mark, line_chart

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ name }}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{{ style }}
section { padding: 16px 20px }
.entry { white-space: nowrap }
section td, section th { padding: 3px 12px 3px 0; text-align: left }</style></head><body><main>
<h1>{{ name }}</h1>
{% for title, picture, legend in charts %}
<section class="card"><h2>{{ title }}</h2>{{ picture }}
<p>{% for mark, label in legend %}<span class="entry">{{ mark }} {{ label }}</span> {% endfor %}</p></section>
{% endfor %}
{% for table in tables %}
<section class="card"><h2>{{ table.title }}</h2><table>
<tr>{% for cell in table.header %}<th>{{ cell }}</th>{% endfor %}</tr>
{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</table></section>
{% endfor %}
</main></body></html>
"""

CROWDED = 4
"""With more lines than this, intervals and names at the lines' ends hide each other; the tables and the legend have them."""

Chart = tuple[str, Markup, list[tuple[Markup, str]]]


def write_study(rows: Path, folder: Path) -> tuple[Path, list[TableText]]:
    """Write a page and a Markdown file, named as the file of rows is; returns the page and the tables."""
    results, name = read_results(rows), rows.name.removesuffix(".jsonl.xz")
    found = tables(results)
    page = Environment(autoescape=True).from_string(_PAGE)
    style = (resources.files("seed_opd") / "report" / "assets" / "style.css").read_text(encoding="utf-8")
    html = page.render(name=results.name, style=Markup(style), charts=_charts(results), tables=found)
    target = folder / f"{name}.html"
    write_atomically(target, html)
    write_atomically(folder / f"{name}.md", "\n".join(_markdown(table) for table in found))
    return target, found


def _charts(results: Results) -> list[Chart]:
    charts = [_learning(results, panel) for panel in results.panels]
    if len(results.fractions) > 1:
        charts += [_efficiency(results, panel) for panel in results.panels]
    charts += [_trend(results, title, *metric) for title, metric in TRENDS.items()]
    return [chart for chart in charts if chart is not None]


def _learning(results: Results, panel: str) -> Chart | None:
    """Success over updates: the mean over seeds at each evaluation."""
    lines = []
    for method in results.methods:
        rows = results.select("evaluation", method, max(results.fractions), panel)
        updates = sorted({row["update"] for row in rows})
        points = [_point(update, [row["macro"] for row in rows if row["update"] == update]) for update in updates]
        lines.append(_line(results, method, points))
    return _chart(f"Success over updates, {panel}", lines)


def _trend(results: Results, title: str, kind: str, name: str) -> Chart | None:
    """A metric over updates, smoothed: the mean over seeds in stretches of the run."""
    lines = []
    for method in results.methods:
        series = results.series(kind, method, max(results.fractions), name, bins=10)
        lines.append(_line(results, method, [_point(middle, values) for middle, values in series]))
    return _chart(f"{title[0].upper()}{title[1:]} over updates", lines, show=number)


def _efficiency(results: Results, panel: str) -> Chart | None:
    """Success of the last evaluation over the share of the training tasks."""
    lines = []
    for method in results.methods:
        values = {f: list(results.by_seed(method, f, panel, last).values()) for f in results.fractions}
        lines.append(_line(results, method, [_point(100 * f, found) for f, found in values.items() if found]))
    return _chart(f"Success over the share of the training tasks in percent, {panel}", lines)


def _point(x: float, values: Sequence[float]) -> Point:
    interval = over_seeds(values)
    return Point(x, interval.value, interval.low, interval.high) if len(values) > 1 else Point(x, interval.value)


def _line(results: Results, method: str, points: Sequence[Point]) -> Line:
    number = results.methods.index(method)
    return Line(method, tuple(points), series=number % 4, dash=number // 4 % 4)


def _chart(title: str, lines: Sequence[Line], show: Format = percent) -> Chart | None:
    drawn = [line for line in lines if len(line.points) > 1]
    if not drawn:
        return None
    crowded = len(drawn) > CROWDED
    shown = [replace(line, points=tuple(Point(p.x, p.y) for p in line.points)) for line in drawn] if crowded else drawn
    picture = line_chart(shown, label=title, show=show, width=760, height=360, end_labels=not crowded)
    return title, picture, [(legend_mark(line.series, line.dash), line.name) for line in drawn]


def _markdown(table: TableText) -> str:
    lines = [f"### {table.title}", "", _cells(table.header), _cells(["---"] * len(table.header))]
    return "\n".join([*lines, *(_cells(row) for row in table.rows), ""])


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
