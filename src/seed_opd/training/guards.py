"""Cheap checks that run at every update. What cannot be right stops the run with a sentence; the last checkpoint stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from seed_opd.errors import RunStopped
from seed_opd.policy.engine import Engine
from seed_opd.training.signals import Scored

AGREEMENT = {"float32": 1e-3, "bfloat16": 0.2}
"""Largest difference, in nats, between what the sampler and the trainer say of one token; bfloat16 rounds at 3 digits."""

COLLAPSED = 1e-3
"""Mean entropy, in nats per token, below which a policy says the same thing whatever it sees."""

PROBED = 4
"""Samples that are scored again at each update to compare the sampler with the trainer."""


def check_first_step(engine: Engine, batch: Sequence[Scored], dtype: str) -> None:
    """Before the first optimizer step of an update the ratio is 1: sampler and trainer hold the same weights."""
    probed = batch[:PROBED]
    scores = engine.logprobs([item.sample for item in probed])
    gaps = [float((score - item.old).abs().max()) for score, item in zip(scores, probed, strict=True) if len(score)]
    if max(gaps, default=0.0) > AGREEMENT[dtype]:
        raise RunStopped(
            f"sampler and trainer disagree on a token by {max(gaps):.4f} nats: the sampler holds other weights, or prompts "
            "are built differently for sampling and scoring; publish after every step and use one context for both."
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
