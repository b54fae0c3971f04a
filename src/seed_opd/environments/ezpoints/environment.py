"""EZPoints as an environment: two cards, a formula typed token by token, rewards, and how a language model plays it.

Cards, rules, rewards, limits and the grammar of responses are those of the reference code; the same seed deals the same
cards. What differs, on purpose:

- a formula is read by a parser and never evaluated as code (`formula.py`); no reward differs by it;
- the drawings are ours, with a place for each token instead of a line of text;
- the words of the prompts are ours, and history is never told, since the formula holds it;
- as text, a card is written out ("king of spades"), and nobody says that it counts as 10.

There are few hands: splits are disjoint in their seeds, not in what is dealt.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from seed_opd.environments.base import Action, Environment, Observation, Outcome, Situation, fingerprint_of
from seed_opd.environments.ezpoints import prompts
from seed_opd.environments.ezpoints.cards import FACES, TARGET, Hand, deal, tell
from seed_opd.environments.ezpoints.formula import EQUALS, LONGEST, NUMBERS, TOKENS, value
from seed_opd.environments.options import WrongOption
from seed_opd.environments.seeded import SPLITS, SeededTasks, seed_of, seeded_tasks
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

if TYPE_CHECKING:
    from seed_opd.environments.canvas import Picture

REWARD = 10.0

View = Literal["text", "image"]
HANDS_HASHED = 64


class EzpointsEnvironment(Environment):
    """Type a formula of both cards that makes 12, then "="; success is that it does.

    `view`: a model reads the cards as text, or sees them in a picture; observations are text in either case. `size`: the
    picture's side in pixels (reference code: 300). The reward is 10 at the step of success, the score 0 or 1. Categories:
    hands that a sum solves, a product, and those with a face card. Raises UserError for other options, and where Pillow is
    missing.
    """

    name = "ezpoints"
    categories = ("sum", "product", "face")
    max_steps = 8
    example = "valid:0"

    def __init__(self, view: View = "text", size: int = 300) -> None:
        if view not in ("text", "image"):
            raise WrongOption("view", view, "is unknown; choose text or image.")
        if not 48 <= size <= 1024:
            raise WrongOption("size", size, "pixels cannot be drawn; choose 48 to 1024.")
        self.size = size
        self.seen = view == "image"
        self.prompts = prompts.Prompts(self.seen)
        self._hand: Hand | None = None
        self._formula: tuple[str, ...] = ()
        self._done = self._success = False
        if view == "image":
            import_module("seed_opd.environments.ezpoints.drawing")  # a missing Pillow is told at once

    @property
    def hand(self) -> Hand:
        """The cards of the live episode."""
        if self._hand is None:
            raise UserError("ezpoints: no episode has been started; call reset first.")
        return self._hand

    @property
    def formula(self) -> tuple[str, ...]:
        """The formula so far."""
        return self._formula

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the first hands of every split."""
        hands = [deal(seed) for split in SPLITS.values() for seed in split[:HANDS_HASHED]]
        return fingerprint_of("\n".join(card.text for hand in hands for card in hand))

    # ---- the world

    def tasks(self, split: str) -> SeededTasks:
        return seeded_tasks(self.name, split)

    def category(self, task: Task) -> str:
        hand = self.hand_of(task)
        if any(card.rank in FACES for card in hand):
            return "face"
        return "sum" if sum(card.value for card in hand) == TARGET else "product"

    def hand_of(self, task: Task) -> Hand:
        """The cards that a task deals."""
        return deal(seed_of(self.name, task))

    def reset(self, task: Task) -> Observation:
        return self.start(self.hand_of(task))

    def start(self, hand: Hand) -> Observation:
        """Start an episode with cards that need not be a task's."""
        self._hand, self._formula, self._done, self._success = hand, (), False, False
        return Observation(self._text(), f"make {TARGET} of both cards with + or *, then =.", TOKENS)

    def step(self, action: str) -> Outcome:
        earned = False
        if self._takes(action):
            if action == EQUALS:
                self._done, self._success = True, value(self._formula) == TARGET  # it takes both: no card counts 12
                earned = self._success
            else:
                self._formula = (*self._formula, action)
        return Outcome(self._text(), REWARD if earned else 0.0, self._done, self._success, float(self._success), TOKENS)

    def _takes(self, token: str) -> bool:
        """Whether typing a token changes anything; operators are never refused."""
        if self._done or token not in TOKENS or len(self._formula) >= LONGEST:
            return False
        left = Counter(str(card.value) for card in self.hand) - Counter(self._formula)
        return token not in NUMBERS or left[token] > 0

    def _text(self) -> str:
        return tell(self.hand, self._formula)

    def picture(self) -> Picture:
        from seed_opd.environments.ezpoints.drawing import picture  # only who looks needs Pillow

        return picture(self.hand, self._formula, self.size)

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
