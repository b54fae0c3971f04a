"""Cheap checks that run at every update. What cannot be right stops the run with a sentence; the last checkpoint stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from seed_opd.errors import RunStopped
from seed_opd.policy.engine import Engine, Sampling
from seed_opd.policy.samples import Sample
from seed_opd.processes import from_main
from seed_opd.training.scoring import Scored

AGREEMENT = {"float32": 1e-3, "bfloat16": 1.0}
"""Largest difference, in nats, between what the sampler and the trainer say of one token."""

MEAN_AGREEMENT = {"float32": 1e-3, "bfloat16": 0.1}
"""Largest mean difference over the tokens compared, in nats. In bfloat16, with its three digits, correct programs
differ: vLLM and transformers by 0.04 in the mean and 0.24 at most, over 417 tokens of SmolLM2-135M on a CPU."""

COLLAPSED = 1e-3
"""Mean entropy, in nats per token, below which a policy says the same thing whatever it sees."""

PROBED = 4
"""Samples that are scored again at each update to compare the sampler with the trainer."""

PROBED_TOKENS = 16
"""Longest response that is drawn to see whether a publish arrived."""


def check_first_step(engine: Engine, batch: Sequence[Scored], dtype: str) -> None:
    """Before the first optimizer step of an update the ratio is 1: sampler and trainer hold the same weights."""
    probed = batch[:PROBED]
    _check_agreement(engine, [item.sample for item in probed], [item.old for item in probed], dtype)


def check_published(engine: Engine, batch: Sequence[Scored], dtype: str, seed: str) -> None:
    """After a publish the sampler holds the trained weights: a few short responses to the update's prompts are compared.

    For a sampler that has weights of its own. `check_first_step` compares what was sampled for the next update; this one
    comes before anything is evaluated, and after the last update too.
    """
    prompts = [item.sample.token_ids[: item.sample.spans[0][0]] for item in batch[:PROBED]]
    seeds = [f"{seed}/{number}" for number in range(len(prompts))]
    drawn = from_main(lambda: engine.sample(prompts, Sampling(max_tokens=PROBED_TOKENS), seeds))
    samples = [
        Sample((*prompt, *one.ids), ((len(prompt), len(prompt) + len(one.ids)),))
        for prompt, one in zip(prompts, drawn, strict=True)
    ]
    _check_agreement(engine, samples, [torch.tensor(one.log_probs) for one in drawn], dtype)


def _check_agreement(engine: Engine, samples: Sequence[Sample], sampled: Sequence[Tensor], dtype: str) -> None:
    """`sampled` are the sampler's log-probs of the response tokens, one (response_tokens,) per sample."""
    scores = engine.logprobs(samples)
    gaps = torch.cat([(score.cpu() - old).abs() for score, old in zip(scores, sampled, strict=True)])  # (tokens,)
    if not len(gaps):
        return
    largest, mean = float(gaps.max()), float(gaps.mean())
    if not (largest <= AGREEMENT[dtype] and mean <= MEAN_AGREEMENT[dtype]):  # not a number is too large as well
        raise RunStopped(
            f"sampler and trainer disagree on a token by {largest:.4f} nats, and by {mean:.4f} in the mean: the sampler "
            "holds other weights, or prompts are built differently for sampling and scoring; publish after every step and "
            "use one context for both."
        )


def check_update(row: Mapping[str, float]) -> list[str]:
    """Raise RunStopped for what cannot be right; return warnings for what should be looked at."""
    bad = [name for name, value in row.items() if not math.isfinite(value)]
    if bad:
        raise RunStopped(f"{', '.join(bad)} is not a finite number; lower optimizer.learning_rate.")
    if row["invalid_share"] == 1.0:
        raise RunStopped(
            "every action was invalid: the policy does not know the response grammar; look at a trajectory of this run, "
            "raise context.max_response_tokens, or start from a model that follows the prompt."
        )
    if row["entropy"] < COLLAPSED:
        raise RunStopped(
            f"the entropy fell to {row['entropy']:.5f} nats a token: the policy collapsed; lower optimizer.learning_rate "
            "or raise the weight of the divergence, and start from the last checkpoint."
        )
    return [message for condition, message in _warnings(row) if condition]


def _warnings(row: Mapping[str, float]) -> list[tuple[bool, str]]:
    return [
        (row.get("skill/usable_share", 1.0) == 0.0, "no skill was usable: this update was plain policy optimisation"),
        (0.0 < row.get("skill/usable_share", 1.0) < 0.5, "fewer than half of the skills were usable"),
        (row["cut_share"] > 0.5, "more than half of the responses were cut at context.max_response_tokens"),
        (row["equal_groups_share"] == 1.0, "all groups had equal returns: the outcome reward gave no signal"),
    ]
