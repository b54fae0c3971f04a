"""A fixed set of finished episodes that the policy analyses at every evaluation: does it still know how to analyse?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seed_opd.hindsight.analyzer import Analyzer
from seed_opd.hindsight.probe import mean_score
from seed_opd.trajectory import Trajectory, read_trajectories


class ProbeSet:
    """Held-out episodes of stage 1, half successes and half failures as far as there are any; empty without stage 1."""

    def __init__(self, trajectories: Sequence[Trajectory]) -> None:
        self.trajectories = trajectories

    @classmethod
    def load(cls, stage1: Path | None, count: int) -> ProbeSet:
        if stage1 is None or not count:
            return cls([])
        return cls(choose(read_trajectories(stage1 / "trajectories.jsonl"), count))

    def __bool__(self) -> bool:
        return bool(self.trajectories)

    def score(self, analyzer: Analyzer) -> dict[str, float]:
        """Mean scores against what the rules read, each in 0 to 1; an analysis that is not usable scores 0."""
        skills = analyzer.analyze(self.trajectories)
        usable = sum(skill.usable for skill in skills) / len(skills)
        parts = mean_score(skills, self.trajectories)
        # "kind" names the row in the metrics stream
        named = {{"mean": "score", "kind": "kind_right"}.get(name, name): value for name, value in parts.items()}
        return {"usable": usable, **named}


def choose(trajectories: Sequence[Trajectory], count: int) -> list[Trajectory]:
    """The last `count` episodes, which stage 1 holds out first, from successes and failures in turn."""
    newest = list(reversed(trajectories))
    successes, failures = [t for t in newest if t.success], [t for t in newest if not t.success]
    half = count // 2
    taken = successes[: max(half, count - len(failures))] + failures[: max(count - half, count - len(successes))]
    return taken[:count]
