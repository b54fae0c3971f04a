"""What a language model is told in Sokoban, and how its response becomes a move.

The prompts say what those of the reference code say (goal, three rules, what the cells look like, the moves) in words of our
own. Where the model sees a picture, the text of the room is left out of its prompts and the picture stands in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seed_opd.environments.base import IMAGE, Situation
from seed_opd.environments.messages import recent, task_block
from seed_opd.environments.sokoban.rules import DIRECTIONS
from seed_opd.trajectory import Step

STILL = "still"
ROLE = "You are an expert player of Sokoban."
RULES = (
    "Rules:\n"
    "- You push a box by walking into it. You cannot pull, and you cannot push two boxes at once.\n"
    "- Nothing goes through walls.\n"
    "- A box in a corner stays there for ever, so look before you push."
)
TEXT_LEGEND = "Cells: # wall, _ floor, O target, X box, √ box on a target, P you, S you on a target."
IMAGE_LEGEND = (
    "In the picture: grey bricks are walls, a red diamond in a red frame is a target, a yellow crate is a box, a green "
    "crate with a tick is a box on a target, the person in blue is you; in a red frame you stand on a target."
)
ANSWER = (
    "Now it is your turn, one move. First reason step by step about the room inside <think> </think> tags. Then choose one "
    "of the admissible moves and write it inside <action> </action> tags."
)
INSTRUCTIONS = (
    "You play Sokoban, one move per turn: up, down, left or right. Think briefly inside <think> </think>, "
    "then give exactly one move inside <action> </action>."
)

_ACTION = re.compile(r"<action>(.*?)</action>", re.IGNORECASE | re.DOTALL)
_MOVE = tuple(re.compile(word, re.IGNORECASE) for word in (*DIRECTIONS, STILL))


@dataclass(frozen=True, slots=True)
class Prompts:
    """The messages of one kind of view: `seen` as a picture, or read as text."""

    seen: bool

    @property
    def legend(self) -> str:
        return IMAGE_LEGEND if self.seen else TEXT_LEGEND

    def reply(self, observation: str) -> str:
        """What the room is now."""
        return IMAGE if self.seen else observation

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        """The first message of an episode that is one conversation."""
        return "\n\n".join([INSTRUCTIONS, self.legend, task_block(goal, skill), self.reply(observation)])

    def windowed(self, situation: Situation, skill: str | None, window: int) -> str:
        """The message of one step; earlier rooms are told in text only (reference code)."""
        parts = [f"{ROLE} {task_block(situation.goal, skill)}", RULES, self.legend]
        count, lines = recent(situation.history, 0 if self.seen else window, _told)
        if count:
            parts.append(f"The last {count} rooms and the moves you made:\n{lines}")
        parts.append(f"The room now:\n{self.reply(situation.observation)}")
        if situation.actions is not None:
            parts.append(f"Admissible moves: {', '.join(situation.actions)}")
        return "\n\n".join([*parts, ANSWER])


def action_span(response: str) -> tuple[int, int]:
    """Where the move stands between the first action tags; (0, 0) where there is none."""
    inside = _ACTION.search(response)
    if inside is None:
        return 0, 0
    found = (pattern.search(response, *inside.span(1)) for pattern in _MOVE)
    return next((match.span() for match in found if match), (0, 0))


def parse(response: str) -> tuple[str, bool]:
    """The move, and whether the response kept to the grammar.

    The first of up, down, left, right and still, in this order, that is anywhere in the action tags counts, part of a word
    or not. Without one, nothing is done and the response is invalid; without the tags of a thought it is invalid too, but
    the move is made (reference code).
    """
    start, end = action_span(response)
    if start == end:
        return STILL, False
    return response[start:end].lower(), "<think>" in response and "</think>" in response


def _told(number: int, step: Step) -> str:
    return f"[{number}] Room:\n{step.observation}\n[{number}] Move: {step.action}"
