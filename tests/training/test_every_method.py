"""Every row of the methods table goes through the loop: the loop never asks which one it is."""

from __future__ import annotations

import math

import pytest

from seed_opd.config import load
from seed_opd.methods import TABLE
from seed_opd.training.rl import train
from seed_opd.trajectory import read_jsonl, read_skills, read_trajectories

SMALL = [
    "threads=1",
    "updates=2",
    "rollout.tasks=2",
    "rollout.group=2",
    "environment.max_steps=4",
    "analyzer.max_tokens=60",
    "evaluation.tasks=2",
    "evaluation.panels={seen: valid_seen}",
    "evaluation.probe=0",
    "optimizer.minibatches=1",
]


@pytest.mark.parametrize("name", TABLE)
def test_two_updates(name, tmp_path):
    method = TABLE[name]
    train(load("demo", [*SMALL, f"method={name}", "overrides={}"]), tmp_path)
    rows = list(read_jsonl(tmp_path / "metrics.jsonl"))
    updates = [row for row in rows if row["kind"] == "train"]
    assert len(updates) == (2 if method.trained else 0)
    assert all(math.isfinite(value) for row in updates for value in row.values() if isinstance(value, float))
    panels = {row["panel"] for row in rows if row["kind"] == "evaluation"}
    assert panels == {"seen+skills" if prompt == "library" else "seen" for prompt in method.actor.evaluate}
    if not method.trained:
        return
    played = read_trajectories(tmp_path / "trajectories" / "update-0002.jsonl")
    assert all((trajectory.prompt_skill is not None) == (method.actor.train == "library") for trajectory in played)
    if method.has_teacher:
        skills = read_skills(tmp_path / "skills" / "update-0002.jsonl")
        writers = {"analyzer": "policy", "frozen": "policy", "external": "rules", "library": "library"}
        assert {skill.analyzer for skill in skills} == {writers[method.skills]}
        assert all("gap/mean" in row for row in updates)
