"""The packaged policies: small enough, they load as any other model, act, and follow a skill."""

from __future__ import annotations

from pathlib import Path

import pytest

from seed_opd.config import PACKAGED, load
from seed_opd.evaluation.panels import panel_tasks, play_panel
from seed_opd.policy.rollout import Assignment
from seed_opd.training.setup import model_path, set_up
from seed_opd.training.tiny_numbers import expert_skills

TASKS = 24


@pytest.mark.parametrize("name", PACKAGED)
def test_it_is_at_most_8_megabytes(name):
    assert sum(file.stat().st_size for file in Path(model_path(name)).iterdir()) <= 8_000_000


@pytest.mark.parametrize("recipe", ["demo", "tiny-search", "tiny-webshop", "tiny-sokoban", "tiny-ezpoints"])
def test_it_acts_and_a_skill_helps(recipe):
    config = load(recipe, ["threads=1"])
    parts = set_up(config)
    tasks = panel_tasks(parts.environment, next(iter(config.evaluation.panels.values())), TASKS)
    advice = expert_skills(parts.environment, tasks)
    without = sum(t.success for t in play_panel(parts.player, tasks, 0.4))
    skilled = sum(t.success for t in play_panel(parts.player, tasks, 0.4, skills=advice))
    assert 0 < without < skilled, f"{without} and {skilled} of {TASKS}"


def test_results_do_not_depend_on_how_many_episodes_run_at_a_time():
    parts = set_up(load("demo", ["threads=1", "environment.max_steps=6"]))
    assignments = [Assignment(task, f"s/{task}") for task in panel_tasks(parts.environment, "valid_seen", 10)]
    together = parts.player.play(assignments, 1.0)
    parts.player.concurrency = 3
    apart = parts.player.play(assignments, 1.0)
    assert [[s.response_ids for s in t.steps] for t in together] == [[s.response_ids for s in t.steps] for t in apart]
