"""The clipped policy-gradient surrogate of PPO, per token, with dual clip."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0  # keeps exp and its gradient finite; far outside every clip range


def clipped_surrogate(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = 3.0,
) -> Tensor:
    """Loss of each token: max(-A r, -A clip(r, 1 - low, 1 + high)), r = exp(log_probs - old_log_probs).

    `log_probs` live, `old_log_probs` of the policy that sampled, `advantages`: all (tokens,) -> (tokens,).
    With `dual_clip` c > 1, a token with A < 0 costs at most -A c. Clip 0.2 on both sides and c = 3: reference code.
    """
    ratio = importance_ratio(log_probs, old_log_probs)  # (tokens,)
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)  # (tokens,)
    loss = torch.maximum(-advantages * ratio, -advantages * clipped)  # (tokens,)
    if dual_clip is None:
        return loss
    return torch.where(advantages < 0, torch.minimum(loss, -advantages * dual_clip), loss)


def importance_ratio(log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """r = exp(log_probs - old_log_probs): (tokens,), (tokens,) -> (tokens,)."""
    return (log_probs - old_log_probs.detach()).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def clipped_away(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = 3.0,
) -> Tensor:
    """Where a clip of `clipped_surrogate` took the gradient away, to be watched: all (tokens,) -> (tokens,) bool."""
    ratio = importance_ratio(log_probs, old_log_probs).detach()  # (tokens,)
    outside = ((advantages > 0) & (ratio > 1 + clip_high)) | ((advantages < 0) & (ratio < 1 - clip_low))  # (tokens,)
    return outside if dual_clip is None else outside | ((advantages < 0) & (ratio > dual_clip))
