"""Skills written by rules, for Sokoban episodes: no model, only the rooms that the episode's text shows.

A success becomes the pushes that did it ("first stand left of the box and push it right 2 times, then ..."). A failure
becomes a correction ("do not push the box down into the corner") and the pushes that the solver finds from the first room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from seed_opd.environments.sokoban.rules import Room, read_room
from seed_opd.environments.sokoban.solver import distance, plan
from seed_opd.errors import UserError
from seed_opd.hindsight.rules.critical_steps import MOST
from seed_opd.trajectory import Skill, Trajectory

NAME = "rules"
Mistake = Literal["corner", "wall", "stuck", "blocked", "no_push", "back_and_forth", "slow"]

SIDES = {"up": "below", "down": "above", "left": "right of", "right": "left of"}
"""Where one stands to push in a direction."""

_AVOID: dict[Mistake, str] = {
    "corner": "do not push {box} {direction} into the corner",
    "wall": "do not push {box} {direction} to the wall",
    "stuck": "do not push {box} {direction}, it is stuck there",
    "blocked": "do not go {direction} where the way is blocked",
    "no_push": "do not walk around without a push",
    "back_and_forth": "do not push the box back and forth",
    "slow": "do not waste moves",
}
_REASON: dict[Mistake, str] = {
    "corner": "{box} was pushed {direction} into the corner",
    "wall": "{box} was pushed {direction} to the wall, away from any target",
    "stuck": "{box} was pushed {direction} and stuck",
    "blocked": "the way {direction} was blocked",
    "no_push": "no box was pushed",
    "back_and_forth": "there were more pushes than needed",
    "slow": "the moves ran out",
}


@dataclass(frozen=True, slots=True)
class Leg:
    """Pushes of one box in one direction; `start` is its row and column before them, `step` that of the first of them."""

    start: tuple[int, int]
    direction: str
    times: int
    step: int

    @property
    def amount(self) -> str:
        return f"{self.direction} {self.times} time{'s' * (self.times > 1)}"


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What an episode showed: the pushes that solve it and, after a failure, the mistake and the push or move at fault."""

    boxes: int
    legs: tuple[Leg, ...]
    mistake: Mistake | None = None
    direction: str = ""
    start: tuple[int, int] | None = None  # of the box that was pushed wrongly
    step: int | None = None  # of the mistake

    def box(self, start: tuple[int, int] | None) -> str:
        """A box in words; its place is told only where there are several."""
        return "the box at row {}, column {}".format(*start) if start and self.boxes > 1 else "the box"


def write(trajectory: Trajectory) -> Skill:
    """The skill of an episode, with those of its critical steps; raises UserError when its text shows no rooms."""
    known = facts(trajectory)
    steps = _critical_steps(known)
    if known.mistake is None:
        done = " and ".join(f"{known.box(leg.start)} was pushed {leg.amount}" for leg in known.legs)
        return Skill(f"{done}, and the task was done.", _workflow(known), analyzer=NAME, steps=steps)
    words = {"box": known.box(known.start), "direction": known.direction}
    summary = f"the task failed: {_REASON[known.mistake].format(**words)}."
    skill = f"{_AVOID[known.mistake].format(**words)}: {_workflow(known)}"
    return Skill(summary, skill, analyzer=NAME, steps=steps)


def named(trajectory: Trajectory) -> dict[str, list[str]]:
    """What a good skill names: each `push` with its direction and number, the `side`s to stand on, and the `mistake`.

    Raises UserError when the episode's text shows no rooms.
    """
    known = facts(trajectory)
    words = {"box": known.box(known.start), "direction": known.direction}
    return {
        "push": list(dict.fromkeys(leg.amount for leg in known.legs)),
        "side": list(dict.fromkeys(SIDES[leg.direction] for leg in known.legs)),
        "mistake": [_AVOID[known.mistake].format(**words).removeprefix("do not ")] if known.mistake else [],
    }


def facts(trajectory: Trajectory) -> Hindsight:
    """Read a finished episode; raises UserError when its text shows no rooms, or the first cannot be solved."""
    texts = [step.observation for step in trajectory.steps] + [trajectory.final_observation]
    rooms = [read_room(text) for text in texts]
    if trajectory.success:
        if not rooms[-1].solved:
            raise UserError(f"room: {texts[-1]!r} is not solved, but the episode counts as a success; give the whole of it.")
        return Hindsight(len(rooms[0].boxes), _legs(rooms))
    way = plan(rooms[0])
    if way is None:
        raise UserError(f"room: {texts[0]!r} cannot be solved, so that nothing can be said about it; give another episode.")
    solution = [rooms[0]]
    for move in way:
        solution.append(solution[-1].moved(move))
    return _failed(rooms, [step.action for step in trajectory.steps], _legs(solution))


def _failed(rooms: Sequence[Room], actions: Sequence[str], legs: tuple[Leg, ...]) -> Hindsight:
    """The first thing that stood between the episode and its goal."""
    boxes = len(rooms[0].boxes)
    pushes = [(step, push) for step, (before, after) in enumerate(pairwise(rooms)) if (push := _push(before, after))]
    for step, (box, direction) in pushes:
        if distance(rooms[step + 1]) is None:
            kind = _dead_end(rooms[step + 1], box + rooms[step].steps[direction])
            return Hindsight(boxes, legs, kind, direction, rooms[step].place(box), step)
    in_vain = [step for step, (before, after) in enumerate(pairwise(rooms)) if before == after]
    useless = Counter(actions[step] for step in in_vain)
    moves = [action for action in useless if action in SIDES]
    if moves and useless.total() >= max(3, len(actions) / 2):
        worst = max(moves, key=lambda action: useless[action])
        first = next(step for step in in_vain if actions[step] == worst)
        return Hindsight(boxes, legs, "blocked", worst, step=first)
    if not pushes:
        return Hindsight(boxes, legs, "no_push")
    return Hindsight(boxes, legs, "back_and_forth" if len(pushes) > sum(leg.times for leg in legs) else "slow")


def _push(before: Room, after: Room) -> tuple[int, str] | None:
    """Which box, by its cell, was pushed and where to; None where none was."""
    gone, new = before.boxes - after.boxes, after.boxes - before.boxes
    for direction, step in before.steps.items():
        for cell in gone:
            if cell + step in new:
                return cell, direction
    return None


def _dead_end(room: Room, box: int) -> Mistake:
    """How a box that cannot reach a target any more is held."""
    steps = room.steps
    upright = any(box + steps[side] in room.walls for side in ("up", "down"))
    sideways = any(box + steps[side] in room.walls for side in ("left", "right"))
    return "corner" if upright and sideways else "wall" if upright or sideways else "stuck"


def _legs(rooms: Sequence[Room]) -> tuple[Leg, ...]:
    """The pushes of a sequence of rooms."""
    legs: list[Leg] = []
    at = -1  # where the box of the last leg is now
    for step, (before, after) in enumerate(pairwise(rooms)):
        if not (push := _push(before, after)):
            continue
        box, direction = push
        if legs and (box, direction) == (at, legs[-1].direction):
            legs[-1] = replace(legs[-1], times=legs[-1].times + 1)
        else:
            legs.append(Leg(before.place(box), direction, 1, step))
        at = box + before.steps[direction]
    return tuple(legs)


def _workflow(known: Hindsight) -> str:
    """The pushes in their order."""
    marks = ["first", *["next"] * (len(known.legs) - 2), "then"]
    clauses = [
        f"{mark} stand {SIDES[leg.direction]} {known.box(leg.start)} and push it {leg.amount}"
        for mark, leg in zip(marks, known.legs, strict=False)
    ]
    return ", ".join(clauses) + "."


def _critical_steps(known: Hindsight) -> tuple[tuple[int, str], ...]:
    """The first push of each leg of a success, or the move at fault, with what to do there."""
    if known.mistake is None:
        return tuple((leg.step, f"push the box {leg.direction} now.") for leg in known.legs)[:MOST]
    return ((known.step, f"do not go {known.direction} now."),) if known.step is not None else ()
