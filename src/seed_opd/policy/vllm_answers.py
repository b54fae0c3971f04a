"""What is asked of vLLM and what it answers, the same in process and over HTTP.

An answer comes from another process, perhaps from another machine: it is checked before anything is trained on it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.engine import Constraint, Sampled, Sampling
from seed_opd.policy.seeds import seed_number

SEED_BITS = 63
"""The longest seed that vLLM takes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What every prompt and answer keeps to: the model's end tokens, vocabulary and longest sequence."""

    end_ids: tuple[int, ...]
    vocab_size: int
    max_model_len: int


def fields(sampling: Sampling, seed: str, constraint: Constraint | None, bounds: Bounds) -> dict[str, Any]:
    """Fields of vLLM's SamplingParams for one prompt; a grammar goes under `structured_outputs`.

    Only our own end tokens end a free response. Under a grammar any end token does, for the grammar allows one only at
    its end.
    """
    asked: dict[str, Any] = {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": seed_number(seed, SEED_BITS),
        "stop_token_ids": list(bounds.end_ids),
        "ignore_eos": constraint is None,
        "logprobs": 0,  # of the sampled token alone
        "detokenize": False,
    }
    return asked if constraint is None else asked | {"structured_outputs": {"grammar": constraint.grammar}}


def labels() -> Iterator[str]:
    """A label for each publish of one sampler, which no other sampler gives."""
    name = secrets.token_hex(4)
    return (f"{name}-{number}" for number in count(1))


def check_lengths(prompts: Sequence[Sequence[int]], sampling: Sampling, bounds: Bounds) -> None:
    """Raises UserError where a prompt and its response may not fit into the engine, which would cut the response short."""
    longest = max(map(len, prompts), default=0)
    if longest + sampling.max_tokens > bounds.max_model_len:
        raise UserError(
            f"engine.options: vLLM's max_model_len is {bounds.max_model_len}, and a prompt of {longest} tokens may get a "
            f"response of {sampling.max_tokens}; raise max_model_len, or lower context.max_prompt_tokens."
        )


def checked(
    ids: Any, log_probs: Any, finish: Any, versions: Any, *, sampling: Sampling, bounds: Bounds, version: str | None
) -> Sampled:
    """One answer as a response; `version` is the label of the weights that were published, None before the first time.

    `versions` are the labels of the weights that vLLM says it used. Raises RunStopped for what cannot be an answer, and for
    one from other weights.
    """
    if not isinstance(ids, list | tuple) or not 0 < len(ids) <= sampling.max_tokens:
        raise _garbage(f"it has no list of 1 to {sampling.max_tokens} token ids")
    if not all(type(token) is int and 0 <= token < bounds.vocab_size for token in ids):
        raise _garbage(f"a token id is not a number below {bounds.vocab_size}")
    if not isinstance(log_probs, list | tuple) or len(log_probs) != len(ids):
        raise _garbage("it does not have one log-prob for each token")
    if not all(type(value) in (int, float) and _LEAST < value <= _ROUNDING for value in log_probs):
        raise _garbage(f"a log-prob is not a number between {_LEAST:g} and 0")
    if finish not in ("stop", "length"):
        raise _garbage(f"it ended for the reason {str(finish)[:40]!r} and not for 'stop' or 'length'")
    if version is not None and versions != {version}:
        shown = ", ".join(sorted(str(label)[:40] for label in versions)) if versions else "none that it names"
        raise RunStopped(
            f"vLLM sampled with the weights {shown} and not with {version}, which it was given last: it was started anew, "
            "or someone else uses it too; give this run a vLLM of its own and resume it."
        )
    return Sampled(tuple(ids), tuple(float(value) for value in log_probs), finish == "stop")


_ROUNDING = 1e-4
"""The log-prob of a certain token may come out a little above 0."""

_LEAST = -1000.0
"""No token that was drawn has less; vLLM's server writes -9999 where it computed no number."""


def _garbage(reason: str) -> RunStopped:
    return RunStopped(f"vLLM gave an answer that cannot be used: {reason}; check its version and its log, then resume.")
