"""What a model reads and what it is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One token sequence and the spans of it that the policy sampled.

    `token_ids` (tokens,) is prompt and responses together; negative ones stand for pictures (`pictures.py`). `spans` are the
    half-open ranges of the responses in it, one per entry of `steps`, which names the trajectory's steps they belong to.
    Everything per response token is a flat vector (response_tokens,), the spans one after another.
    """

    token_ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    steps: tuple[int, ...] = (0,)

    @property
    def response_tokens(self) -> int:
        return sum(end - start for start, end in self.spans)

    @property
    def has_pictures(self) -> bool:
        return min(self.token_ids, default=0) < 0

    @property
    def positions(self) -> list[int]:
        """Indices of the response tokens in `token_ids`."""
        return [index for start, end in self.spans for index in range(start, end)]

    @property
    def response_ids(self) -> list[int]:
        return [self.token_ids[index] for index in self.positions]


def batches_by_tokens(lengths: Sequence[int], budget: int, spared: int = 512) -> list[list[int]]:
    """Split indices into batches of similar length whose padded size (rows times longest) stays within `budget` tokens.

    A batch also ends where what it still has room for would be padded by more than `spared` tokens, about what one more
    forward pass costs beside its tokens. Longest first, so that a batch that does not fit in memory fails at once. A single
    sequence longer than the budget is a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batches: list[list[int]] = []
    longest = 0
    for rest, index in zip(range(len(order), 0, -1), order, strict=True):
        room = budget // longest - len(batches[-1]) if batches else 0
        if room > 0 and min(rest, room) * (longest - lengths[index]) <= spared:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = lengths[index]
    return batches
