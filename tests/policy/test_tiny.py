"""The packaged policy: small enough, loads as any other model, acts, and follows a skill."""

from __future__ import annotations

from pathlib import Path

from seed_opd.config import TINY, load
from seed_opd.evaluation.panels import panel_tasks, play_panel
from seed_opd.policy.rollout import Assignment
from seed_opd.training.setup import model_path, set_up
from seed_opd.training.tiny_numbers import expert_skills


def test_it_is_at_most_8_megabytes():
    assert sum(file.stat().st_size for file in Path(model_path(TINY)).iterdir()) <= 8_000_000


def test_it_acts_and_a_skill_helps():
    parts = set_up(load("demo", ["threads=1"]))
    tasks = panel_tasks(parts.environment, "valid_seen", 24)
    advice = expert_skills(parts.environment, tasks)
    without = sum(t.success for t in play_panel(parts.player, tasks, 0.4))
    skilled = sum(t.success for t in play_panel(parts.player, tasks, 0.4, skills=advice))
    assert 0 < without <= 14 and skilled >= 18  # measured on all 120: 37% and 90%


def test_results_do_not_depend_on_how_many_episodes_run_at_a_time():
    parts = set_up(load("demo", ["threads=1", "environment.max_steps=6"]))
    assignments = [Assignment(task, f"s/{task}") for task in panel_tasks(parts.environment, "valid_seen", 10)]
    together = parts.player.play(assignments, 1.0)
    parts.player.concurrency = 3
    apart = parts.player.play(assignments, 1.0)
    assert [[s.response_ids for s in t.steps] for t in together] == [[s.response_ids for s in t.steps] for t in apart]
