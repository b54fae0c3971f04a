"""From a config to the parts of a run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

import torch

from seed_opd.config import PACKAGED, Config
from seed_opd.environments import Environment, make
from seed_opd.errors import UserError
from seed_opd.policy.context import Context, make_context
from seed_opd.policy.engine import Engine
from seed_opd.policy.rollout import Player
from seed_opd.training.engines import make_engine
from seed_opd.trajectory import Task


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of."""

    config: Config
    environment: Environment
    engine: Engine
    context: Context
    player: Player


def set_up(
    config: Config,
    *,
    model: Path | None = None,
    with_reference: bool = False,
    environment: Environment | None = None,
) -> Parts:
    """Load the model and build everything around it; `model` and `environment` replace the config's.

    The reference policy is the model that is loaded here, before it learns.
    """
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    environment = environment or make(config.environment.name, **config.environment.options)
    engine = make_engine(config, model or model_path(config.model.path), with_reference)
    _check_sight(config, environment, engine)
    context = make_context(
        config.context.style,
        engine.tokenizer,
        environment,
        window=config.context.window,
        max_prompt_tokens=config.context.max_prompt_tokens,
        template_options=config.model.template_options,
        eye=engine.eye,
    )
    player = Player(
        engine,
        context,
        partial(make, config.environment.name, **config.environment.options),
        max_steps=config.environment.max_steps,
        max_response_tokens=config.context.max_response_tokens,
        invalid_penalty=config.rollout.invalid_penalty,
        concurrency=config.rollout.concurrency,
    )
    return Parts(config, environment, engine, context, player)


def _check_sight(config: Config, environment: Environment, engine: Engine) -> None:
    if not environment.seen:
        return
    if engine.eye is None:
        raise UserError(
            f"model.path: {config.model.path!r} cannot see, and {environment.name} shows pictures; choose a vision-language "
            "model, or read it as text with environment.options={view: text}."
        )
    if not config.engine.shares_weights:
        raise UserError("engine.sampler: only the torch sampler sends pictures; choose engine.sampler=torch.")


def provenance(parts: Parts, model: Path | None) -> dict[str, str | int]:
    """What a run starts from, beside its config: the model and the versions of what computes."""
    return {
        "model": str(model or parts.config.model.path),
        **parts.engine.describe(),
    }


def model_path(path: str) -> Path | str:
    """The folder of a packaged tiny policy for its name; any other path or hub name as it is."""
    return Path(str(resources.files("seed_opd") / "policy" / path.replace("-", "_"))) if path in PACKAGED else path


def train_tasks(config: Config, environment: Environment) -> list[Task]:
    """The tasks that stage 2 draws from: the first of the seeded order."""
    return shuffled_tasks(config, environment)[: config.environment.train_tasks]


def shuffled_tasks(config: Config, environment: Environment) -> list[Task]:
    """All training tasks in a seeded order; raises UserError when there are none."""
    tasks = list(environment.tasks(config.environment.train_split))
    if not tasks:
        raise UserError(f"environment.train_split: {config.environment.train_split!r} has no tasks; check the data.")
    random.Random(f"{config.seed}/train_tasks").shuffle(tasks)
    return tasks


def draw_tasks(config: Config, tasks: list[Task], update: int) -> list[Task]:
    """The tasks of one update: each pass over the training tasks has its own seeded order, and leaves none out."""
    drawn = []
    for position in range((update - 1) * config.rollout.tasks, update * config.rollout.tasks):
        epoch, index = divmod(position, len(tasks))
        order = list(range(len(tasks)))
        random.Random(f"{config.seed}/epoch/{epoch}").shuffle(order)
        drawn.append(tasks[order[index]])
    return drawn
