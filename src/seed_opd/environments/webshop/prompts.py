"""What a language model is told in WebShop, and how its response becomes an action.

The windowed prompt has the fields of the agent-training stacks (task, step count, the last observations and actions, the
current observation, the available actions) in words of our own; the transcript's opening is short, since more follows.
Every page repeats the task; in prompts that is cut off, since the task stands above.
"""

from __future__ import annotations

from seed_opd.environments import messages
from seed_opd.environments.base import Situation
from seed_opd.environments.messages import action_span as action_span
from seed_opd.environments.messages import progress, task_block
from seed_opd.environments.shop_texts import SEPARATOR

INSTRUCTIONS = (
    "You shop online, one action per turn: search[words] or click[what the page shows]. Think briefly about what to do next "
    "inside <think> </think>, then give exactly one action inside <action> </action>."
)
ANSWER = (
    "Now it is your turn. First reason step by step about the page and your next move inside <think> </think> tags. "
    "Then choose one of the available actions and write it inside <action> </action> tags."
)
FALLBACK = 20  # how many characters at the end are tried as an action where the action tags are missing

_INSTRUCTION = "Instruction:"


def without_task(page: str) -> str:
    """A page without the task that stands in it."""
    head, separator, rest = page.partition(_INSTRUCTION + SEPARATOR)
    return head + rest.partition(SEPARATOR)[2] if separator else page


def opening(goal: str, observation: str, skill: str | None) -> str:
    """The first message of an episode that is one conversation."""
    return f"{INSTRUCTIONS}\n\n{task_block(goal, skill)}\n\n{without_task(observation)}"


def windowed(situation: Situation, skill: str | None, window: int) -> str:
    """The message of one step that is a prompt of its own."""
    parts = ["You are an expert agent in the online shop WebShop.", task_block(situation.goal, skill)]
    parts += progress(situation, window, without_task)
    if (actions := situation.actions) is not None:
        parts.append("Available actions now:\n" + "\n".join(actions))
    return "\n\n".join([*parts, ANSWER])


def parse(response: str) -> tuple[str, bool]:
    """The action in lower case, and whether the response kept to the grammar."""
    return messages.parse(response, FALLBACK)
