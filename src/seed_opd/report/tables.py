"""The page's tables: success by family, comparisons on the same tasks, and what each phase cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seed_opd.evaluation.statistics import Count, Interval, paired_difference, wilson
from seed_opd.report.numbers import duration, number, percent, percent_fine, points, probability
from seed_opd.report.run_folder import Evaluation, Run
from seed_opd.trajectory import read_trajectories

PHASES = ("rollout", "analysis", "scoring", "learning", "evaluation")


@dataclass(frozen=True, slots=True)
class Cell:
    """A rate with its interval; `low`, `high` and `middle` are percentages for the bar."""

    value: str
    interval: str
    low: float
    high: float
    middle: float
    count: str = ""


@dataclass(frozen=True, slots=True)
class FamilyTable:
    """One panel: columns are (series, heading, sub-heading), rows are (name, cells), the last two the averages."""

    panel: str
    columns: tuple[tuple[int | None, str, str], ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    averages: tuple[tuple[str, tuple[Cell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The main run against another on the same tasks of one panel."""

    panel: str
    first: str
    second: str
    difference: str
    interval: str
    only_first: int
    only_second: int
    tasks: int
    p_value: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a run cost: rows are (phase, seconds, share of all seconds in percent, tokens, tokens per second)."""

    run: str
    series: int
    rows: tuple[tuple[str, str, float, str, str], ...]
    seconds: str
    tokens: str


def family_tables(runs: Sequence[Run], references: Sequence[Run]) -> list[FamilyTable]:
    """A table for every panel of the main run."""
    return [_family_table(runs, references, panel) for panel in runs[0].panels]


def comparisons(runs: Sequence[Run]) -> list[Comparison]:
    """The main run's last evaluation against every other's, where both kept the episodes of the same tasks."""
    pairs = [(panel, other) for panel in runs[0].panels for other in runs[1:]]
    return [found for panel, other in pairs if (found := _comparison(runs[0], other, panel)) is not None]


def ledgers(runs: Sequence[Run]) -> list[Ledger]:
    return [_ledger(run, series) for series, run in enumerate(runs) if run.costs]


def _family_table(runs: Sequence[Run], references: Sequence[Run], panel: str) -> FamilyTable:
    columns: list[tuple[int | None, str, str, Evaluation]] = []
    for run in (*references, *runs):
        for name, evaluation in run.before(panel):
            if evaluation not in (column[3] for column in columns):  # runs from one checkpoint share their start
                columns.append((None, name, run.name if run in runs[1:] else "", evaluation))
    for series, run in enumerate(runs):
        last, best = run.last(panel), run.best(panel)
        shown = [("last and best", last)] if last == best else [("last", last), ("best", best)]
        columns += [(series, run.name, f"{name}, update {each.update}", each) for name, each in shown if each is not None]
    evaluations = [column[3] for column in columns]
    families = list(dict.fromkeys(name for evaluation in evaluations for name in evaluation.categories))
    rows = tuple((name, tuple(_count_cell(each.categories.get(name)) for each in evaluations)) for name in families)
    averages = (
        ("Macro average", tuple(_cell(each.macro, f"{_played(each)} families") for each in evaluations)),
        ("Micro average", tuple(_cell(each.micro, f"{each.episodes} episodes") for each in evaluations)),
    )
    return FamilyTable(panel, tuple(column[:3] for column in columns), rows, averages)


def _played(evaluation: Evaluation) -> int:
    return sum(count.episodes > 0 for count in evaluation.categories.values())


def _count_cell(count: Count | None) -> Cell | None:
    if count is None or count.episodes == 0:
        return None
    return _cell(wilson(count.successes, count.episodes), f"{count.successes}/{count.episodes}")


def _cell(interval: Interval, count: str) -> Cell:
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    return Cell(
        percent_fine(interval.value),
        f"{percent(low)} – {percent(high)}",
        round(100 * low, 1),
        round(100 * high, 1),
        round(100 * interval.value, 1),
        count,
    )


def _comparison(run: Run, other: Run, panel: str) -> Comparison | None:
    first, second = run.last(panel), other.last(panel)
    if first is None or second is None:
        return None
    files = (run.evaluation_file(first), other.evaluation_file(second))
    if not all(file.is_file() for file in files):
        return None
    mine, theirs = ({str(each.task): each.success for each in read_trajectories(file)} for file in files)
    if mine.keys() != theirs.keys() or not mine:
        return None
    result = paired_difference([theirs[task] for task in mine], list(mine.values()))
    return Comparison(
        panel,
        run.name,
        other.name,
        points(result.difference.value),
        f"{points(result.difference.low)} to {points(result.difference.high)}",
        result.only_second,
        result.only_first,
        result.tasks,
        probability(result.p_value),
    )


def _ledger(run: Run, series: int) -> Ledger:
    seconds = sum(cost["seconds"] for cost in run.costs.values())
    phases = [*(phase for phase in PHASES if phase in run.costs), *(phase for phase in run.costs if phase not in PHASES)]
    rows = []
    for phase in phases:
        spent, tokens = run.costs[phase]["seconds"], run.costs[phase]["tokens"]
        share = round(100 * spent / seconds, 1) if seconds else 0.0
        rate = number(tokens / spent) if tokens and spent else "–"
        rows.append((phase, duration(spent), share, number(tokens) if tokens else "–", rate))
    return Ledger(run.name, series, tuple(rows), duration(seconds), number(sum(c["tokens"] for c in run.costs.values())))
