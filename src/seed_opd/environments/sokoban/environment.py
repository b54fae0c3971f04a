"""Sokoban as an environment: rooms of 6x6 from seeds, rewards, and how a language model plays it.

Rules, rewards, limits and the grammar of responses are those of the reference code. What differs, on purpose:

- rooms come from our own generator (`generator.py`), so a seed does not give the room that it gives there;
- the drawings, and the words of the prompts, are ours;
- the text of a room has spaces between its cells, and tells the last steps in text only;
- a move that is none ("still", or a response without one) is a step here; the reference code does not count it in the
  environment, but in the loop around it, which has the same limit;
- an episode that is solved stays solved: further moves do nothing.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from seed_opd.environments.base import Action, Environment, Observation, Outcome, Situation, fingerprint_of
from seed_opd.environments.options import WrongOption
from seed_opd.environments.seeded import SPLITS, SeededTasks, seed_of, seeded_tasks
from seed_opd.environments.sokoban import prompts
from seed_opd.environments.sokoban.generator import MOST_BOXES, generate
from seed_opd.environments.sokoban.rules import DIRECTIONS, Room
from seed_opd.environments.sokoban.solver import distance
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

if TYPE_CHECKING:
    from seed_opd.environments.canvas import Picture

STEP, PLACED, SOLVED = -0.1, 1.0, 10.0
"""Rewards: each step, each box that comes onto a target (its negative for one that leaves it), all boxes on targets."""

SHORT, MEDIUM = 4, 7
"""The longest shortest solution, in moves, of a room that counts as short, and as medium."""

View = Literal["text", "image"]
ROOMS_HASHED = 64


class SokobanEnvironment(Environment):
    """Push every box onto a target; success is that all are, which ends the episode.

    `view`: a model reads the room as text, or sees it as a picture; observations are text in either case. `boxes`: 1 in the
    paper. `tile`: pixels of a cell's side in the picture (reference code: 16). The score is the share of boxes on targets.
    Categories are by the length of a shortest solution. Raises UserError for other options, and where Pillow is missing.
    """

    name = "sokoban"
    categories = ("short", "medium", "long")
    max_steps = 15
    example = "valid:0"

    def __init__(self, view: View = "text", boxes: int = 1, tile: int = 16) -> None:
        if view not in ("text", "image"):
            raise WrongOption("view", view, "is unknown; choose text or image.")
        if not 8 <= tile <= 128:
            raise WrongOption("tile", tile, "pixels cannot be drawn; choose 8 to 128.")
        if not 1 <= boxes <= MOST_BOXES:
            raise WrongOption("boxes", boxes, f"do not fit into the room; choose 1 to {MOST_BOXES}.")
        self.boxes = boxes
        self.tile = tile
        self.seen = view == "image"
        self.prompts = prompts.Prompts(self.seen)
        self._room: Room | None = None
        if view == "image":
            import_module("seed_opd.environments.sokoban.drawing")  # a missing Pillow is told at once

    @property
    def room(self) -> Room:
        """The live room."""
        if self._room is None:
            raise UserError("sokoban: no episode has been started; call reset first.")
        return self._room

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the first rooms of every split: it changes when the generator does."""
        seeds = [seed for split in SPLITS.values() for seed in split[:ROOMS_HASHED]]
        rooms = "\n\n".join(generate(seed, self.boxes).text() for seed in seeds)
        return fingerprint_of(rooms)

    # ---- the world

    def tasks(self, split: str) -> SeededTasks:
        return seeded_tasks(self.name, split)

    def category(self, task: Task) -> str:
        moves = distance(self.room_of(task)) or 0
        return "short" if moves <= SHORT else "medium" if moves <= MEDIUM else "long"

    def room_of(self, task: Task) -> Room:
        """The room that a task begins with."""
        return generate(seed_of(self.name, task), self.boxes)

    def reset(self, task: Task) -> Observation:
        return self.start(self.room_of(task))

    def start(self, room: Room) -> Observation:
        """Start an episode in a room that need not be a task's."""
        self._room = room
        goal = "push the box onto the target." if len(room.boxes) == 1 else "push every box onto a target."
        return Observation(room.text(), goal, DIRECTIONS)

    def step(self, action: str) -> Outcome:
        before = self.room
        if before.solved:
            return Outcome(before.text(), 0.0, True, True, 1.0, DIRECTIONS)
        room = self._room = before.moved(action) if action in DIRECTIONS else before
        placed, solved = room.placed, room.solved
        reward = STEP + PLACED * (placed - before.placed) + SOLVED * solved
        return Outcome(room.text(), reward, solved, solved, placed / len(room.boxes), DIRECTIONS)

    def picture(self) -> Picture:
        from seed_opd.environments.sokoban.drawing import picture  # only who looks needs Pillow

        return picture(self.room, self.tile)

    # ---- how a language model plays it

    def parse(self, response: str) -> Action:
        return Action(*prompts.parse(response))

    def action_span(self, response: str) -> tuple[int, int]:
        return prompts.action_span(response)

    def windowed_prompt(self, situation: Situation, skill: str | None, window: int) -> str:
        return self.prompts.windowed(situation, skill, window)

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        return self.prompts.opening(goal, observation, skill)

    def reply(self, observation: str) -> str:
        return self.prompts.reply(observation)
