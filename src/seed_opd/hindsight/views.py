"""How a finished episode is put before the policy that analyses it.

`DocumentView`: one user message with the episode written out (reference code). `ConversationView`: the episode as it was
played, one conversation, and one more user message that asks for the analysis. What the policy read while it acted is then
not read again, where a cache of it is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seed_opd.hindsight.prompts import analyzer_prompt, question
from seed_opd.hindsight.serialise import images_shown
from seed_opd.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to sample an analysis from, how many middle steps they leave out, and whether they fit the length asked for.

    `key` names the conversation that they continue, if any.
    """

    ids: list[int]
    dropped_steps: int = 0
    fits: bool = True
    key: Hashable | None = None


class View(Protocol):
    @property
    def max_tokens(self) -> int:
        """Room for a prompt; the oldest middle steps go beyond it, never instructions, task or last step."""

    def prompt(self, trajectory: Trajectory) -> Prompt: ...


@dataclass(frozen=True, slots=True)
class DocumentView:
    """`encode` turns one user message, with its pictures, into the ids of a prompt, as for acting."""

    encode: Callable[[str, Sequence[str]], list[int]]
    max_tokens: int
    general: bool = False

    def prompt(self, trajectory: Trajectory) -> Prompt:
        def encoded(text: str) -> list[int]:
            return self.encode(text, images_shown(trajectory, text))

        message = analyzer_prompt(trajectory, self.max_tokens, lambda text: len(encoded(text)), general=self.general)
        return Prompt(encoded(message.text), message.dropped_steps, message.fits)


@dataclass(frozen=True, slots=True)
class ConversationView:
    """`closing` gives the ids of a finished conversation and one more user message, within so many tokens where it can, and
    how many steps they leave out."""

    closing: Callable[[Trajectory, str, int], tuple[list[int], int]]
    max_tokens: int
    general: bool = False

    def prompt(self, trajectory: Trajectory) -> Prompt:
        ids, dropped = self.closing(trajectory, question(trajectory, self.general), self.max_tokens)
        return Prompt(ids, dropped, len(ids) <= self.max_tokens, trajectory.seed)
