"""Batched sampling from a Hugging Face causal language model, with the log-probabilities of what was drawn.

The keys and values of every row lie in one cache that is written in place (`cache.py`). For growing conversations they stay
there between calls, so that a turn costs its own tokens and not the whole episode again. Equal prompts are read once.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

from seed_opd.errors import UserError
from seed_opd.policy.cache import RowCache
from seed_opd.policy.engine import Constraint, Sampled, Sampling
from seed_opd.policy.pictures import Eye
from seed_opd.policy.samples import batches_by_tokens

READ_TOKENS = 8192
"""Padded prompt tokens in one forward pass; bounds memory, changes no result."""

_CROWDED = 0.9
"""Rows that have ended leave the batch once fewer than this share of it is still answering."""


@dataclass(slots=True, eq=False)
class _Row:
    """One conversation while it is being answered: all its tokens, and how many of them, from the first on, are cached."""

    index: int
    ids: list[int]
    uniforms: random.Random
    key: Hashable | None
    positions: Tensor | None = None  # of a prompt with pictures, (3, tokens)
    cached: int = 0
    drawn: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finished: bool = False
    done: bool = False  # finished, or cut

    @property
    def unread(self) -> int:
        """Tokens before the newest that are not cached; the newest one is read when its answer is drawn."""
        return len(self.ids) - 1 - self.cached


class TorchSampler:
    """Draws responses.

    The caches of conversations with keys stay until a call continues none of them, or until `forget` or `publish`.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int], eye: Eye | None = None) -> None:
        self.model = model
        self.eye = eye
        self.end_ids = frozenset(end_ids)
        self._windows = _windows(model.config)
        self.forget()

    def publish(self, weights: object = None) -> None:
        """The weights are the trainer's own; only what was cached under the old ones must go."""
        self.forget()

    def forget(self) -> None:
        """Drop all caches and their memory."""
        self._cache = RowCache(len(self._windows))
        self._rows: list[_Row] = []  # by row of the cache; those that are being answered come first

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
        names = keys if keys is not None else [None] * len(prompts)
        rows = [
            _Row(index, list(prompt), random.Random(seed), key)
            for index, (prompt, seed, key) in enumerate(zip(prompts, seeds, names, strict=True))
        ]
        for row in rows:
            row.positions = self._positions(row.ids)
        if constraint is not None:
            self._begin_answers(rows, constraint, sampling)
        answering = [row for row in rows if not row.done]
        self._seat(answering)
        self._read(answering)
        batch = len(answering)
        while batch:
            self._draw(self._rows[:batch], sampling, constraint)
            answering = [row for row in self._rows[:batch] if not row.done]
            if len(answering) < _CROWDED * batch:
                self._to_front(answering)
                batch = len(answering)
        if keys is None:
            self.forget()
        return [Sampled(tuple(row.drawn), tuple(row.log_probs), row.finished) for row in rows]

    # ---- before the first draw

    def _begin_answers(self, rows: list[_Row], constraint: Constraint, sampling: Sampling) -> None:
        """Take the tokens that a constraint leaves no choice about: they can be read together with the prompt."""
        choosing = rows
        while choosing:
            masks = constraint.mask([row.index for row in choosing])  # (rows, vocabulary)
            forced = (masks.sum(dim=1) == 1).tolist()
            tokens = masks.int().argmax(dim=1).tolist()
            for row, token, only in zip(choosing, tokens, forced, strict=True):
                if only:
                    self._take(row, token, 0.0, sampling, constraint)
            choosing = [row for row, only in zip(choosing, forced, strict=True) if only and not row.done]

    def _seat(self, rows: list[_Row]) -> None:
        """Give every row its place in the cache, at the front, and find out what of it is there already."""
        places = {row.key: place for place, row in enumerate(self._rows) if row.key is not None}
        if not any(row.key in places for row in rows):
            self._rows, places = [], {}
        for row in rows:
            place = places.pop(row.key, None)
            if place is None:
                self._rows.append(row)
            else:
                before = self._rows[place]
                row.cached = min(_common(before.ids[: before.cached], row.ids), len(row.ids) - 1)
                self._rows[place] = row
        self._to_front(rows)

    def _to_front(self, rows: list[_Row]) -> None:
        """Move rows to the front of the cache, as few as possible."""
        wanted = {id(row) for row in rows}
        leaving = [place for place in range(len(rows)) if id(self._rows[place]) not in wanted]
        coming = [place for place in range(len(rows), len(self._rows)) if id(self._rows[place]) in wanted]
        if coming:
            self._cache.swap(leaving, coming, max(self._rows[place].cached for place in (*leaving, *coming)))
        for here, there in zip(leaving, coming, strict=True):
            self._rows[here], self._rows[there] = self._rows[there], self._rows[here]

    def _read(self, rows: list[_Row]) -> None:
        """Read every prompt but for its newest token; of new prompts that are equal, one, for all."""
        place = {id(row): number for number, row in enumerate(self._rows)}
        equals: dict[object, list[_Row]] = {}
        for row in rows:
            equals.setdefault(tuple(row.ids[:-1]) if row.cached == 0 else id(row), []).append(row)
        readers = sorted((group[0] for group in equals.values() if group[0].unread), key=lambda row: place[id(row)])
        for batch in batches_by_tokens([row.unread for row in readers], READ_TOKENS):
            batched = [readers[number] for number in sorted(batch)]
            self._forward([place[id(row)] for row in batched], [row.ids[row.cached : -1] for row in batched])
            for row in batched:
                row.cached = len(row.ids) - 1
        for first, *others in equals.values():
            if others and first.cached:
                self._cache.copy(place[id(first)], [place[id(row)] for row in others], first.cached)
                for row in others:
                    row.cached = first.cached

    # ---- drawing

    def _draw(self, batch: list[_Row], sampling: Sampling, constraint: Constraint | None) -> None:
        """Draw the next token of every row that has not ended; one that has reads a filler that nobody will see."""
        logits = self._forward(range(len(batch)), [[0] if row.done else row.ids[-1:] for row in batch])
        answering = [place for place, row in enumerate(batch) if not row.done]
        rows = [batch[place] for place in answering]
        logits = logits[answering].float()  # (rows, vocabulary)
        if constraint is not None:
            allowed = constraint.mask([row.index for row in rows]).to(logits.device)  # (rows, vocabulary)
            logits = logits.masked_fill(~allowed, -torch.inf)
        log_probs = torch.log_softmax(logits / (sampling.temperature or 1.0), dim=-1)
        tokens = _pick(log_probs, rows) if sampling.temperature > 0 else log_probs.argmax(dim=-1)
        taken = log_probs.gather(1, tokens[:, None])[:, 0]
        for row, token, log_prob in zip(rows, tokens.tolist(), taken.tolist(), strict=True):
            row.cached = len(row.ids)
            self._take(row, token, log_prob, sampling, constraint)

    def _take(self, row: _Row, token: int, log_prob: float, sampling: Sampling, constraint: Constraint | None) -> None:
        row.drawn.append(token)
        row.ids.append(token)
        row.log_probs.append(log_prob)
        complete = constraint is not None and constraint.accept(row.index, token)
        row.finished = complete or token in self.end_ids
        row.done = row.finished or len(row.drawn) == sampling.max_tokens

    def _forward(self, places: Sequence[int], chunks: list[list[int]]) -> Tensor:
        """Read a chunk per row behind what is cached of it; returns the logits of the last column, (rows, vocabulary).

        Chunks are padded at the right: what the padding writes is beyond the row's end.
        """
        device, width = self.model.device, max(len(chunk) for chunk in chunks)
        ids = torch.tensor([chunk + [0] * (width - len(chunk)) for chunk in chunks], device=device)
        cached = [self._rows[place].cached for place in places]
        columns = torch.tensor(cached, device=device)[:, None] + torch.arange(width, device=device)  # (rows, tokens)
        length = max(cached) + width
        self._cache.place(places, columns, length)
        output = self.model(
            **(self.eye.inputs(ids) if self.eye else {"input_ids": ids}),
            attention_mask=self._masks(columns, length),
            position_ids=self._places(places, columns),
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]

    def _positions(self, ids: Sequence[int]) -> Tensor | None:
        """Where each token of a prompt stands, (3, tokens), if that is not its column."""
        if self.eye is None:
            return None
        positions = self.eye.positions(self.model, torch.tensor([ids], device=self.model.device))
        return None if positions is None else positions[:, 0]

    def _places(self, places: Sequence[int], columns: Tensor) -> Tensor:
        """The positions of what is read, (rows, tokens), or (3, rows, tokens) where pictures take less room than tokens."""
        known = [self._rows[place].positions for place in places]
        if all(positions is None for positions in known):
            return columns
        return torch.stack([_reach(*pair) for pair in zip(known, columns, strict=True)], dim=1)

    def _masks(self, columns: Tensor, length: int) -> Tensor | dict[str, Tensor] | None:
        """What each new token may look at, (rows, 1, tokens, length); None where plain causality says it all."""
        if columns.shape[1] == length and not any(self._windows):
            return None
        kinds = {window: self._mask(columns, length, window) for window in set(self._windows)}
        if len(kinds) == 1:
            return kinds[self._windows[0]]
        return {"full_attention" if window is None else "sliding_attention": mask for window, mask in kinds.items()}

    def _mask(self, columns: Tensor, length: int, window: int | None) -> Tensor:
        """As truth values for torch's attention, which knows its own number format; as summands for the others."""
        behind = columns[:, None, :, None] - torch.arange(length, device=columns.device)  # (rows, 1, tokens, length)
        seen = behind >= 0 if window is None else (behind >= 0) & (behind < window)
        if self.model.config._attn_implementation == "sdpa":
            return seen
        return torch.zeros(seen.shape, device=columns.device).masked_fill_(~seen, -torch.inf)


def _reach(positions: Tensor | None, columns: Tensor) -> Tensor:
    """The positions (3, tokens) at these columns (tokens,); beyond the prompt they go on one by one."""
    if positions is None:
        return columns.expand(3, -1)
    last = positions.shape[1] - 1
    beyond = positions.amax() + (columns - last).clamp(min=0)
    return torch.where(columns <= last, positions[:, columns.clamp(max=last)], beyond)


def _pick(log_probs: Tensor, rows: list[_Row]) -> Tensor:
    """Inverse transform sampling with one uniform number per row, so that a row does not depend on its neighbours."""
    cumulative = log_probs.double().exp().cumsum(dim=-1)  # (rows, vocabulary)
    uniforms = torch.tensor([[row.uniforms.random()] for row in rows], dtype=torch.float64, device=log_probs.device)
    tokens = torch.searchsorted(cumulative, uniforms * cumulative[:, -1:], right=True)[:, 0]
    return tokens.clamp(max=log_probs.shape[-1] - 1)


def _windows(config: PreTrainedConfig) -> list[int | None]:
    """How many tokens each layer looks back, None for all; raises UserError for layers that keep anything else."""
    kinds, options = get_layer_types_and_kwargs(config.get_text_config(decoder=True))
    for kind in kinds:
        if kind not in ("full_attention", "sliding_attention"):
            raise UserError(
                f"model.path: {config.model_type} has layers of the kind {kind!r}, which this sampler has no cache for; "
                "sample with engine.sampler=vllm or choose another architecture."
            )
    return [option.get("sliding_window") for option in options]


def _common(some: Sequence[int], others: Sequence[int]) -> int:
    """Length of the longest common beginning."""
    if some == others[: len(some)]:
        return len(some)
    differing = (count for count, (a, b) in enumerate(zip(some, others, strict=False)) if a != b)
    return next(differing, min(len(some), len(others)))
