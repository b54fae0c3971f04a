"""Keys and values of many conversations, written in place.

Each conversation has a row, and its tokens stand in columns 0, 1, ... of it, without gaps: a token's column is its position.
What lies beyond a conversation's end is masked, and overwritten when the conversation grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

BLOCK = 128
"""Columns are added in blocks, so that growing copies seldom."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a forward pass writes, and how far back it looks.

    `rows` are the cache's rows of the batch, as a slice where they lie side by side, which saves a copy; `index` (rows, 1)
    and `columns` (rows, tokens) say where each new token goes; attention sees the first `length` columns.
    """

    rows: slice | Tensor
    index: Tensor
    columns: Tensor
    length: int


class RowCache(Cache):
    """What a Hugging Face model takes as its cache. `place` before each forward pass says which rows it is about."""

    def __init__(self, layers: int) -> None:
        self.rows, self.capacity = 0, 0
        self.current: Place | None = None
        self._rooms = [_Layer(self) for _ in range(layers)]
        super().__init__(layers=list(self._rooms))

    def place(self, rows: Sequence[int], columns: Tensor, length: int) -> None:
        """The next forward pass reads `columns` (rows, tokens) of these rows and sees `length` columns."""
        self.rows = max(self.rows, max(rows) + 1)
        if length > self.capacity:
            self.capacity = -(-length // BLOCK) * BLOCK
        index = torch.tensor(rows, device=columns.device)
        neighbours = list(rows) == list(range(rows[0], rows[0] + len(rows)))
        self.current = Place(slice(rows[0], rows[0] + len(rows)) if neighbours else index, index[:, None], columns, length)

    def swap(self, some: Sequence[int], others: Sequence[int], length: int) -> None:
        """Exchange rows pairwise, their first `length` columns."""
        for tensor in self._stored():
            tensor[[*some, *others], :, :length] = tensor[[*others, *some], :, :length]

    def copy(self, row: int, targets: Sequence[int], length: int) -> None:
        """Give other rows the first `length` columns of a row."""
        self.rows = max(self.rows, max(targets) + 1)
        for tensor in self._stored():
            tensor[list(targets), :, :length] = tensor[row, :, :length]

    def _stored(self) -> list[Tensor]:
        for layer in self._rooms:
            layer.fit()
        return [tensor for layer in self._rooms for tensor in layer.stored]


class _Layer(CacheLayerMixin):
    """Keys and values of one layer, each (rows, heads, capacity, head_size)."""

    is_sliding = False

    def __init__(self, cache: RowCache) -> None:
        super().__init__()
        self.cache = cache
        self.stored: list[Tensor] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.stored = [states.new_zeros(0, states.shape[1], 0, states.shape[3]) for states in (key_states, value_states)]
        self.is_initialized = True

    def fit(self) -> None:
        """Grow to the cache's rows and capacity."""
        self.stored = [_grown(tensor, self.cache.rows, self.cache.capacity) for tensor in self.stored]

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write what is new, (rows, heads, tokens, head_size); returns what attention looks at."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.fit()
        place = self.cache.current
        assert place is not None
        for tensor, states in zip(self.stored, (key_states, value_states), strict=True):
            tensor[place.index, :, place.columns] = states.transpose(1, 2)
        keys, values = (tensor[place.rows, :, : place.length] for tensor in self.stored)
        return keys, values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        assert self.cache.current is not None
        return self.cache.current.length, 0

    def get_seq_length(self) -> int:
        place = self.cache.current
        return 0 if place is None else place.length - place.columns.shape[1]

    def get_max_length(self) -> int:
        return -1


def _grown(tensor: Tensor, rows: int, capacity: int) -> Tensor:
    """The tensor with at least so many rows and columns.

    New ones are zeros: attention multiplies what is masked by 0, and a NaN in fresh memory would survive that.
    """
    if tensor.shape[0] >= rows and tensor.shape[2] >= capacity:
        return tensor
    grown = tensor.new_zeros(max(rows, tensor.shape[0]), tensor.shape[1], max(capacity, tensor.shape[2]), tensor.shape[3])
    grown[: tensor.shape[0], :, : tensor.shape[2]] = tensor
    return grown
