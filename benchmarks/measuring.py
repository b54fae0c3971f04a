"""Interleaved measurements and the tables that show them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch

Row = dict[str, float]
"""What one run of a work measured, by name."""


def interleaved(rounds: int, works: dict[str, Callable[[], Row]]) -> dict[str, list[Row]]:
    """Run the works in turn, once to warm up and then `rounds` times; each gives what it measured."""
    rows: dict[str, list[Row]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            row = work()
            if number:
                rows[name].append(row)
    return rows


def timed(work: Callable[[], object], **amounts: float) -> Callable[[], Row]:
    def run() -> Row:
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return {"seconds": time.perf_counter() - start, **amounts}

    return run


def median(rows: Sequence[Row], name: str) -> float:
    return statistics.median(row.get(name, 0.0) for row in rows)


def ratio(rows: Sequence[Row], others: Sequence[Row], name: str = "seconds") -> str:
    """The median over rounds of one's share of the other, with the smallest and the largest."""
    values = [row[name] / other[name] for row, other in zip(rows, others, strict=True)]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |", flush=True)
    print(flush=True)
