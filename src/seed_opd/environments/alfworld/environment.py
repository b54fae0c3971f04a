"""ALFWorld as an environment: tasks from game files, the text engine, and how a language model plays it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from seed_opd.environments.alfworld import prompts
from seed_opd.environments.alfworld.engine import Game, Play, load
from seed_opd.environments.alfworld.games import ALIASES, CATEGORIES, PACKAGED, category_of, open_games
from seed_opd.environments.base import Action, Environment, Observation, Outcome, Situation
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

REWARD = 10.0
BANNER = "-="
TASK = "Your task is to: "
HELP = "help"
FILE = "file"


class AlfworldEnvironment(Environment):
    """Household tasks in text; success is that the goal holds after some step, which ends the episode.

    `games` says which games are played: "original", "generated", the path of a folder or an archive, or None for the
    originals where they are found and else the generated ones. The reward is 10 at the step of success; the score is 0 or 1.
    """

    name = "alfworld"
    categories = tuple(CATEGORIES.values())
    max_steps = 30
    example = "valid_seen:0"

    def __init__(self, games: str | None = None) -> None:
        self.store = open_games(games)
        self.packaged = self.store.source == PACKAGED.resolve()
        self._play: Play | None = None
        self._success = False
        self._files: list[tuple[Path, Game]] = []

    @property
    def play(self) -> Play:
        """The live episode."""
        if self._play is None:
            raise UserError("alfworld: no episode has been started; call reset first.")
        return self._play

    @property
    def fingerprint(self) -> str:
        """A hash of the games, to be recorded with results."""
        return self.store.fingerprint

    # ---- the world

    def tasks(self, split: str) -> Sequence[Task]:
        names = self.store.names(split)
        return [Task(self.name, ALIASES.get(split, split), index) for index in range(len(names))]

    def category(self, task: Task) -> str:
        return category_of(self.game_name(task))

    def game_name(self, task: Task) -> str:
        """The name of a task's game, "<split>/<task>/<trial>"."""
        if task.split == FILE:
            return "/".join(self._files[task.index][0].parts[-3:-1])
        names = self.store.names(task.split)
        if task.environment != self.name or not 0 <= task.index < len(names):
            raise UserError(f"task: {task} does not exist; {task.split!r} has {len(names)} games from index 0.")
        return names[task.index]

    def reset(self, task: Task) -> Observation:
        if task.split == FILE:
            return self.start(self._files[task.index][1])
        return self.start(self.store.game(self.game_name(task)))

    def open(self, file: Path) -> Task:
        """Register a game file; its task is of the split "file", and its category is that of its folder's name."""
        try:
            game = load(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"--file: {str(file)!r} cannot be read as a game ({error}); give a game.tw-pddl file."
            ) from error
        self._files.append((file.resolve(), game))
        return Task(self.name, FILE, len(self._files) - 1)

    def start(self, game: Game) -> Observation:
        """Start an episode of a game that need not be in the store."""
        self._play, self._success = game.new(), False
        text, goal = split_introduction(game.introduction)
        return Observation(text, goal, self._actions())

    def step(self, action: str) -> Outcome:
        text = self.play.step(action)
        succeeded = self.play.won and not self._success
        self._success |= succeeded
        reward = REWARD if succeeded else 0.0
        return Outcome(text, reward, self._success, self._success, float(self._success), self._actions())

    def _actions(self) -> tuple[str, ...]:
        return tuple([command for command in self.play.admissible if command != HELP])

    # ---- how a language model plays it

    def parse(self, response: str) -> Action:
        return Action(*prompts.parse(response))

    def action_span(self, response: str) -> tuple[int, int]:
        return prompts.action_span(response)

    def windowed_prompt(self, situation: Situation, skill: str | None, window: int) -> str:
        return prompts.windowed(situation, skill, window)

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        return prompts.opening(goal, observation, skill)


def split_introduction(text: str) -> tuple[str, str]:
    """The first observation and the goal, out of what the game says first: a banner, the room, the task."""
    room, separator, goal = text.rpartition(TASK)
    if not separator:
        raise UserError(f"game: what it says first must end with {TASK!r} and the task.")
    paragraphs = [part for part in room.split("\n\n") if part.strip() and not part.startswith(BANNER)]
    return "\n\n".join(paragraphs).strip(), goal.strip()
