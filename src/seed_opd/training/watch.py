"""Watch a model play one episode."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from seed_opd.config import load
from seed_opd.environments import Environment, make
from seed_opd.policy.rollout import Assignment
from seed_opd.training.setup import model_path, set_up
from seed_opd.trajectory import Task


def environment_of(recipe: str, name: str) -> Environment:
    """The environment of this name, with the recipe's options where it is the recipe's."""
    settings = load(recipe).environment
    return make(name, **settings.options if settings.name == name else {})


def watch(recipe: str, model: str, environment: Environment, task: Task, console: Console) -> None:
    """Play a task with a model, at the recipe's evaluation temperature, and print every turn."""
    config = load(recipe)
    parts = set_up(config, model=Path(model_path(model)), environment=environment)
    parts.player.new_environment = lambda: environment
    (trajectory,) = parts.player.play([Assignment(task, f"{config.seed}/watch")], config.evaluation.temperature)
    console.print(f"Your task is to: {trajectory.goal}", markup=False, style="bold")
    for step in trajectory.steps:
        console.print(step.observation, markup=False)
        console.print(f"  {step.response}", markup=False, style="cyan")
    console.print(trajectory.final_observation, markup=False)
    console.print("success" if trajectory.success else "failure", style="bold")
