"""Batched sampling from a Hugging Face causal language model, with the log-probabilities of what was drawn.

Prompts of unequal length stand left-padded in one batch. Rows that have ended leave the batch. For growing conversations the
keys and values of each row are kept between calls, so that a turn costs its own tokens and not the whole episode again.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from seed_opd.policy.engine import Constraint, Sampled, Sampling

LayerRows = list[tuple[Tensor, Tensor]]
"""Keys and values of one conversation, per layer, each (heads, tokens, head_size)."""


@dataclass(slots=True)
class _Row:
    """One conversation while it is being answered. `ids` are all its tokens; the cache may lack the newest."""

    index: int
    ids: list[int]
    uniforms: random.Random
    drawn: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finished: bool = False


class TorchSampler:
    """Draws responses. It keeps caches of the conversations whose keys it was last given, and of no others."""

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int]) -> None:
        self.model = model
        self.end_ids = frozenset(end_ids)
        self._kept: dict[Hashable, tuple[list[int], LayerRows]] = {}

    def publish(self, weights: object = None) -> None:
        """The weights are the trainer's own; only what was cached under the old ones must go."""
        self._kept.clear()

    @torch.inference_mode()
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
        rows = [
            _Row(i, list(prompt), random.Random(seed)) for i, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True))
        ]
        batch, kept = self._begin(rows, keys)
        for _ in range(sampling.max_tokens):
            self._draw(batch, sampling, constraint)
            alive = [row for row in batch.rows if not row.finished]
            if not alive or len(alive[0].drawn) == sampling.max_tokens:
                break
            if len(alive) <= len(batch.rows) // 2:
                kept.update(batch.leave(keys))
                batch.shrink()
            batch.advance()
        kept.update(batch.leave(keys, everyone=True))
        self._kept = kept
        return [Sampled(tuple(row.drawn), tuple(row.log_probs), row.finished) for row in rows]

    def _begin(
        self, rows: list[_Row], keys: Sequence[Hashable] | None
    ) -> tuple[_Batch, dict[Hashable, tuple[list[int], LayerRows]]]:
        resumed = [self._kept.get(key) for key in keys] if keys is not None else [None] * len(rows)
        self._kept = {}
        usable = [
            entry if entry is not None and len(entry[0]) < len(row.ids) and row.ids[: len(entry[0])] == entry[0] else None
            for row, entry in zip(rows, resumed, strict=True)
        ]
        return _Batch(self.model, rows, usable), {}

    def _draw(self, batch: _Batch, sampling: Sampling, constraint: Constraint | None) -> None:
        """Draw the next token of every row that has not ended."""
        alive = [position for position, row in enumerate(batch.rows) if not row.finished]
        rows = [batch.rows[position] for position in alive]
        logits = batch.logits[alive].float()  # (rows, vocabulary)
        if constraint is not None:
            allowed = constraint.mask([row.index for row in rows]).to(logits.device)  # (rows, vocabulary)
            logits = logits.masked_fill(~allowed, -torch.inf)
        log_probs = torch.log_softmax(logits / (sampling.temperature or 1.0), dim=-1)
        tokens = _pick(log_probs, rows) if sampling.temperature > 0 else log_probs.argmax(dim=-1)
        taken = log_probs.gather(1, tokens[:, None])[:, 0]
        for row, token, log_prob in zip(rows, tokens.tolist(), taken.tolist(), strict=True):
            row.drawn.append(token)
            row.ids.append(token)
            row.log_probs.append(log_prob)
            complete = constraint is not None and constraint.accept(row.index, token)
            row.finished = complete or token in self.end_ids


def _pick(log_probs: Tensor, rows: list[_Row]) -> Tensor:
    """Inverse transform sampling with one uniform number per row, so that a row does not depend on its neighbours."""
    cumulative = log_probs.double().exp().cumsum(dim=-1)  # (rows, vocabulary)
    uniforms = torch.tensor([[row.uniforms.random()] for row in rows], dtype=torch.float64, device=log_probs.device)
    tokens = torch.searchsorted(cumulative, uniforms * cumulative[:, -1:], right=True)[:, 0]
    return tokens.clamp(max=log_probs.shape[-1] - 1)


class _Batch:
    """The rows being answered, their caches stacked to the right, and the logits of their next token (rows, vocabulary)."""

    def __init__(self, model: PreTrainedModel, rows: list[_Row], resumed: list[tuple[list[int], LayerRows] | None]) -> None:
        self.model = model
        self.rows = rows
        self.device = model.device
        lengths = [len(entry[0]) if entry else 0 for entry in resumed]
        self.cache = DynamicCache(config=model.config)
        self.mask = _left_padded_mask(lengths, self.device)  # (rows, cached tokens)
        self.cached = lengths
        if any(lengths):
            self._stack([entry[1] if entry else None for entry in resumed], max(lengths))
        self._forward([row.ids[length:] for row, length in zip(rows, lengths, strict=True)])

    def advance(self) -> None:
        """Feed the token that each row drew last; a row that has ended gets a masked filler."""
        self._forward([[] if row.finished else row.ids[-1:] for row in self.rows])

    def shrink(self) -> None:
        """Drop the rows that have ended."""
        alive = [position for position, row in enumerate(self.rows) if not row.finished]
        index = torch.tensor(alive, device=self.device)
        self.cache.batch_select_indices(index)
        self.mask = self.mask[index]
        self.rows = [self.rows[position] for position in alive]
        self.cached = [self.cached[position] for position in alive]

    def leave(self, keys: Sequence[Hashable] | None, everyone: bool = False) -> dict[Hashable, tuple[list[int], LayerRows]]:
        """The caches of the rows that have ended (or of all), by conversation."""
        if keys is None or not _croppable(self.cache):
            return {}
        return {
            keys[row.index]: (row.ids[: self.cached[position]], self._row_cache(position))
            for position, row in enumerate(self.rows)
            if row.finished or everyone
        }

    def _row_cache(self, position: int) -> LayerRows:
        valid = self.mask[position].nonzero()[:, 0]
        layers: list[Any] = self.cache.layers
        return [(layer.keys[position][:, valid], layer.values[position][:, valid]) for layer in layers]

    def _stack(self, caches: list[LayerRows | None], length: int) -> None:
        example = next(cache for cache in caches if cache)
        for number, (keys, values) in enumerate(example):
            stacked_keys = keys.new_zeros(len(caches), keys.shape[0], length, keys.shape[2])
            stacked_values = values.new_zeros(len(caches), values.shape[0], length, values.shape[2])
            for position, cache in enumerate(caches):
                if cache:
                    row_keys, row_values = cache[number]
                    stacked_keys[position, :, length - row_keys.shape[1] :] = row_keys
                    stacked_values[position, :, length - row_values.shape[1] :] = row_values
            self.cache.update(stacked_keys, stacked_values, number)

    def _forward(self, chunks: list[list[int]]) -> None:
        """Read a chunk per row, left-padded, so that the last column holds every row's newest token."""
        longest = max(len(chunk) for chunk in chunks)
        ids = torch.tensor([[0] * (longest - len(chunk)) + chunk for chunk in chunks], device=self.device)
        mask = _left_padded_mask([len(chunk) for chunk in chunks], self.device)
        self.mask = torch.cat([self.mask, mask], dim=1)
        positions = (self.mask.cumsum(dim=1) - 1).clamp(min=0)[:, -longest:]
        output = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            cache=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.logits = output.logits[:, -1]
        self.cached = [before + len(chunk) for before, chunk in zip(self.cached, chunks, strict=True)]


def _left_padded_mask(lengths: Sequence[int], device: torch.device) -> Tensor:
    """(rows, longest) long: 0 for padding at the left, then 1."""
    longest = max(lengths)
    columns = torch.arange(longest, device=device)
    return (columns[None, :] >= longest - torch.tensor(lengths, device=device)[:, None]).long()


def _croppable(cache: DynamicCache) -> bool:
    """Only full attention keeps every token, one column each; sliding windows and recurrent states are computed anew."""
    return not any(cache.is_sliding)
