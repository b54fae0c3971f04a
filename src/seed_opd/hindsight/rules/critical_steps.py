"""Which steps of a household episode decided it, and a sentence for each, by rules (for OPID's step skills)."""

from __future__ import annotations

from seed_opd.hindsight.rules.household import Hindsight, facts
from seed_opd.trajectory import Trajectory

MOST = 5
"""Step skills per trajectory (OPID's reference code: 5)."""


def critical_steps(trajectory: Trajectory) -> tuple[tuple[int, str], ...]:
    """The steps that handled what the task is about, or made its mistake, with what to do there; at most `MOST`.

    Raises UserError when the goal is no household task.
    """
    known = facts(trajectory)
    found = [(index, _sentence(known, step.action)) for index, step in enumerate(trajectory.steps)]
    return tuple((index, sentence) for index, sentence in found if sentence)[:MOST]


def _sentence(known: Hindsight, action: str) -> str:
    if known.success:
        verb = action.partition(" ")[0]
        handled = verb in ("take", "move", "put", "clean", "heat", "cool", "use")
        return f"{action} now." if handled and _is_about(known, action) else ""
    if known.culprit and known.culprit in action:
        return f"do not {action} now."
    return ""


def _is_about(known: Hindsight, action: str) -> bool:
    names = [find.name for find in known.finds] + ([known.tool.name] if known.tool else [])
    return any(f"{name} " in f"{action} " for name in names)
