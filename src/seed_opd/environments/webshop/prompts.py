"""What a language model is told in WebShop, and how its response becomes an action.

The windowed prompt has the fields of the agent-training stacks (task, step count, the last observations and actions, the
current observation, the available actions) in words of our own; the transcript's opening is short, since more follows.
Every page repeats the task; in prompts that is cut off, since the task stands above.
"""

from __future__ import annotations

from seed_opd.environments import messages
from seed_opd.environments.base import Situation
from seed_opd.environments.messages import action_span as action_span
from seed_opd.environments.messages import recent, with_skill
from seed_opd.environments.shop_texts import SEPARATOR
from seed_opd.trajectory import Step

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


def task_block(goal: str, skill: str | None) -> str:
    """The task line, and directly after it the skill, if there is one."""
    return with_skill(f"Your task is to: {goal}", skill)


def opening(goal: str, observation: str, skill: str | None) -> str:
    """The first message of an episode that is one conversation."""
    return f"{INSTRUCTIONS}\n\n{task_block(goal, skill)}\n\n{without_task(observation)}"


def windowed(situation: Situation, skill: str | None, window: int) -> str:
    """The message of one step that is a prompt of its own; the first step has no history to tell."""
    taken, actions = len(situation.history), situation.actions
    parts = ["You are an expert agent in the online shop WebShop.", task_block(situation.goal, skill)]
    if taken:
        parts.append(f"Steps taken so far: {taken}.")
    count, lines = recent(situation.history, window, _told)
    if count:
        parts.append(f"The last {count} observations and the actions you took:\n{lines}")
    parts.append(f"Current step: {taken + 1}\nCurrent observation: {without_task(situation.observation)}")
    if actions is not None:
        parts.append("Available actions now:\n" + "\n".join(actions))
    return "\n\n".join([*parts, ANSWER])


def parse(response: str) -> tuple[str, bool]:
    """The action in lower case, and whether the response kept to the grammar."""
    return messages.parse(response, FALLBACK)


def _told(number: int, step: Step) -> str:
    return f"[{number}] Observation: {without_task(step.observation)}\n[{number}] Action: {step.action}"
