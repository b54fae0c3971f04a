"""The policy reads its own episodes back: the same weights act and analyse (SEED, stage 2)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase

from seed_opd.hindsight.constrained import SchemaConstraint, SchemaDecoder
from seed_opd.hindsight.schema import Limits, parse
from seed_opd.hindsight.views import Prompt, View
from seed_opd.trajectory import Skill, Trajectory


class Sampled(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


class Sampling(Protocol):
    """How tokens are drawn; greedy, or with the analyzer's `seed` and each episode's."""

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
        keys: Sequence[Hashable] | None = None,
        constraint: SchemaConstraint | None = None,
    ) -> Sequence[Sampled]: ...


class PolicyAnalyzer:
    """Writes skills with an engine's current weights, in batches.

    A `view` makes the prompts; an episode that is too long even without its middle steps gets the status "error". With a
    `decoder` every answer parses; without one it is read as it comes. What was shortened is counted over the analyzer's
    life: `dropped_steps` of prompts, `cuts` of answers.
    """

    name = "policy"

    def __init__(
        self,
        engine: Sampler,
        view: View,
        sampling: Sampling,
        *,
        decoder: SchemaDecoder | None = None,
        limits: Limits | None = None,
        batch_size: int = 32,
        seed: str = "analysis",
    ) -> None:
        self.engine = engine
        self.view = view
        self.sampling = sampling
        self.decoder = decoder
        self.limits = limits or (decoder.limits if decoder else Limits())
        self.batch_size = batch_size
        self.seed = seed
        self.dropped_steps = 0
        self.cuts = 0

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        prompts = [self.view.prompt(trajectory) for trajectory in trajectories]
        self.dropped_steps += sum(prompt.dropped_steps for prompt in prompts)
        skills = {index: self._too_long(prompt) for index, prompt in enumerate(prompts) if not prompt.fits}
        ready = [index for index, prompt in enumerate(prompts) if prompt.fits]
        for start in reversed(range(0, len(ready), self.batch_size)):  # the newest may still have their caches
            batch = ready[start : start + self.batch_size]
            seeds = [f"{self.seed}/{trajectories[index].seed}" for index in batch]
            skills.update(zip(batch, self._answer([prompts[index] for index in batch], seeds), strict=True))
        return [skills[index] for index in range(len(trajectories))]

    def _answer(self, prompts: Sequence[Prompt], seeds: Sequence[str]) -> list[Skill]:
        constraint = self.decoder.session(len(prompts), self.sampling.max_tokens) if self.decoder else None
        sampled = self.engine.sample(
            [prompt.ids for prompt in prompts],
            self.sampling,
            seeds,
            keys=[prompt.key for prompt in prompts] if any(prompt.key for prompt in prompts) else None,
            constraint=constraint,
        )
        self.cuts += constraint.cuts if constraint else 0
        texts = [str(self.engine.tokenizer.decode(list(one.ids), skip_special_tokens=True)) for one in sampled]
        return [parse(text, self.limits, self.name) for text in texts]

    def _too_long(self, prompt: Prompt) -> Skill:
        reason = f"the prompt has {len(prompt.ids)} tokens, more than {self.view.max_tokens}"
        return Skill("", "", "error", reason, self.name)
