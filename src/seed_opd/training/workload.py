"""How much a config asks for, counted before anything runs: episodes, tokens and optimizer steps, as upper bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seed_opd.config import Config
from seed_opd.methods import Method


@dataclass(frozen=True, slots=True)
class Workload:
    """Stage 2 by update and in all, and stage 1. Steps, tokens and pairs are bounds: most episodes end earlier."""

    trajectories: int
    steps: int
    """Steps of all trajectories of an update."""
    prompt_tokens: int
    """Of an update; what a growing conversation keeps in its cache is counted again at every step."""
    response_tokens: int
    analysis_prompt_tokens: int
    analysis_tokens: int
    scorings: int
    """Forward passes over what was sampled, without gradient: reference, skill context."""
    optimizer_steps: int
    """Of an update."""
    updates: int
    evaluations: int
    """Times that every panel is played: before the first update, every so many, and after the last."""
    checkpoints: int
    stage1_episodes: int
    stage1_pairs: int
    stage1_steps: int


def workload(config: Config, method: Method) -> Workload:
    """Count what a run of this config does."""
    trajectories = config.rollout.tasks * config.rollout.group
    steps = trajectories * config.environment.max_steps
    own_analyses = trajectories if writes_skills(config, method) else 0
    episodes = config.stage1.tasks * config.stage1.rollouts
    pairs = episodes - round(config.stage1.validation * config.stage1.tasks) * config.stage1.rollouts
    return Workload(
        trajectories=trajectories,
        steps=steps,
        prompt_tokens=steps * config.context.max_prompt_tokens,
        response_tokens=steps * config.context.max_response_tokens,
        analysis_prompt_tokens=own_analyses * config.analyzer.max_prompt_tokens,
        analysis_tokens=own_analyses * config.analyzer.max_tokens,
        scorings=int(method.divergence.weight > 0) + int(method.skills is not None),
        optimizer_steps=min(config.optimizer.minibatches, trajectories),
        updates=config.updates,
        evaluations=1 + math.ceil(config.updates / config.evaluation.every),
        checkpoints=1 + math.ceil(config.updates / config.save_every),
        stage1_episodes=episodes,
        stage1_pairs=pairs,
        stage1_steps=config.stage1.epochs * math.ceil(pairs / config.stage1.batch),
    )


def writes_skills(config: Config, method: Method) -> bool:
    """Whether the policy itself analyses its episodes."""
    return method.skills in ("analyzer", "frozen") and config.analyzer.kind == "policy"
