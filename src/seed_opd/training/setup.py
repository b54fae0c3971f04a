"""From a config to the parts of a run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

import torch

from seed_opd.config import TINY, Config
from seed_opd.environments import Environment, make
from seed_opd.errors import UserError
from seed_opd.hindsight.analyzer import Analyzer, AskedOnce, Shared
from seed_opd.hindsight.constrained import SchemaDecoder
from seed_opd.hindsight.policy_analyzer import PolicyAnalyzer
from seed_opd.hindsight.remote import RemoteAnalyzer
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.schema import Limits
from seed_opd.hindsight.views import ConversationView, DocumentView, View
from seed_opd.policy.context import Context, TranscriptContext, make_context
from seed_opd.policy.engine import Engine, Sampling
from seed_opd.policy.rollout import Player
from seed_opd.training.engines import make_engine
from seed_opd.trajectory import Task

CHARACTERS_PER_TOKEN = 3
"""A remote model's tokenizer is not at hand; English has about four characters a token, so this is on the safe side."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of."""

    config: Config
    environment: Environment
    engine: Engine
    context: Context
    player: Player


def set_up(config: Config, *, model: Path | None = None, with_reference: bool = False) -> Parts:
    """Load the model and build everything around it; `model` replaces the config's.

    The reference policy is the model that is loaded here, before it learns.
    """
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    environment = make(config.environment.name, **config.environment.options)
    engine = make_engine(config, model or model_path(config.model.path), with_reference)
    context = make_context(
        config.context.style,
        engine.tokenizer,
        environment,
        window=config.context.window,
        max_prompt_tokens=config.context.max_prompt_tokens,
        template_options=config.model.template_options,
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


def provenance(parts: Parts, model: Path | None) -> dict[str, str | int]:
    """What a run starts from, beside its config: the model and the versions of what computes."""
    return {
        "model": str(model or parts.config.model.path),
        **parts.engine.describe(),
    }


def model_path(path: str) -> Path | str:
    """The folder of the packaged tiny policy for `tiny`; any other path or hub name as it is."""
    return Path(str(resources.files("seed_opd") / "policy" / "tiny")) if path == TINY else path


def policy_analyzer(parts: Parts) -> Analyzer:
    """The policy itself as the analyzer: greedy, under the schema unless the config says otherwise."""
    settings, engine = parts.config.analyzer, parts.engine
    limits = Limits(settings.max_characters, settings.max_characters)
    decoder = SchemaDecoder(engine.tokenizer, engine.vocab_size, limits) if settings.constrained else None
    sampling = Sampling(temperature=0.0, max_tokens=settings.max_tokens)
    analyzer = PolicyAnalyzer(
        engine,
        analyzer_view(parts, settings.max_prompt_tokens),
        sampling,
        decoder=decoder,
        limits=limits,
        batch_size=parts.config.rollout.concurrency,
    )
    return Shared(analyzer)


def analyzer_view(parts: Parts, max_tokens: int) -> View:
    """How the policy is shown the episodes that it analyses; stage 1 trains on the same."""
    if parts.config.analyzer.view == "conversation":
        assert isinstance(parts.context, TranscriptContext)  # the config refuses another style
        return ConversationView(parts.context.closing, max_tokens)
    return DocumentView(parts.context.template.opening, max_tokens)


def external_analyzer(config: Config, kind: str, folder: Path) -> Analyzer:
    """An analyzer that needs no policy: rules, or a remote server whose answers are kept in the folder."""
    if kind == "rules":
        return AskedOnce(RulesAnalyzer())
    settings = config.analyzer
    if not settings.model:
        raise UserError("analyzer.model: it is empty; name the remote server's model.")
    limits = Limits(settings.max_characters, settings.max_characters)
    remote = RemoteAnalyzer(
        settings.base_url,
        settings.model,
        folder / "analyses.jsonl",
        api_key_variable=settings.api_key_variable,
        max_tokens=settings.max_tokens,
        max_prompt_characters=CHARACTERS_PER_TOKEN * settings.max_prompt_tokens,
        limits=limits,
    )
    return AskedOnce(remote)


def run_analyzer(parts: Parts, folder: Path) -> Analyzer:
    """The analyzer of stage 2, as the config names it."""
    kind = parts.config.analyzer.kind
    return policy_analyzer(parts) if kind == "policy" else external_analyzer(parts.config, kind, folder)


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
