"""The demo: stage 1, then SEED and GRPO from the same checkpoint on the same tasks and seeds, one table and one report."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seed_opd.config import Config, load
from seed_opd.errors import UserError
from seed_opd.evaluation.compare import TableText, difference_table, evaluations, last, success_table
from seed_opd.evaluation.evaluate import evaluate
from seed_opd.report import build
from seed_opd.training.collect import annotate, collect
from seed_opd.training.setup import external_analyzer, set_up
from seed_opd.training.sft import fine_tune

METHODS = ("grpo", "seed")


def run_demo(folder: Path, overrides: Sequence[str]) -> None:
    """Everything from the packaged policy to the comparison; what is already there is not done again."""
    console, start = Console(highlight=False), time.perf_counter()
    config = load("demo", overrides)
    _stage1(config, folder, console)
    console.rule("Stage 2: GRPO and SEED, side by side, one process each")
    _train_all(folder, overrides)
    _show(folder, console)
    console.print(f"report: {build(folder / 'seed', [folder / 'grpo', folder / 'base'])}", markup=False, soft_wrap=True)
    console.print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


def _stage1(config: Config, folder: Path, console: Console) -> None:
    stage1 = folder / "stage1"
    if (stage1 / "model").exists():
        return
    console.rule("The packaged policy, before any training")
    parts = set_up(config)
    evaluate(parts, folder / "base", "base")
    console.rule("Stage 1: play, annotate, fine-tune")
    trajectories = collect(parts, stage1)
    statuses = annotate(external_analyzer(config, config.stage1.analyzer, stage1), stage1)
    won = sum(t.success for t in trajectories)
    console.print(f"{len(trajectories)} episodes, {won} successful; skills: {dict(statuses)}")
    fine_tune(parts, stage1, stage1)


def _train_all(folder: Path, overrides: Sequence[str]) -> None:
    """One process per method, one thread each, so that both see the same machine."""
    processes = {method: subprocess.Popen(_command(method, folder, overrides)) for method in METHODS}
    failed = [method for method, process in processes.items() if process.wait() != 0]
    if failed:
        raise UserError(
            f"demo: training {' and '.join(failed)} stopped with an error, shown above; run the demo again to resume."
        )


def _command(method: str, folder: Path, overrides: Sequence[str]) -> list[str]:
    verb = [sys.executable, "-m", "seed_opd.cli", "train", "demo", "--out", str(folder)]
    return [*verb, *overrides, f"method={method}", "threads=1"]


def _show(folder: Path, console: Console) -> None:
    start = [one for one in evaluations(folder / "seed") if one.label == "start"]
    finals = [(method.upper(), last(folder / method)) for method in METHODS]
    named = [("base", last(folder / "base")), ("after stage 1", start), *finals]
    _print(success_table("Success, 95% intervals", named), console)
    _print(difference_table(finals[0], finals[1:]), console)


def _print(text: TableText, console: Console) -> None:
    table = Table(title=text.title)
    for name in text.header:
        table.add_column(name)
    for row in text.rows:
        table.add_row(*(cell.replace("[", "\\[") for cell in row))
    console.print(table)
