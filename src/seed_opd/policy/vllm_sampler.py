"""vLLM in this process's care: an engine of its own on the same GPU, which draws what the trainer learns from.

vLLM runs its engine as a child process. Prompts that begin alike share its prefix cache, so a growing conversation costs its
new tokens only, and `keys` are not needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.deadline import within
from seed_opd.policy.engine import Constraint, Sampled, Sampling
from seed_opd.policy.vllm_answers import Bounds, check_lengths, checked, fields, labels

Weights = Callable[[], Iterator[tuple[str, Tensor]]]
Push = Callable[[Weights, str], None]
"""Gives vLLM every weight, and the label that they have from then on."""

LONGEST_WAIT = 1800.0
"""Seconds for one batch of responses, or for the weights to arrive."""


class VllmSampler:
    """See `policy.engine.Sampler`. `llm` is what `start` returned, `push` hands it weights.

    The same seed gives the same response as long as vLLM forms the same batches: its kernels round differently in others.
    Under a constraint vLLM keeps to its grammar; length is bounded by `max_tokens` alone, so that an answer that is cut does
    not parse and is counted with its status. Raises RunStopped where vLLM fails, answers garbage, or does not answer.
    """

    def __init__(self, llm: Any, push: Push, bounds: Bounds, *, timeout: float = LONGEST_WAIT) -> None:
        self.llm = llm
        self.version: str | None = None
        self._push = push
        self._bounds = bounds
        self._timeout = timeout
        self._labels = labels()

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seeds: Sequence[str],
        *,
        keys: Sequence[Hashable] | None = None,
        constraint: Constraint | None = None,
    ) -> list[Sampled]:
        """See `Engine.sample`."""
        check_lengths(prompts, sampling, self._bounds)
        asked = [fields(sampling, seed, constraint, self._bounds) for seed in seeds]
        given = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        requests = self._call(
            "vLLM's responses",
            lambda: self.llm.generate(given, [_parameters(one) for one in asked], use_tqdm=False),
        )
        if len(requests) != len(prompts):
            raise RunStopped(f"vLLM gave {len(requests)} answers to {len(prompts)} prompts; check its version.")
        return [self._read(request.outputs[0], sampling) for request in requests]

    def forget(self) -> None:
        """vLLM's cache has a fixed size and makes room for itself."""

    def publish(self, weights: Weights) -> None:
        """Hand over every weight under a new label, see that vLLM has it, and drop what it cached under the old ones."""
        version = next(self._labels)
        self._call("vLLM's new weights", lambda: self._push(weights, version))
        label = self._call("vLLM's label of its weights", self.llm.get_weight_version)
        if label != version:
            raise RunStopped(f"vLLM did not take the weights {version}: it names {label!r}; see its log, then resume.")
        if not self._call("vLLM's prefix cache", self.llm.reset_prefix_cache):
            raise RunStopped("vLLM did not empty its prefix cache, which was computed with the old weights; see its log.")
        self.version = version

    def _read(self, output: Any, sampling: Sampling) -> Sampled:
        """vLLM's CompletionOutput; its log-probs are one mapping from token id to value for each token."""
        ids = list(output.token_ids)
        rows = output.logprobs or []
        log_probs = [row[token].logprob if token in row else None for token, row in zip(ids, rows, strict=False)]
        versions = {span.version for span in output.weight_versions or []}
        reason = output.finish_reason
        return checked(ids, log_probs, reason, versions, sampling=sampling, bounds=self._bounds, version=self.version)

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        return within(self._timeout, what, call)


def start(path: Path | str, dtype: str, options: dict[str, Any], *, transfer: str = "ipc") -> Any:
    """A vllm.LLM for sampling under training: log-probs at the temperature used, nothing read from the model's own defaults.

    `transfer` is vLLM's name of the way that weights take, `options` are more arguments of vllm.LLM. Raises UserError for
    one that is set here, and when vLLM does not start.
    """
    # a CUDA handle reaches vLLM's child process as a pickle, through a socket that only this user can write to
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    from vllm import LLM

    fixed: dict[str, Any] = {
        "model": str(path),
        "dtype": dtype,
        "logprobs_mode": "processed_logprobs",
        "generation_config": "vllm",
        "enable_prefix_caching": True,
        "structured_outputs_config": {"backend": "xgrammar"},
        "weight_transfer_config": {"backend": transfer},
    }
    if taken := sorted(fixed.keys() & options.keys()):
        raise UserError(f"engine.options: {', '.join(taken)} cannot be chosen, for sampling relies on it; leave it out.")
    try:
        return LLM(**fixed, **options)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"engine.sampler: vLLM does not start with {str(path)!r}: {reason}") from error


def _parameters(asked: dict[str, Any]) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    grammar = asked.get("structured_outputs")
    return SamplingParams(**asked | ({"structured_outputs": StructuredOutputsParams(**grammar)} if grammar else {}))
