"""The data of the method: tasks, steps, trajectories, groups and skills, and how they lie on disk.

Everything here is a frozen dataclass of plain Python values, so that a run's folder can be read without this package:
one JSON object per line, one trajectory or skill per object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from seed_opd.errors import UserError
from seed_opd.files import write_atomically

IMAGE = "<image>"
"""Where the picture of a step goes in a message, in environments that are seen."""

Outcome = Literal["success", "failure", "unknown"]
SkillStatus = Literal["ok", "unparsed", "empty", "placeholder", "too_long", "useless", "error"]


@dataclass(frozen=True, slots=True)
class Task:
    """One instance of an environment, named completely: an episode can be replayed from its task and its actions."""

    environment: str
    split: str
    index: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.environment}/{self.split}:{self.index}@{self.seed}"


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what the agent saw, what it wrote, and what the environment made of it.

    `response_ids` are the sampled token ids; they are scored as they are and never re-tokenised.
    `log_probs` are the behaviour policy's log-probabilities of exactly these ids, in nats.
    """

    observation: str
    response: str
    action: str
    valid: bool
    reward: float
    actions: tuple[str, ...] | None = None  # admissible actions before this step; None where there is no such list
    response_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    image: str | None = None  # what the agent saw, where it sees: a PNG file in base64


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One finished episode.

    `goal` is the task in the environment's own words, `score` the environment's score, `seed` the seed of the sampled
    tokens. `final_observation` is what the last action led to. `penalty` is what invalid actions cost, a positive sum.
    """

    task: Task
    goal: str
    category: str
    steps: tuple[Step, ...]
    success: bool
    score: float
    final_observation: str = ""
    penalty: float = 0.0
    seed: str = ""
    stop: Literal["done", "steps"] = "done"
    prompt_skill: str | None = None  # the skill that the actor had in its prompt

    @property
    def reward(self) -> float:
        """Sum of the environment's rewards, penalties not included."""
        return sum(step.reward for step in self.steps)

    @property
    def outcome(self) -> Outcome:
        return "success" if self.success else "failure"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trajectory:
        steps = tuple(_step_from_json(step) for step in data["steps"])
        return cls(**{**_known(cls, data), "task": Task(**data["task"]), "steps": steps})


@dataclass(frozen=True, slots=True)
class Skill:
    """What an analyzer wrote about one trajectory; only a skill with status "ok" is ever used.

    `raw` is the analyzer's whole answer, kept so that nothing is lost when it did not parse.
    """

    summary: str
    skill: str
    status: SkillStatus = "ok"
    raw: str = ""
    analyzer: str = ""
    steps: tuple[tuple[int, str], ...] = ()  # critical steps with a skill of their own

    @property
    def usable(self) -> bool:
        return self.status == "ok"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Skill:
        steps = tuple((int(index), str(text)) for index, text in data.get("steps", ()))
        return cls(**{**_known(cls, data), "steps": steps})


def write_jsonl(path: Path, rows: Iterable[Trajectory | Skill]) -> None:
    """Write rows as JSON lines, atomically: the file is whole or it is not there."""
    lines = [json.dumps(row.to_json(), ensure_ascii=False) for row in rows]
    write_atomically(path, "".join(line + "\n" for line in lines))


def read_trajectories(path: Path) -> list[Trajectory]:
    return [Trajectory.from_json(row) for row in read_jsonl(path)]


def read_skills(path: Path) -> list[Skill]:
    return [Skill.from_json(row) for row in read_jsonl(path)]


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file; a bad line raises UserError with the file and the line number."""
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{path}:{number} is not a JSON object ({error.msg}); mend or remove that line.") from error


def _known(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(cls)}
    return {name: value for name, value in data.items() if name in names}


def _step_from_json(data: dict[str, Any]) -> Step:
    values = _known(Step, data)
    for name in ("response_ids", "log_probs"):
        values[name] = tuple(values.get(name, ()))
    if values.get("actions") is not None:
        values["actions"] = tuple(values["actions"])
    return Step(**values)
