"""A study: methods x seeds x shares of the training tasks, from one stage 1, each run a process of its own.

A study is a folder: `study.yaml`, `stage1/`, and a run folder for each combination. What is there is not done again, so a
study can be stopped and started at any time, and studies of the same recipe and overrides can share a folder.
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import yaml
from filelock import FileLock, Timeout
from pydantic import Field, ValidationError
from rich.console import Console

from seed_opd.config import Config, EnvironmentConfig, Section, load, read_mapping, sentence
from seed_opd.environments import make
from seed_opd.errors import UserError
from seed_opd.files import write_atomically
from seed_opd.methods import resolve
from seed_opd.report.gap_classes import gap_classes
from seed_opd.training.run_folder import holds_run
from seed_opd.training.setup import shuffled_tasks
from seed_opd.training.stage1 import run_stage1
from seed_opd.trajectory import read_jsonl

SMALLEST = (
    "updates=1",
    "rollout.tasks=2",
    "rollout.group=2",
    "environment.max_steps=4",
    "stage1.tasks=6",
    "stage1.rollouts=2",
    "stage1.attempts=1",
    "stage1.replays=1",
    "stage1.epochs=1",
    "stage1.acting_tasks=6",
    "evaluation.tasks=4",
    "evaluation.probe=4",
)


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
"""A word that can be a file's name."""

Share = Annotated[float, Field(gt=0, le=1, multiple_of=0.01)]


class Quick(Section):
    """The smallest size of a study, for trying it out."""

    methods: list[str] | None = None
    """Fewer methods."""
    seeds: list[int] = Field(default=[0], min_length=1)
    """Fewer seeds."""
    fractions: list[Share] | None = None
    """Fewer shares."""
    overrides: list[str] = Field(default=list(SMALLEST))
    """Changes to the recipe, after the study's own."""


class Study(Section):
    """What is run and compared."""

    name: Name
    """Name of the study, of its files, and of its folder under `runs/`."""
    recipe: str
    """The recipe that all runs share."""
    overrides: list[str] = Field(default=[])
    """Changes to it."""
    methods: list[str] = Field(min_length=1)
    """Rows of the methods table."""
    variants: dict[Name, list[str]] = Field(default={})
    """More rows: a name, and the changes to the recipe that make it."""
    baseline: str = "grpo"
    """The method that the others are compared with."""
    seeds: list[int] = Field(min_length=1)
    """Each method is trained once with each."""
    fractions: list[Share] = Field(default=[1.0], min_length=1)
    """Shares of the training tasks, in whole percents."""
    quick: Quick = Quick()


@dataclass(frozen=True, slots=True)
class Run:
    """One training run of a study."""

    method: str
    seed: int
    fraction: float
    changes: tuple[str, ...]

    def folder(self, study: Path) -> Path:
        return study / f"tasks-{round(100 * self.fraction):03d}" / f"seed-{self.seed}" / self.method


def load_study(name: str, quick: bool = False) -> Study:
    """A packaged study or a YAML file; raises UserError, naming field, value and fix."""
    try:
        study = Study.model_validate(read_mapping("study", "studies", name))
    except ValidationError as error:
        raise UserError("; ".join(sentence(detail) for detail in error.errors())) from error
    return _quick(study) if quick else study


def run_study(study: Study, folder: Path, processes: int | None = None) -> Path:
    """Run what is missing, as many at a time as there are cores, one thread each; returns the file of all runs' rows.

    Raises UserError when runs failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            return _run_study(study, folder, processes)
    except Timeout as error:
        raise UserError(
            f"study: another one is running in {str(folder)!r}; wait for its end, or choose another --out."
        ) from error


def _run_study(study: Study, folder: Path, processes: int | None) -> Path:
    console = Console(stderr=True, highlight=False)
    runs = plan(study)
    _claim(study, folder)
    config = load(study.recipe, study.overrides)
    run_stage1(config, folder, console)
    todo = [run for run in runs if not _is_done(study, run, folder)]
    console.print(f"{len(runs) - len(todo)} of {len(runs)} runs are done")
    failed, stop = [], Event()
    with ThreadPoolExecutor(processes or os.cpu_count()) as pool:
        futures = {pool.submit(_train, study, run, folder, stop): run for run in todo}
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                run = futures[future]
                minutes, code = future.result()
                failed += [run] if code else []
                state = "failed" if code else "done"
                name = f"{run.method}, seed {run.seed}, {run.fraction:.0%} of the tasks"
                console.print(f"{number}/{len(todo)}  {name}: {state}, {minutes:.1f} minutes")
        except KeyboardInterrupt:
            stop.set()
            raise
    if failed:
        logs = ", ".join(str(_log(run, folder)) for run in failed)
        raise UserError(f"study: {len(failed)} runs failed; see {logs}, mend the cause and start the study again.")
    return _collect(study, runs, folder)


def plan(study: Study) -> list[Run]:
    """All runs: seed by seed, so that a study that is cut short compares all methods on fewer seeds."""
    variants = {name: (f"method={name}",) for name in study.methods} | {
        name: tuple(changes) for name, changes in study.variants.items()
    }
    for changes in variants.values():
        config = load(study.recipe, [*study.overrides, *changes])
        resolve(config.method, config.overrides)  # a wrong name is an error before anything runs
    if study.baseline not in variants:
        raise UserError(f"baseline: {study.baseline!r} is not among the study's methods; add it or choose another.")
    return [
        Run(method, seed, fraction, changes)
        for seed in study.seeds
        for fraction in study.fractions
        for method, changes in variants.items()
    ]


def _collect(study: Study, runs: Sequence[Run], folder: Path) -> Path:
    """All rows that the tables are made of, with the run that each belongs to, in one small file."""
    path = folder / f"{study.name}.jsonl.xz"
    head = {"kind": "study", "name": study.name, "baseline": study.baseline}
    lines = [json.dumps(head)]
    for run in runs:
        about = {"method": run.method, "seed": run.seed, "fraction": run.fraction}
        rows = [row for row in read_jsonl(run.folder(folder) / "metrics.jsonl") if row["kind"] in _KEPT]
        lines += [json.dumps(about | row) for row in [*rows, *gap_classes(run.folder(folder))]]
    path.write_bytes(lzma.compress("".join(line + "\n" for line in lines).encode()))
    return path


_KEPT = ("train", "evaluation", "probe")


def _quick(study: Study) -> Study:
    quick = study.quick
    return study.model_copy(
        update={
            "name": f"{study.name}-quick",
            "methods": quick.methods or study.methods,
            "variants": study.variants if quick.methods is None else {},
            "seeds": quick.seeds,
            "fractions": quick.fractions or study.fractions,
            "overrides": [*study.overrides, *quick.overrides],
        }
    )


def _claim(study: Study, folder: Path) -> None:
    """Write the study down; refuse a folder with another one. More seeds or methods may be added later."""
    fixed = {key: getattr(study, key) for key in ("recipe", "overrides")}
    existing = folder / "study.yaml"
    if existing.exists():
        old: dict[str, Any] = yaml.safe_load(existing.read_text(encoding="utf-8"))
        if any(old.get(key) != value for key, value in fixed.items()):
            raise UserError(f"study: {str(folder)!r} holds one of another recipe or other overrides; choose another --out.")
    write_atomically(existing, yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False))


def _train(study: Study, run: Run, folder: Path, stop: Event) -> tuple[float, int]:
    """Train in a process of its own; returns its minutes and its exit code."""
    if stop.is_set():
        return 0.0, 1
    target, start = run.folder(folder), time.monotonic()
    command = [sys.executable, "-m", "seed_opd.cli", "train", study.recipe, *_overrides(study, run)]
    command += ["--run", str(target), "--stage1", str(folder / "stage1")]
    _log(run, folder).parent.mkdir(parents=True, exist_ok=True)
    with _log(run, folder).open("a", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while process.poll() is None:
            if stop.wait(0.5):
                process.terminate()
                process.wait()
    return (time.monotonic() - start) / 60, process.returncode


def _overrides(study: Study, run: Run) -> list[str]:
    return [*study.overrides, *run.changes, f"seed={run.seed}", "threads=1", f"environment.train_tasks={_tasks(study, run)}"]


def _tasks(study: Study, run: Run) -> int:
    """How many training tasks a share is; the smaller shares are parts of the larger ones."""
    config = load(study.recipe, [*study.overrides, *run.changes, f"seed={run.seed}"])
    available = _available(config.environment.model_dump_json())
    return max(1, round(run.fraction * min(available, config.environment.train_tasks or available)))


@cache
def _available(environment: str) -> int:
    """How many training tasks an environment has, by its section of the config as JSON; runs of a study mostly share one."""
    config = Config(environment=EnvironmentConfig.model_validate_json(environment))
    return len(shuffled_tasks(config, make(config.environment.name, **config.environment.options)))


def _is_done(study: Study, run: Run, folder: Path) -> bool:
    file = run.folder(folder) / "checkpoints" / "progress.json"
    if not file.exists():
        return False
    config = load(study.recipe, _overrides(study, run))
    if not holds_run(run.folder(folder), config):
        where = str(run.folder(folder))
        raise UserError(f"study: {where!r} holds another run; rename the variant {run.method!r} or choose another --out.")
    wanted = config.updates if resolve(config.method, config.overrides).trained else 0
    return int(json.loads(file.read_text(encoding="utf-8"))["update"]) >= wanted


def _log(run: Run, folder: Path) -> Path:
    target = run.folder(folder)
    return target.with_name(f"{target.name}.log")  # a name may hold a point, as in weight_0.1
