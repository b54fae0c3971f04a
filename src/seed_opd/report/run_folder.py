"""What a run's folder holds, read into plain values: the one place that knows its file names and its metrics' keys."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from seed_opd.errors import UserError
from seed_opd.evaluation.statistics import Count, Interval
from seed_opd.trajectory import Skill, Trajectory, read_jsonl, read_skills, read_trajectories

Row = dict[str, Any]

BEFORE = {"base": "base", "sft": "after SFT", "start": "start"}  # labels of evaluations before the first update, in order


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of one panel: `label` is "update", one of BEFORE, or what the user called a policy."""

    label: str
    update: int
    panel: str
    macro: Interval
    micro: Interval
    categories: dict[str, Count]
    episodes: int
    temperature: float | None
    steps: int | None
    data_hash: str | None

    @classmethod
    def from_row(cls, row: Row) -> Evaluation:
        macro, micro = (Interval(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in ("macro", "micro"))
        counts = {name: Count(count["successes"], count["episodes"]) for name, count in row["categories"].items()}
        settings = (row["episodes"], row.get("temperature"), row.get("steps"), row.get("data_hash"))
        return cls(row.get("label", "update"), row["update"], row["panel"], macro, micro, counts, *settings)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The response tokens of one step; `skill` is None where the trajectory has no usable skill."""

    texts: tuple[str, ...]
    ordinary: tuple[float, ...]
    skill: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Episode:
    """A trajectory with what was made of it in hindsight; an evaluation's episodes have the trajectory alone."""

    index: int
    trajectory: Trajectory
    skill: Skill | None = None
    advantage: float | None = None
    tokens: tuple[Tokens, ...] | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning of the run: how often it came, and in which updates first and last."""

    message: str
    count: int
    first: int
    last: int


@dataclass(frozen=True)
class Run:
    """One run's folder. `notes` says what could not be read; the page shows it."""

    path: Path
    name: str
    config: Row
    train: list[Row]
    evaluations: list[Evaluation]
    probes: list[Row]
    costs: dict[str, dict[str, float]]
    warnings: list[Warned]
    notes: list[str]

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a run's folder; raises UserError where it is none or its metrics are broken."""
        notes: list[str] = []
        rows = _metrics(path, notes)
        by_kind: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_kind[row["kind"]].append(row)
        config = _config(path)
        return cls(
            path=path,
            name=run_name(config, path),
            config=config,
            train=_latest(by_kind["train"], "update"),
            evaluations=[Evaluation.from_row(row) for row in _latest(by_kind["evaluation"], "label", "update", "panel")],
            probes=_latest(by_kind["probe"], "label", "update"),
            costs=_costs(rows),
            warnings=_warnings(by_kind["warning"]),
            notes=notes,
        )

    @property
    def panels(self) -> list[str]:
        """Panels that were evaluated, seen before unseen before train."""
        order = {"seen": 0, "unseen": 1, "train": 2}
        return sorted({evaluation.panel for evaluation in self.evaluations}, key=lambda name: (order.get(name, 3), name))

    def evaluation(self, panel: str, label: str) -> Evaluation | None:
        """The last evaluation of a panel under a label."""
        found = [each for each in self.evaluations if each.panel == panel and each.label == label]
        return max(found, key=lambda each: each.update, default=None)

    @property
    def trained(self) -> bool:
        """Whether the run has updates; the folder of a single evaluation has none and is only a point of reference."""
        return bool(self.train) or any(evaluation.label == "update" for evaluation in self.evaluations)

    def before(self, panel: str) -> list[tuple[str, Evaluation]]:
        """The panel's evaluations that no update belongs to, with their names, in the order in which they came about."""
        labels = dict.fromkeys([*BEFORE, *(each.label for each in self.evaluations if each.label != "update")])
        found = ((BEFORE.get(label, label), self.evaluation(panel, label)) for label in labels)
        return [(name, evaluation) for name, evaluation in found if evaluation is not None]

    def start(self, panel: str) -> Evaluation | None:
        """Where the updates began."""
        return self.before(panel)[-1][1] if self.trained and self.before(panel) else None

    def last(self, panel: str) -> Evaluation | None:
        return self.evaluation(panel, "update")

    def best(self, panel: str) -> Evaluation | None:
        """The panel at the update that was best by the mean of the panels' macro averages, the earliest of equals."""
        macros: dict[int, list[float]] = defaultdict(list)
        for each in self.evaluations:
            if each.label == "update":
                macros[each.update].append(each.macro.value)
        update = max(macros, key=lambda number: (fmean(macros[number]), -number), default=None)
        return next(
            (each for each in self.evaluations if (each.label, each.panel, each.update) == ("update", panel, update)), None
        )

    def series(self, key: str) -> list[tuple[int, float]]:
        """The finite values of a training metric, (update, value), in order of updates; a probe's are under "probe/"."""
        rows, name = (self.probes, key.removeprefix("probe/")) if key.startswith("probe/") else (self.train, key)
        return [(row["update"], float(row[name])) for row in rows if _finite(row.get(name))]

    def recorded_updates(self) -> list[int]:
        """Updates whose trajectories were kept."""
        return sorted(int(file.stem.removeprefix("update-")) for file in self.path.glob("trajectories/update-*.jsonl"))

    def episodes(self, update: int) -> list[Episode]:
        """The training episodes of one update, with skill, advantage and token signals where they were kept."""
        name = f"update-{update:04d}.jsonl"
        trajectories = read_trajectories(self.path / "trajectories" / name)
        count = len(trajectories)
        skills = _aligned(self.path / "skills" / name, read_skills, count, self.notes)
        gaps = _aligned(self.path / "gaps" / name, _objects, count, self.notes)
        texts = _aligned(self.path / "tokens" / name, _objects, count, self.notes)
        return [
            Episode(
                index,
                trajectory,
                skills[index] if skills else None,
                gaps[index].get("advantage") if gaps else None,
                self._tokens(name, index, texts[index], gaps[index]) if texts and gaps else None,
            )
            for index, trajectory in enumerate(trajectories)
        ]

    def _tokens(self, name: str, index: int, texts: Row, gaps: Row) -> tuple[Tokens, ...] | None:
        """Token texts and log-probs of every step, or None with a note where their numbers differ."""
        skill = gaps.get("skill") or [None] * len(gaps["ordinary"])
        steps = (texts["tokens"], gaps["ordinary"], skill)
        lengths = [[len(values) for values in part if values is not None] for part in steps]
        if lengths[0] == lengths[1] and lengths[2] in (lengths[0], []) and len(skill) == len(lengths[0]):
            return tuple(_step_tokens(*step) for step in zip(*steps, strict=True))
        self.notes.append(f"{name}, row {index}: tokens/ and gaps/ do not have the same tokens, the row is left out.")
        return None

    def evaluation_files(self) -> list[Path]:
        return sorted(self.path.glob("evaluations/*.jsonl"))

    def evaluation_file(self, evaluation: Evaluation) -> Path:
        """Where the episodes of an evaluation lie."""
        label = f"update-{evaluation.update:04d}" if evaluation.label == "update" else evaluation.label
        return self.path / "evaluations" / f"{label}-{evaluation.panel}.jsonl"


def run_name(config: Row, path: Path) -> str:
    """What a run is called on the page: its method, or its folder's name."""
    method = config.get("method")
    method = method.get("name") if isinstance(method, dict) else method
    return str(method).upper() if method else path.resolve().name


def evaluation_episodes(path: Path) -> list[Episode]:
    return [Episode(index, trajectory) for index, trajectory in enumerate(read_trajectories(path))]


def _config(path: Path) -> Row:
    file = path / "config.yaml"
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not YAML: {error}") from error
    return config if isinstance(config, dict) else {}


def _metrics(path: Path, notes: list[str]) -> list[Row]:
    """All rows of metrics.jsonl. A last line cut short by a kill is left out and noted; any other bad line is an error."""
    file = path / "metrics.jsonl"
    if not file.is_file():
        raise UserError(f"{path} is not a run's folder: it has no metrics.jsonl; give the folder that `train` wrote")
    lines = file.read_text(encoding="utf-8").splitlines()
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            rows.append({**row, "kind": row["kind"], "update": int(row["update"])})
        except (ValueError, KeyError, TypeError) as error:
            if number < len(lines):
                raise UserError(f"{file}:{number} is not a metrics row: {error!r}; mend or remove the line") from error
            notes.append(f"The last line of {file.name} is cut short and left out.")
    return rows


def _latest(rows: Sequence[Row], *keys: str) -> list[Row]:
    """Rows in order of updates, the last one written for each combination of keys: a resumed run writes some twice."""
    latest = {tuple(row.get(key) for key in keys): row for row in rows}
    return sorted(latest.values(), key=lambda row: row["update"])


def _costs(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Seconds and tokens summed by phase, from every key "seconds/<phase>" and "tokens/<phase>" of any kind of row."""
    costs: dict[str, dict[str, float]] = {}
    tagged = [{**row, "keys": tuple(sorted(row))} for row in rows]
    for row in _latest(tagged, "kind", "label", "update", "panel", "keys"):
        for key, value in row.items():
            unit, _, phase = key.partition("/")
            if unit in ("seconds", "tokens") and phase and _finite(value):
                cost = costs.setdefault(phase, {"seconds": 0.0, "tokens": 0.0})
                cost[unit] += value
    return costs


def _warnings(rows: Sequence[Row]) -> list[Warned]:
    by_message: dict[str, list[Row]] = defaultdict(list)
    for row in _latest(rows, "update", "message"):
        by_message[str(row["message"])].append(row)
    warnings = [
        Warned(message, sum(int(row.get("count", 1)) for row in found), found[0]["update"], found[-1]["update"])
        for message, found in by_message.items()
    ]
    return sorted(warnings, key=lambda warning: -warning.count)


def _aligned(path: Path, read: Any, count: int, notes: list[str]) -> list[Any]:
    """The rows of a file beside the trajectories, or none, with a note where their number does not fit."""
    if not path.is_file():
        return []
    rows: list[Any] = read(path)
    if len(rows) == count:
        return rows
    notes.append(f"{path.parent.name}/{path.name} has {len(rows)} rows for {count} trajectories and is left out.")
    return []


def _objects(path: Path) -> list[Row]:
    return list(read_jsonl(path))


def _step_tokens(texts: Sequence[str], ordinary: Sequence[float], skill: Sequence[float] | None) -> Tokens:
    return Tokens(tuple(texts), tuple(ordinary), None if skill is None else tuple(skill))


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def flatten(config: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A nested config as (dotted name, value) pairs."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
