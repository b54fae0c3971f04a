"""What SEED presumes of a policy, measured: does it act, does it follow a good skill, can it analyse yet?

python -m seed_opd.training.tiny_numbers MODEL
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from seed_opd.config import Config, load
from seed_opd.environments import Environment
from seed_opd.evaluation.panels import panel_tasks, play_panel
from seed_opd.evaluation.statistics import wilson
from seed_opd.hindsight.probe import mean_score
from seed_opd.training.analyzers import policy_analyzer
from seed_opd.training.demonstrations import teacher
from seed_opd.training.demonstrations.lesson import play
from seed_opd.training.setup import set_up
from seed_opd.trajectory import Task, Trajectory

LONGEST = 50
"""Steps of the longest straight episode."""


def measure(config: Config, model: Path | None) -> dict[str, object]:
    """Success on the first panel without and with an expert's skill, and what its analyses of its own episodes are worth."""
    parts = set_up(config, model=model)
    environment = parts.environment
    split = next(iter(config.evaluation.panels.values()))
    tasks = panel_tasks(environment, split, config.evaluation.tasks)
    temperature = config.evaluation.temperature
    alone = play_panel(parts.player, tasks, temperature)
    skilled = play_panel(parts.player, tasks, temperature, skills=expert_skills(environment, tasks))
    free = set_up(
        config.model_copy(update={"analyzer": config.analyzer.model_copy(update={"constrained": False})}), model=model
    )
    written = policy_analyzer(free).analyze(alone)
    constrained = policy_analyzer(parts).analyze(alone)
    return {
        "split": split,
        "without_skill": _rate(alone),
        "with_expert_skill": _rate(skilled),
        "free_analyses_usable": sum(skill.usable for skill in written),
        "probe_free": mean_score(written, alone),
        "probe_constrained": mean_score(constrained, alone),
        "example": constrained[0].skill,
    }


def expert_skills(environment: Environment, tasks: Sequence[Task]) -> list[str | None]:
    """The rules' skill about a straight episode of each task, played by one who knows where everything is."""
    guide = teacher(environment.name, LONGEST)
    guide.environment = environment
    return [guide.advice(play(guide, guide.lesson(task))) for task in tasks]


def _rate(trajectories: list[Trajectory]) -> dict[str, float]:
    won = sum(t.success for t in trajectories)
    interval = wilson(won, len(trajectories))
    steps = sum(len(t.steps) for t in trajectories) / len(trajectories)
    return {
        "won": won,
        "of": len(trajectories),
        "low": round(interval.low, 3),
        "high": round(interval.high, 3),
        "steps": round(steps, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what SEED presumes of a policy.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--recipe", default="demo")
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_intermixed_args()
    print(json.dumps(measure(load(options.recipe, options.overrides), options.model), indent=1))


if __name__ == "__main__":
    main()
