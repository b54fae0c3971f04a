"""The top of the page: what was run, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from seed_opd.report.numbers import duration, number, percent, percent_fine
from seed_opd.report.run_folder import Evaluation, Run, flatten
from seed_opd.report.svg import Point, dot_plot

# What the header shows: a title, and the dotted name of it in the config.
FACTS = (("Recipe", "name"), ("Model", "model.path"), ("Context", "context.style"), ("Seed", "seed"))
HASH_SHOWN = 12  # characters of the data's hash


@dataclass(frozen=True, slots=True)
class Hero:
    """One panel's result: the main run's last success and its interval, beside the others'."""

    panel: str
    value: str
    interval: str
    note: str
    plot: Markup


@dataclass(frozen=True, slots=True)
class Tile:
    """A small number with its name."""

    name: str
    value: str
    note: str = ""


def facts(run: Run) -> list[tuple[str, str]]:
    """The facts of the header that the config names."""
    found = [(title, _value(run, name)) for title, name in FACTS]
    data = next((evaluation.data_hash for evaluation in run.evaluations if evaluation.data_hash), None)
    found.append(("Data", data and data[:HASH_SHOWN]))
    return [(title, value) for title, value in found if value is not None]


def environment(run: Run) -> str | None:
    """The environment's name, for the title."""
    return _value(run, "environment.name")


def settings(run: Run) -> list[tuple[str, str]]:
    """The whole config, flat."""
    return [(name, str(value)) for name, value in flatten(run.config)]


def heroes(runs: Sequence[Run], references: Sequence[Run]) -> list[Hero]:
    """One card for each of the main run's panels, at most two."""
    return [_hero(runs, references, panel) for panel in runs[0].panels[:2]]


def tiles(run: Run) -> list[Tile]:
    """What the run did and what it cost."""
    seconds = sum(cost["seconds"] for cost in run.costs.values())
    tokens = sum(cost["tokens"] for cost in run.costs.values())
    usable, probe = run.series("skill/usable_share"), run.series("probe/score")
    result = [Tile("Updates", str(run.train[-1]["update"] if run.train else 0))]
    if seconds:
        result.append(Tile("Time", duration(seconds), "all phases"))
    if tokens:
        result.append(Tile("Tokens", number(tokens), "read and written"))
    if usable:
        result.append(Tile("Usable skills", percent(sum(v for _, v in usable) / len(usable)), "mean over updates"))
    if probe:
        result.append(Tile("Analysis quality", percent(probe[-1][1]), f"probe, {percent(probe[0][1])} at first"))
    result.append(Tile("Warnings", str(sum(warning.count for warning in run.warnings)), "counted below"))
    return result


def _hero(runs: Sequence[Run], references: Sequence[Run], panel: str) -> Hero:
    before = [pair for run in (*references, runs[0]) for pair in run.before(panel)]
    main = runs[0].last(panel) or before[-1][1]
    start = runs[0].start(panel)
    moved = "" if start is None or start is main else f"{percent(start.macro.value)} at the start · "
    note = f"{moved}{main.episodes} episodes · update {main.update}"
    interval = f"{percent(main.macro.low)} – {percent(main.macro.high)}"
    rows: list[tuple[str, Evaluation | None, int | None]] = [(name, evaluation, None) for name, evaluation in before]
    rows += [(run.name, run.last(panel), index) for index, run in reversed(list(enumerate(runs)))]
    plot = dot_plot(
        [(name, _macro(evaluation), series) for name, evaluation, series in rows if evaluation is not None],
        label=f"{panel} success, macro average, with 95% intervals",
        show=percent,
        width=340,
    )
    return Hero(panel, percent_fine(main.macro.value), interval, note, plot)


def _macro(evaluation: Evaluation) -> Point:
    return Point(evaluation.update, evaluation.macro.value, evaluation.macro.low, evaluation.macro.high)


def _value(run: Run, name: str) -> str | None:
    """The value of a dotted name in the config, cut to what a header holds."""
    value = dict(flatten(run.config)).get(name)
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= 48 else f"…{text[-47:]}"
