"""The probe: how well does a written skill agree with what the rules read from the same episode?

Constrained decoding hides that a policy has forgotten how to analyse; this score does not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from seed_opd.hindsight.rules import rules_of
from seed_opd.trajectory import Skill, Trajectory

_AVOIDS = re.compile(r"\b(?:do not|don't|never|avoid|instead of)\b", re.IGNORECASE)

HALF_FOR_TYPE = ("object", "tool")
"""Parts in which the type alone, "mug" for "mug 2", counts a half."""


def score(skill: Skill, trajectory: Trajectory) -> dict[str, float]:
    """Each part in [0, 1], and their `mean`; one that is not usable gets zeros.

    The parts are the share of the names that the rules say matter, by kind of name, and `kind`: a workflow after a success,
    an avoidance after a failure. A part that the episode has no names for is left out. Raises UserError for an episode that
    the rules cannot read.
    """
    text = skill.skill.lower() if skill.usable else ""
    parts = {
        part: _share(text, names, half=part in HALF_FOR_TYPE)
        for part, names in _named(trajectory).items()
        if names  # what did not happen cannot be named
    }
    parts["kind"] = float(bool(text) and bool(_AVOIDS.search(text)) == (trajectory.outcome == "failure"))
    return {**parts, "mean": sum(parts.values()) / len(parts)}


def mean_score(skills: Sequence[Skill], trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """The mean of each part over the episodes that have it, and of the means."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for skill, trajectory in zip(skills, trajectories, strict=True):
        for part, value in score(skill, trajectory).items():
            found[part].append(value)
    return {part: sum(values) / len(values) for part, values in found.items()}


def _named(trajectory: Trajectory) -> Mapping[str, Sequence[str]]:
    return rules_of(trajectory).named(trajectory)


def _share(text: str, names: Sequence[str], half: bool) -> float:
    return sum(_credit(text, name.lower(), half) for name in names) / len(names)


def _credit(text: str, name: str, half: bool) -> float:
    if _says(text, name):
        return 1.0
    return 0.5 if half and _says(text, name.partition(" ")[0]) else 0.0


def _says(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
