"""Who writes the skills of a run: the policy, as it is or as it was, an external analyzer, or the library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from seed_opd.config import Config
from seed_opd.errors import UserError
from seed_opd.hindsight.analyzer import Analyzer, AskedOnce, Shared
from seed_opd.hindsight.constrained import SchemaDecoder
from seed_opd.hindsight.library import Library
from seed_opd.hindsight.policy_analyzer import PolicyAnalyzer
from seed_opd.hindsight.remote import RemoteAnalyzer
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.schema import Limits
from seed_opd.hindsight.swapped import Swapped
from seed_opd.hindsight.views import ConversationView, DocumentView, View
from seed_opd.methods import Writer
from seed_opd.policy.context import TranscriptContext
from seed_opd.policy.engine import Sampling
from seed_opd.training.engines import make_engine
from seed_opd.training.setup import Parts, model_path, set_up
from seed_opd.training.useful_attempts import UsefulAttempts

CHARACTERS_PER_TOKEN = 3
"""A remote model's tokenizer is not at hand; English has about four characters a token, so this is on the safe side."""


def policy_analyzer(parts: Parts) -> Analyzer:
    """The policy itself as the analyzer: greedy, under the schema unless the config says otherwise."""
    return Shared(_policy_analyzer(parts))


def stage1_analyzer(config: Config, folder: Path, parts: Parts | None = None) -> Analyzer:
    """Who annotates the episodes of stage 1; the policy itself, of `parts`, is asked as it comes, before any training."""
    settings = config.stage1
    if settings.analyzer != "policy":
        return external_analyzer(config, settings.analyzer, folder)
    parts = parts or set_up(config)
    seeds = [f"{config.seed}/attempt/{number}" for number in range(settings.attempts)]
    attempts = [Shared(_policy_analyzer(parts, 1.0, seed)) for seed in seeds]
    return UsefulAttempts(attempts, parts.player, settings.replays, settings.temperature)


def _policy_analyzer(parts: Parts, temperature: float = 0.0, seed: str = "analysis") -> PolicyAnalyzer:
    settings, engine = parts.config.analyzer, parts.engine
    limits = Limits(settings.max_characters, settings.max_characters)
    decoder = SchemaDecoder(engine.tokenizer, engine.vocab_size, limits) if settings.constrained else None
    sampling = Sampling(temperature=temperature, max_tokens=settings.max_tokens)
    return PolicyAnalyzer(
        engine,
        analyzer_view(parts, settings.max_prompt_tokens),
        sampling,
        decoder=decoder,
        limits=limits,
        batch_size=parts.config.rollout.concurrency,
        seed=seed,
    )


def analyzer_view(parts: Parts, max_tokens: int) -> View:
    """How the policy is shown the episodes that it analyses; stage 1 trains on the same."""
    if parts.config.analyzer.view == "conversation":
        assert isinstance(parts.context, TranscriptContext)  # the config refuses another style
        return ConversationView(parts.context.closing, max_tokens, parts.config.analyzer.general)
    return DocumentView(parts.context.template.opening, max_tokens, parts.config.analyzer.general)


def external_analyzer(config: Config, kind: str, folder: Path) -> Analyzer:
    """An analyzer that needs no policy: rules, or a remote server whose answers are kept in the folder."""
    if kind == "rules":
        return AskedOnce(RulesAnalyzer(config.analyzer.general))
    if kind == "policy":
        raise UserError("stage1.analyzer: 'policy' is not external; this method needs rules or remote.")
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
        general=settings.general,
        limits=limits,
    )
    return AskedOnce(remote)


def writer_of(parts: Parts, folder: Path, writer: Writer, start: Path | None) -> Analyzer:
    """The analyzer that a row of the methods table names; `start` is the model that the run begins with."""
    settings, analyzer = parts.config.analyzer, _writer(parts, folder, writer, start)
    return Swapped(analyzer, settings.wrong, settings.wrong_from, parts.config.seed) if settings.wrong else analyzer


def _writer(parts: Parts, folder: Path, writer: Writer, start: Path | None) -> Analyzer:
    config = parts.config
    if writer == "library":
        return Library.of(config.environment.name)
    if writer == "external":
        return external_analyzer(config, config.stage1.analyzer, folder)
    if writer == "frozen":
        return policy_analyzer(replace(parts, engine=make_engine(config, start or model_path(config.model.path), False)))
    if config.analyzer.kind != "policy":
        return external_analyzer(config, config.analyzer.kind, folder)
    return policy_analyzer(parts)
