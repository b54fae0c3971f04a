"""Runs side by side: success on their common panels, and differences paired by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_opd.errors import UserError
from seed_opd.evaluation.statistics import paired_difference
from seed_opd.trajectory import read_jsonl, read_trajectories


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as text, ready to print."""

    title: str
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One policy on one panel."""

    run: Path
    update: int
    label: str
    panel: str
    row: dict[str, Any]

    @property
    def file(self) -> Path:
        name = f"{self.label}-{self.update:04d}" if self.label == "update" else self.label
        return self.run / "evaluations" / f"{name}-{self.panel}.jsonl"


def evaluations(run: Path) -> list[Evaluation]:
    """All evaluations of a run, oldest first; raises UserError for a folder without any."""
    metrics = run / "metrics.jsonl"
    rows = [row for row in read_jsonl(metrics) if row["kind"] == "evaluation"] if metrics.exists() else []
    if not rows:
        raise UserError(f"run: {str(run)!r} has no evaluation; give the folder of a run that has been evaluated.")
    return [Evaluation(run, row["update"], row["label"], row["panel"], row) for row in rows]


def last(run: Path) -> list[Evaluation]:
    """The newest evaluation of each panel."""
    newest = {one.panel: one for one in evaluations(run)}
    return list(newest.values())


def success_table(title: str, named: Sequence[tuple[str, Sequence[Evaluation]]]) -> TableText:
    """One row per policy: macro with its interval, and micro, on every panel."""
    panels = list(dict.fromkeys(one.panel for _, rows in named for one in rows))
    header = ["policy", *(f"{panel}: macro, micro" for panel in panels)]
    cells = [[name, *(_cell(rows, panel) for panel in panels)] for name, rows in named]
    return TableText(title, header, cells)


def difference_table(
    baseline: tuple[str, Sequence[Evaluation]], others: Sequence[tuple[str, Sequence[Evaluation]]]
) -> TableText:
    """Each other policy minus the baseline, task by task."""
    rows = [
        _difference(name, one, first)
        for name, ones in others
        for one in ones
        for first in baseline[1]
        if first.panel == one.panel
    ]
    header = ["policy", "panel", "difference", "95% interval", "won alone", "lost alone", "p"]
    return TableText(f"Difference to {baseline[0]}, paired by task (p: exact McNemar test)", header, rows)


def comparison_tables(runs: Sequence[Path]) -> list[TableText]:
    """The tables of `seed-opd compare`: last evaluations, and differences to the first run."""
    named = [(run.name, last(run)) for run in runs]
    tables = [success_table("Success on the panels, last evaluation", named)]
    return [*tables, difference_table(named[0], named[1:])] if len(named) > 1 else tables


def _cell(rows: Sequence[Evaluation], panel: str) -> str:
    row = next((one.row for one in rows if one.panel == panel), None)
    if row is None:
        return "-"
    return f"{row['macro']:.1%} [{row['macro_low']:.1%}, {row['macro_high']:.1%}], {row['micro']:.1%}"


def _difference(name: str, one: Evaluation, first: Evaluation) -> list[str]:
    a = {t.task: t.success for t in read_trajectories(first.file)}
    b = {t.task: t.success for t in read_trajectories(one.file)}
    common = [task for task in a if task in b]
    if not common:
        raise UserError(f"compare: {str(first.run)!r} and {str(one.run)!r} have no task of panel {one.panel!r} in common.")
    paired = paired_difference([a[task] for task in common], [b[task] for task in common])
    interval = paired.difference
    return [
        name,
        f"{one.panel} ({paired.tasks})",
        f"{interval.value:+.1%}",
        f"[{interval.low:+.1%}, {interval.high:+.1%}]",
        str(paired.only_second),
        str(paired.only_first),
        f"{paired.p_value:.3f}",
    ]
