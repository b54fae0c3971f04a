"""The demo: stage 1, then SEED and GRPO from the same checkpoint on the same tasks and seeds, one table and one report."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from rich.console import Console
from rich.table import Table

from seed_opd.config import load
from seed_opd.errors import UserError
from seed_opd.evaluation.compare import TableText, difference_table, evaluations, last, success_table
from seed_opd.report import build
from seed_opd.training.stage1 import run_stage1
from seed_opd.trajectory import read_jsonl

METHODS = ("grpo", "seed")


def run_demo(folder: Path, overrides: Sequence[str]) -> None:
    """Everything from the packaged policy to the comparison; what is already there is not done again."""
    console, start = Console(highlight=False), time.perf_counter()
    run_stage1(load("demo", overrides), folder, console)
    console.rule("Stage 2: GRPO and SEED, side by side, one process each")
    _train_all(folder, overrides, console)
    _show(folder, console)
    console.print(f"report: {build(folder / 'seed', [folder / 'grpo', folder / 'base'])}", markup=False, soft_wrap=True)
    console.print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


def _train_all(folder: Path, overrides: Sequence[str], console: Console) -> None:
    """One process per method, one thread each, so that both see the same machine; their lines are shown with their names."""
    processes = {method: _start(_command(method, folder, overrides)) for method in METHODS}
    readers = [Thread(target=_relay, args=(method, process, console)) for method, process in processes.items()]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    failed = [method for method, process in processes.items() if process.wait() != 0]
    if failed:
        raise UserError(
            f"demo: training {' and '.join(failed)} stopped with the error above; mend it and run the demo again."
        )


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _relay(method: str, process: subprocess.Popen[str], console: Console) -> None:
    for line in process.stdout or ():
        console.print(f"{method:>5} | {line.rstrip()}", markup=False, soft_wrap=True)


def _command(method: str, folder: Path, overrides: Sequence[str]) -> list[str]:
    verb = [sys.executable, "-m", "seed_opd.cli", "train", "demo", "--out", str(folder)]
    return [*verb, *overrides, f"method={method}", "threads=1"]


def _show(folder: Path, console: Console) -> None:
    start = [one for one in evaluations(folder / "seed") if one.label == "start"]
    finals = [(method.upper(), last(folder / method)) for method in METHODS]
    named = [("base", last(folder / "base")), ("after stage 1", start), *finals]
    _print(success_table("Success, 95% intervals", named), console)
    _print(difference_table(finals[0], finals[1:]), console)
    _print(training_table([folder / method for method in METHODS]), console)


def training_table(runs: Sequence[Path]) -> TableText:
    """Success on the training tasks, at temperature 1, in the first and the last quarter of the updates."""
    rows = []
    for run in runs:
        config = load(str(run / "config.yaml"))
        success = [row["success"] for row in read_jsonl(run / "metrics.jsonl") if row["kind"] == "train"]
        updates = max(1, len(success) // 4)
        first, final = (sum(part) / updates for part in (success[:updates], success[-updates:]))
        rows.append(
            [run.name.upper(), f"{first:.1%}", f"{final:.1%}", str(updates * config.rollout.tasks * config.rollout.group)]
        )
    return TableText(
        "Success on the training tasks, while training", ["policy", "first quarter", "last quarter", "episodes each"], rows
    )


def _print(text: TableText, console: Console) -> None:
    table = Table(title=text.title)
    for name in text.header:
        table.add_column(name)
    for row in text.rows:
        table.add_row(*(cell.replace("[", "\\[") for cell in row))
    console.print(table)
