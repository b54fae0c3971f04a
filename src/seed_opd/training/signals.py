"""From scored samples to what the loss reads: per response token its signals, and its weight in each component."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seed_opd.methods import Method, Shaping
from seed_opd.objectives.aggregate import Normalisation, denominator, token_weights
from seed_opd.objectives.shaping import added, decayed, modulated
from seed_opd.policy.engine import Signals
from seed_opd.training.scoring import Scored


def signals_of(method: Method, batch: Sequence[Scored], update: int) -> list[Signals]:
    """What the loss reads, for the samples of one optimizer step; the weights hold each component's denominator."""
    everywhere = [torch.ones(len(item.old), dtype=torch.bool) for item in batch]
    weights = _weights(batch, everywhere, method.surrogate.normalisation)
    signals = [
        {
            "old": item.old,
            "advantage": _shaped(method.shaping, item, update),
            "surrogate_weight": method.surrogate.weight * weight,
        }
        for item, weight in zip(batch, weights, strict=True)
    ]
    if method.divergence.weight:
        weights = _weights(batch, everywhere, method.divergence.normalisation)
        for signal, item, weight in zip(signals, batch, weights, strict=True):
            assert item.reference is not None
            signal |= {"reference": item.reference, "kl_weight": method.divergence.weight * weight}
    if method.distillation:
        active = _active(method, batch)
        weights = _weights(batch, active, method.distillation.normalisation)
        for signal, item, weight in zip(signals, batch, weights, strict=True):
            signal["skill"] = item.old if item.skill is None else item.skill
            signal["distillation_weight"] = method.distillation.weight * weight
            if method.distillation.baseline == "control":
                signal["control"] = item.old if item.control is None else item.control
    return list(signals)


def _shaped(row: Shaping | None, item: Scored, update: int) -> Tensor:
    """The advantage with the gap in it, (response_tokens,); without a usable skill it stays as it is."""
    if row is None or item.gap is None:
        return item.advantage
    weight = row.weight if row.decay_updates is None else decayed(row.weight, update, row.decay_updates)
    if row.form == "modulated":
        return modulated(item.advantage, item.gap, weight, row.clip, row.clip)
    return added(item.advantage, item.gap, weight)


def _weights(batch: Sequence[Scored], active: Sequence[Tensor], normalisation: Normalisation) -> list[Tensor]:
    flat = torch.cat(list(active))  # (tokens,)
    owners = torch.cat([torch.full((len(item.old),), item.trajectory) for item in batch])  # (tokens,)
    weights = token_weights(flat, owners, normalisation) / denominator(flat, owners, normalisation)
    return list(weights.split([len(item.old) for item in batch]))


def _active(method: Method, batch: Sequence[Scored]) -> list[Tensor]:
    """The tokens that the distillation acts on, (response_tokens,) bool per item."""
    assert method.distillation is not None
    needs_control = method.distillation.baseline == "control"
    active = []
    for item in batch:
        known = item.skill is not None and (item.control is not None or not needs_control) and not item.floored
        everywhere = torch.full((len(item.old),), known)
        active.append(everywhere if item.eligible is None else everywhere & item.eligible)
    return active
