"""What a language model is told in EZPoints, and how its response becomes a token.

As in the reference code: the cards first, the rules, the formula so far, an answer in JSON; a skill stands at the very end.
Words are ours. Where the model sees a picture, the text of the cards is left out and the picture stands in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seed_opd.environments.base import IMAGE, Situation
from seed_opd.environments.ezpoints.cards import FORMULA
from seed_opd.environments.ezpoints.formula import TOKENS
from seed_opd.environments.messages import SKILL

NOTHING = ""
"""The action of a response from which no token can be read."""

ROLE = "You are an expert card player. You see two cards, and type a formula one token at a time."
RULES = (
    "Rules:\n"
    "- A number counts as itself, an ace as 1; jack, queen and king count as 10.\n"
    "- Each card is used once. A number that is on no unused card is not typed.\n"
    '- "=" ends the game: the formula must make the number that the task names.'
)
ANSWER = (
    "Now it is your turn, one token. Answer in JSON, your thoughts first:\n"
    '{"thoughts": "what is on the cards, which formula you make, and what comes next", "action": "one token"}'
)
INSTRUCTIONS = (
    "You make a formula of two cards, one token per turn; jack, queen and king count as 10. "
    'Answer in JSON: {"thoughts": "a few words", "action": "one token"}.'
)
TEN = "10"

_KEY = re.compile('"action":', re.IGNORECASE)
_TOKEN = re.compile("|".join(re.escape(token) for token in (TEN, *TOKENS)))


@dataclass(frozen=True, slots=True)
class Prompts:
    """The messages of one kind of view: `seen` as a picture, or read as text."""

    seen: bool

    def reply(self, observation: str) -> str:
        """The cards and the formula; the formula is text in either view (reference code)."""
        _, formula = split(observation)
        return f"{IMAGE}\n{formula}" if self.seen else observation

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        """The first message of an episode that is one conversation."""
        return "\n\n".join([INSTRUCTIONS, f"Your task is to: {goal}", self.reply(observation), *_block(skill)])

    def windowed(self, situation: Situation, skill: str | None, window: int) -> str:
        """The message of one step; the formula tells all that came before, so that history and window do not matter."""
        cards, formula = split(situation.observation)
        parts = [IMAGE if self.seen else cards, ROLE, f"Your task is to: {situation.goal}", RULES]
        if situation.actions is not None:
            parts.append("Tokens: " + ", ".join(f'"{action}"' for action in situation.actions))
        return "\n\n".join([*parts, formula, ANSWER, *_block(skill)])


def split(observation: str) -> tuple[str, str]:
    """The cards and the formula of an observation."""
    cards, _, formula = observation.partition(f"\n{FORMULA}")
    return cards, f"{FORMULA}{formula}"


def _block(skill: str | None) -> list[str]:
    return [f"{SKILL}{skill}"] if skill else []


def action_span(response: str) -> tuple[int, int]:
    """Where the one token stands, the first time; (0, 0) where there is none, or more than one.

    Tokens are looked for behind the first `"action":`, or in the last character where that is missing; "10" is looked for
    first, and its digits are no tokens then (reference code).
    """
    key = _KEY.search(response)
    place = response[key.start() :] if key else response[-1:]
    found = {match[0]: match.span() for match in reversed(list(_TOKEN.finditer(place)))}
    if len(found) != 1:
        return 0, 0
    ((first, last),) = found.values()
    offset = len(response) - len(place)
    return first + offset, last + offset


def parse(response: str) -> tuple[str, bool]:
    """The token, and whether there is exactly one; without one nothing is done."""
    start, end = action_span(response)
    return (response[start:end], True) if end else (NOTHING, False)
