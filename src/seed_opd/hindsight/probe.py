"""The probe: how well does a written skill agree with what the rules read from the same episode?

Constrained decoding hides that a policy has forgotten how to analyse; this score does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seed_opd.hindsight.household import Hindsight, facts
from seed_opd.hindsight.rules import MOST_SEARCHED
from seed_opd.trajectory import Skill, Trajectory

_AVOIDS = re.compile(r"\b(?:do not|don't|never|avoid|instead of)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProbeScore:
    """Each part in [0, 1]; None where the episode has no such fact.

    `object`: the object is named, half for its type alone. `place`: the share of the places named that matter: where the
    object was and where it goes, or those searched in vain. `tool`: the tool or lamp is named, half for its type.
    `kind`: a workflow after a success, an avoidance after a failure.
    """

    object: float
    place: float | None
    tool: float | None
    kind: float

    @property
    def mean(self) -> float:
        parts = [part for part in (self.object, self.place, self.tool, self.kind) if part is not None]
        return sum(parts) / len(parts)


def score(skill: Skill, trajectory: Trajectory) -> ProbeScore:
    """Score one skill; one that is not usable gets zeros. Raises UserError when the goal is no household task."""
    known = facts(trajectory)
    text = skill.skill.lower() if skill.usable else ""
    places = _places(known)
    kind = float(bool(text) and _avoids(text) == (trajectory.outcome == "failure"))
    return ProbeScore(
        _named(text, [find.name for find in known.finds] or [known.goal.object_type]),
        sum(_says(text, place) for place in places) / len(places) if places else None,
        _named(text, [known.tool.name]) if known.tool else None,
        kind,
    )


def mean_score(skills: Sequence[Skill], trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """The mean of each part over the episodes that have it, and of the means."""
    scores = [score(skill, trajectory) for skill, trajectory in zip(skills, trajectories, strict=True)]
    parts = {name: [getattr(one, name) for one in scores] for name in ("object", "place", "tool", "kind", "mean")}
    known = {name: [value for value in values if value is not None] for name, values in parts.items()}
    return {name: sum(values) / len(values) for name, values in known.items() if values}


def _avoids(text: str) -> bool:
    return bool(_AVOIDS.search(text))


def _places(known: Hindsight) -> list[str]:
    if known.mistake == "not_found":
        return list(known.searched[:MOST_SEARCHED])
    sites = [find.at.name for find in known.finds] + ([known.destination.name] if known.destination else [])
    return list(dict.fromkeys(sites))


def _named(text: str, names: Sequence[str]) -> float:
    """The mean over names of 1 for the name and a half for its type alone."""
    return sum(1.0 if _says(text, name) else 0.5 * _says(text, name.partition(" ")[0]) for name in names) / len(names)


def _says(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None
