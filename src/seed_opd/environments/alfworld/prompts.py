"""What a language model is told in ALFWorld, and how its response becomes a command.

The windowed prompt has the fields of the SEED paper (task, step count, the last observations and actions, the current
observation, the admissible actions) in words of our own; the transcript's opening is short, since the whole episode follows.
"""

from __future__ import annotations

from seed_opd.environments import messages
from seed_opd.environments.base import Situation
from seed_opd.environments.messages import action_span as action_span
from seed_opd.environments.messages import progress, task_block

INSTRUCTIONS = (
    "You act in a household, one command per turn. Think briefly about what to do next inside <think> </think>, "
    "then give exactly one command inside <action> </action>."
)
ANSWER = (
    "Now it is your turn. First reason step by step about the situation and your next move inside <think> </think> tags. "
    "Then choose one of the admissible actions and write it inside <action> </action> tags."
)
FALLBACK = 30  # how many characters at the end are tried as a command where the action tags are missing


def opening(goal: str, observation: str, skill: str | None) -> str:
    """The first message of an episode that is one conversation."""
    return f"{INSTRUCTIONS}\n\n{task_block(goal, skill)}\n\n{observation}"


def windowed(situation: Situation, skill: str | None, window: int) -> str:
    """The message of one step that is a prompt of its own."""
    parts = ["You are an expert agent in the text-based household environment ALFRED.", task_block(situation.goal, skill)]
    parts += progress(situation, window)
    if (actions := situation.actions) is not None:
        parts.append("Admissible actions now: [" + ", ".join(f"'{action}'" for action in actions) + "]")
    return "\n\n".join([*parts, ANSWER])


def parse(response: str) -> tuple[str, bool]:
    """The command in lower case, and whether the response kept to the grammar."""
    return messages.parse(response, FALLBACK)
