"""The analyzer's prompt: one user message about an episode, or at the end of it.

Its order is that of the reference code: the order to analyse, the fields, the constraints, a skeleton, the episode. What
is asked of the skill depends on the outcome. The wording is ours, and short, so that a small context holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from seed_opd.hindsight.schema import SKELETON, SKILL, SUMMARY
from seed_opd.hindsight.serialise import serialise, steps_to_drop
from seed_opd.trajectory import Outcome, Trajectory

_ASK: dict[Outcome, str] = {
    "success": "the workflow that made it work: what to do, where, and in which order",
    "failure": "what to avoid: the main mistake, its warning signs, and the right order",
    "unknown": "the workflow if it worked, or what to avoid if it did not",
}


_GENERAL = "It holds for other tasks of this kind: no names of single things or places."


@dataclass(frozen=True, slots=True)
class AnalyzerPrompt:
    """A user message, how many middle steps it leaves out, and whether it fits the length that was asked for."""

    text: str
    dropped_steps: int = 0
    fits: bool = True


def analyzer_prompt(
    trajectory: Trajectory,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = len,
    outcome: Outcome | None = None,
    general: bool = False,
) -> AnalyzerPrompt:
    """Build the message about one trajectory; `outcome` replaces the trajectory's own label, `general` asks for a skill that
    holds beyond the episode.

    When it is longer than `max_tokens`, the oldest middle steps go; never instructions, task, first or last step.
    """
    label = outcome or trajectory.outcome

    def text(dropped: int) -> str:
        return f"{instructions(label, general=general)}\n\n{_episode(trajectory, label, dropped)}"

    def fits(dropped: int) -> bool:
        return max_tokens is None or count_tokens(text(dropped)) <= max_tokens

    dropped = steps_to_drop(trajectory, fits)
    return AnalyzerPrompt(text(dropped), dropped, fits(dropped))


def question(trajectory: Trajectory, general: bool = False) -> str:
    """The message that ends the conversation in which an episode was played, and asks for its analysis."""
    label = trajectory.outcome
    order = instructions(label, "The episode is over, analyse it.", general)
    return f"{order}\n\nTask: {trajectory.goal}\nOutcome: {label}"


def instructions(outcome: Outcome, order: str = "Analyse the finished episode below.", general: bool = False) -> str:
    """The part that is the same for every trajectory with this outcome."""
    return "\n".join(
        [
            f"{order} Answer with valid JSON only.",
            "Fields:",
            f"1. {SUMMARY}: one sentence, what happened.",
            f"2. {SKILL}: {_ASK[outcome]}.",
            "The skill is one short rule for an agent about to act, not a story. No other fields.",
            *([_GENERAL] if general else []),
            json.dumps(SKELETON),
        ]
    )


def _episode(trajectory: Trajectory, outcome: Outcome, dropped: int) -> str:
    return f"Task: {trajectory.goal}\nOutcome: {outcome}\nTrajectory:\n{serialise(trajectory, dropped)}"
