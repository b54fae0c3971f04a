"""Sequences to learn copying from: random tokens, parts of which come again.

In play, few tokens must be copied from afar, and a small model learns it late or never; here it is half of all tokens.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from seed_opd.policy.samples import Sample

LENGTH = 512
ALPHABET = (16, 128)
"""Different tokens in a sequence; few of them, so that more than the last one must match."""
PART = (4, 12)
"""Tokens of a part."""
KNOWN = 2
"""The first tokens of a part, which tell which one comes again and cannot be told themselves."""


def repetitions(tokens: Sequence[int], seed: int) -> Iterator[Sample]:
    """An endless, seeded stream; what counts as a response is what can be copied."""
    rng = random.Random(f"repetitions/{seed}")
    while True:
        yield _repetition(rng.sample(tokens, min(len(tokens), rng.randint(*ALPHABET))), rng)


def _repetition(alphabet: Sequence[int], rng: random.Random) -> Sample:
    ids: list[int] = []
    parts: list[list[int]] = []
    spans: list[tuple[int, int]] = []
    while len(ids) < LENGTH:
        again = len(parts) > 1 and rng.random() < 0.5
        part = rng.choice(parts[:-1]) if again else rng.choices(alphabet, k=rng.randint(*PART))
        if again:
            spans.append((len(ids) + KNOWN, len(ids) + len(part)))
        else:
            parts.append(part)
        ids += part
    return Sample(tuple(ids), tuple(spans))
