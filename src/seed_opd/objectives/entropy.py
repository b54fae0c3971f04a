"""Entropy of the policy at each token."""

from __future__ import annotations

from torch import Tensor


def token_entropy(logits: Tensor) -> Tensor:
    """H = -sum p log p, in nats: (tokens, vocabulary) -> (tokens,), computed in float32 or better."""
    log_probs = (logits.float() if logits.dtype.itemsize < 4 else logits).log_softmax(-1)  # (tokens, vocabulary)
    return -(log_probs.exp() * log_probs).sum(-1)
