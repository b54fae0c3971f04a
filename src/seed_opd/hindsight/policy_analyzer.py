"""The policy reads its own episodes back: the same weights act and analyse (SEED, stage 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase

from seed_opd.hindsight.constrained import SchemaConstraint, SchemaDecoder
from seed_opd.hindsight.prompts import AnalyzerPrompt, analyzer_prompt
from seed_opd.hindsight.schema import Limits, parse
from seed_opd.trajectory import Skill, Trajectory


class Sampled(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


class Sampling(Protocol):
    """How tokens are drawn; the analyzer is to be greedy."""

    @property
    def max_tokens(self) -> int: ...


class Sampler(Protocol):
    """What is needed of an engine."""

    tokenizer: PreTrainedTokenizerBase

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Any,
        seeds: Sequence[str],
        *,
        constraint: SchemaConstraint | None = None,
    ) -> Sequence[Sampled]: ...


class PolicyAnalyzer:
    """Writes skills with an engine's current weights, in batches.

    `encode` turns one user message into the ids of a prompt, as for acting. A prompt has room for `max_prompt_tokens`;
    longer episodes lose their oldest middle steps, and one that is still too long gets the status "error". With a `decoder`
    every answer parses; without one it is read as it comes. What was shortened is counted over the analyzer's life:
    `dropped_steps` of prompts, `cuts` of answers.
    """

    name = "policy"

    def __init__(
        self,
        engine: Sampler,
        encode: Callable[[str], list[int]],
        sampling: Sampling,
        max_prompt_tokens: int,
        *,
        decoder: SchemaDecoder | None = None,
        limits: Limits | None = None,
        batch_size: int = 32,
    ) -> None:
        self.engine = engine
        self.encode = encode
        self.sampling = sampling
        self.max_prompt_tokens = max_prompt_tokens
        self.decoder = decoder
        self.limits = limits or (decoder.limits if decoder else Limits())
        self.batch_size = batch_size
        self.dropped_steps = 0
        self.cuts = 0

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        prompts = [self.prompt(trajectory) for trajectory in trajectories]
        self.dropped_steps += sum(prompt.dropped_steps for prompt in prompts)
        skills = {index: self._too_long(prompt) for index, prompt in enumerate(prompts) if not prompt.fits}
        ready = [index for index, prompt in enumerate(prompts) if prompt.fits]
        ready.sort(key=lambda index: len(prompts[index].text))  # little padding in a batch
        for start in range(0, len(ready), self.batch_size):
            batch = ready[start : start + self.batch_size]
            skills.update(zip(batch, self._answer([prompts[index] for index in batch]), strict=True))
        return [skills[index] for index in range(len(trajectories))]

    def prompt(self, trajectory: Trajectory) -> AnalyzerPrompt:
        """The message about a trajectory, as short as it must be; stage 1 trains on the same."""
        return analyzer_prompt(trajectory, self.max_prompt_tokens, lambda text: len(self.encode(text)))

    def _answer(self, prompts: Sequence[AnalyzerPrompt]) -> list[Skill]:
        constraint = self.decoder.session(len(prompts), self.sampling.max_tokens) if self.decoder else None
        ids = [self.encode(prompt.text) for prompt in prompts]
        sampled = self.engine.sample(ids, self.sampling, ["analysis"] * len(ids), constraint=constraint)
        self.cuts += constraint.cuts if constraint else 0
        texts = [str(self.engine.tokenizer.decode(list(one.ids), skip_special_tokens=True)) for one in sampled]
        return [parse(text, self.limits, self.name) for text in texts]

    def _too_long(self, prompt: AnalyzerPrompt) -> Skill:
        reason = f"the prompt has {len(self.encode(prompt.text))} tokens, more than {self.max_prompt_tokens}"
        return Skill("", "", "error", reason, self.name)
