"""A trajectory as text for an analyzer: per step the observation, the whole response, and whether the action was valid.

Where the agent sees, the place of its picture stands for the observation. Rewards and admissible actions are not shown; the
outcome stands beside the text as a label (reference code).
"""

from __future__ import annotations

from collections.abc import Callable

from seed_opd.trajectory import IMAGE, Step, Trajectory


def serialise(trajectory: Trajectory, dropped: int = 0) -> str:
    """The steps of a trajectory, counted from 0, without the `dropped` oldest ones after the first."""
    blocks = [_step(index, step) for index, step in enumerate(trajectory.steps)]
    if dropped:
        blocks[1 : 1 + dropped] = [f"({dropped} steps left out)"]
    return "\n".join(blocks)


def images_shown(trajectory: Trajectory, text: str) -> list[str]:
    """The pictures of the steps that a text tells of: the first one's, and the newest ones'."""
    images = [step.image for step in trajectory.steps if step.image is not None]
    left_out = len(images) - text.count(IMAGE) if images else 0
    return images[:1] + images[1 + left_out :]


def steps_to_drop(trajectory: Trajectory, fits: Callable[[int], bool]) -> int:
    """The fewest middle steps to leave out so that `fits(dropped)` holds; all of them where nothing fits."""
    if fits(0):
        return 0
    low, high = 0, max(0, len(trajectory.steps) - 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def _step(index: int, step: Step) -> str:
    valid = "true" if step.valid else "false"
    observation, response = step.observation, step.response
    if step.image is not None:
        observation, response = IMAGE, response.replace(IMAGE, "image")  # only ours may stand for a picture
    return f"Step {index}\nObservation: {observation}\nResponse: {response}\nAction valid: {valid}"
