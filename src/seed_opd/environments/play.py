"""A person, or a script, plays an episode in the terminal.

For scripts (`--json`): one environment action per input line, one JSON line per state, the first after the reset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import yaml

from seed_opd.environments.base import Environment
from seed_opd.errors import UserError
from seed_opd.trajectory import Task


@dataclass(frozen=True, slots=True)
class State:
    """One line of the protocol."""

    observation: str
    actions: list[str] | None
    reward: float
    score: float
    done: bool
    success: bool

    def line(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, ensure_ascii=False)


def parse_task(environment: Environment, text: str) -> Task:
    """A task from `split:index`; raises UserError, naming what there is, for anything else."""
    split, _, number = text.rpartition(":")
    if not split or not number.isdecimal():
        raise UserError(f"--task: {text!r} is not split:index; write for example {environment.example}.")
    tasks = environment.tasks(split)
    if int(number) >= len(tasks):
        raise UserError(f"--task: {text!r} is beyond the split; {split} has tasks 0 to {len(tasks) - 1}.")
    return tasks[int(number)]


def check_choices(given: Mapping[str, object], why: str) -> None:
    """Raises UserError where more than one of the options, by name, is given."""
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        raise UserError(f"{names[-1]}: it cannot stand beside {names[0]}, as {why}; leave one of them out.")


def parse_options(texts: Iterable[str]) -> dict[str, Any]:
    """Options of an environment from `name=value`, the values as in YAML; raises UserError for anything else."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        try:
            options[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"--option: {value!r} of {name!r} is no YAML value; quote it as text.") from error
        if not name or not separator:
            raise UserError(f"--option: {text!r} is not name=value; write for example view=image.")
    return options


def play_json(
    environment: Environment,
    task: Task,
    lines: Iterable[str],
    write: Callable[[str], object],
    look: Callable[[], None] = lambda: None,
) -> None:
    """Play for a script until the input or the episode ends; raises UserError when input goes on after the end.

    `look` is called at every state, the first included.
    """
    state = begin(environment, task)
    look()
    write(state.line())
    for line in lines:
        if state.done:
            raise UserError("input: the episode is over; send no more actions, or start another one.")
        state = take(environment, line.rstrip("\r\n"))
        look()
        write(state.line())


def play_person(
    environment: Environment,
    task: Task,
    lines: TextIO,
    write: Callable[[str], object],
    look: Callable[[], None] = lambda: None,
) -> None:
    """Play for a person: plain text, numbers choose from the list of actions, `quit` leaves."""
    state = begin(environment, task)
    while True:
        look()
        write(state.observation)
        if state.done:
            write("You did it." if state.success else "The episode is over.")
            return
        for number, action in enumerate(state.actions or ()):
            write(f"  {number:2d}  {action}")
        line = lines.readline()
        if not line or line.strip() == "quit":
            return
        state = take(environment, _chosen(line.strip(), state.actions))


def photographer(environment: Environment, folder: Path) -> Callable[[], None]:
    """Saves what can be seen as 000.png, 001.png and so on; raises UserError where nothing can."""
    numbers = count()

    def look() -> None:
        from seed_opd.environments.canvas import png  # only who looks needs Pillow

        picture = environment.picture()
        if picture is None:
            raise UserError(f"--pictures: {environment.name} is text alone; leave the option out.")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{next(numbers):03d}.png").write_bytes(png(picture))

    return look


def begin(environment: Environment, task: Task) -> State:
    """Reset, with the task's text in front of the first observation."""
    observation = environment.reset(task)
    text = f"Your task is to: {observation.goal}\n\n{observation.text}"
    return State(text, _listed(observation.actions), 0.0, 0.0, False, False)


def take(environment: Environment, action: str) -> State:
    outcome = environment.step(action)
    return State(outcome.text, _listed(outcome.actions), outcome.reward, outcome.score, outcome.done, outcome.success)


def _listed(actions: tuple[str, ...] | None) -> list[str] | None:
    return None if actions is None else list(actions)


def _chosen(text: str, actions: list[str] | None) -> str:
    if actions and text not in actions and text.isdecimal() and int(text) < len(actions):
        return actions[int(text)]
    return text
