"""Seeds are names; servers want numbers."""

from __future__ import annotations

import hashlib


def seed_number(seed: str, bits: int) -> int:
    """The first bits of a seed's hash, at most 64, as a number."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") >> (64 - bits)
