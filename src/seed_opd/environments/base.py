"""The protocol that every environment speaks.

An environment says itself how it is prompted: how an observation and a history become a prompt, where a skill goes in that
prompt, how a response becomes an action and when it is invalid, what success and score mean, and which categories success
is reported by. Nothing outside guesses any of this.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seed_opd.errors import UserError
from seed_opd.trajectory import IMAGE as IMAGE
from seed_opd.trajectory import Step, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Observation:
    """What the agent sees after a reset: the text, the task in the environment's own words, and the admissible actions.

    `actions` is None where the environment has no such list.
    """

    text: str
    goal: str
    actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """Where an episode stands when the agent is asked: all earlier steps, and the observation to answer."""

    goal: str
    history: tuple[Step, ...]
    observation: str
    actions: tuple[str, ...] | None = None
    image: str | None = None

    @property
    def images(self) -> list[str | None]:
        """What was seen at each step, the present one last."""
        return [*(step.image for step in self.history), self.image]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one action led to. `reward` is for this step alone, `score` and `success` are for the episode so far."""

    text: str
    reward: float
    done: bool
    success: bool
    score: float
    actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A response, parsed: the text for the environment, and whether the response kept to the grammar."""

    text: str
    valid: bool


def fingerprint_of(text: str) -> str:
    """The first 16 hex digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Environment(ABC):
    """One live environment. It plays one episode at a time and can be reset without end.

    `categories` are the families that success is reported by. An environment cuts no episode, unless its own rules do: who
    plays does, and `max_steps` is the usual number of steps.
    """

    name: str
    categories: tuple[str, ...]
    max_steps: int
    example: str
    """A task to show, as split:index."""
    packaged: bool = True
    """Whether its tasks come with the package or from seeds, so that they are listed without opening anything large."""
    seen: bool = False
    """Whether its messages have `IMAGE` in them, where the picture of the step goes."""

    # ---- the world

    @property
    def fingerprint(self) -> str:
        """A hash of the data that the tasks come from, 16 hex digits, recorded with results; empty where there is none."""
        return ""

    @abstractmethod
    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split, always in the same order; raises UserError, naming the splits, for an unknown one."""

    @abstractmethod
    def category(self, task: Task) -> str:
        """The category that a task's success is counted in."""

    @abstractmethod
    def reset(self, task: Task) -> Observation:
        """Start the episode that the task names."""

    @abstractmethod
    def step(self, action: str) -> Outcome:
        """Take one action, as text; any text is accepted and an impossible action is an ordinary outcome."""

    def picture(self) -> NDArray[np.uint8] | None:
        """What the live episode looks like now, (height, width, 3) in red, green and blue; None where nothing can be seen.

        A picture is asked for and never part of an observation, so that it costs nothing when nobody looks.
        """
        return None

    def open(self, file: Path) -> Task:
        """The task of a game file that lies outside any split; raises UserError where the environment has no such files."""
        raise UserError(f"--file: {self.name} has no game files; name a task with --task split:index.")

    # ---- how a language model plays it

    @abstractmethod
    def parse(self, response: str) -> Action:
        """Turn a model's response into an action."""

    @abstractmethod
    def action_span(self, response: str) -> tuple[int, int]:
        """Where in the response the action's text stands, as half-open character positions; (0, 0) if nowhere."""

    @abstractmethod
    def windowed_prompt(self, situation: Situation, skill: str | None, window: int) -> str:
        """The user message of one step when each step is a prompt of its own with the last `window` steps in it."""

    @abstractmethod
    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        """The first user message when the episode is one growing conversation: instructions, task, skill, observation."""

    def reply(self, observation: str) -> str:
        """A later user message of that conversation."""
        return observation
