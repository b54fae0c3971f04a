"""The cost ledger: seconds and tokens of each phase of an update."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Ledger:
    """Adds up what each phase took."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tokens: defaultdict[str, int] = defaultdict(int)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - start

    def row(self) -> dict[str, float]:
        """Everything so far, under `seconds/<phase>` and `tokens/<phase>`."""
        seconds: dict[str, float] = {f"seconds/{name}": round(value, 3) for name, value in self.seconds.items()}
        return seconds | {f"tokens/{name}": value for name, value in self.tokens.items()}
