"""Where hindsight speaks: the gap by the episode's outcome, and by what a token is for."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seed_opd.report.run_folder import Run, Tokens

SURE = math.log(0.9)
"""A token above this log-probability was hardly a decision."""

_TAG = re.compile(r"<(/?)(think|action|search|answer)>")


def gap_classes(folder: Path) -> list[dict[str, Any]]:
    """One row per recorded update, outcome and class of token, from a run's folder; none where nothing was scored twice.

    A class is the tag that the token stands in, its own tags included, or `text` outside of any, and whether it was `sure`
    or `open` to the policy. A row has the number of `tokens`, and the sums of the positive gaps, `above`, and of the
    negative ones, `below`, in nats.
    """
    run = Run.read(folder)
    rows = []
    for update in run.recorded_updates():
        classes: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for episode in run.episodes(update):
            for step in episode.tokens or ():
                for name, gap in _gaps(step):
                    classes[episode.trajectory.outcome, name].append(gap)
        rows += [_row(update, *key, gaps) for key, gaps in sorted(classes.items())]
    return rows


def _gaps(step: Tokens) -> Iterator[tuple[str, float]]:
    """The class and the gap of each response token; nothing without a usable skill."""
    if step.skill is None:
        return
    for place, ordinary, skill in zip(_places(step.texts), step.ordinary, step.skill, strict=True):
        yield f"{place}, {'sure' if ordinary > SURE else 'open'}", skill - ordinary


def _places(texts: Sequence[str]) -> Iterator[str]:
    """The tag that each token stands in."""
    unread, inside = "", "text"
    for text in texts:
        unread += text
        place = inside
        for closing, name in _TAG.findall(unread):
            place, inside = name, "text" if closing else name
        if _TAG.search(unread):
            unread = unread[[match.end() for match in _TAG.finditer(unread)][-1] :]
        yield place


def _row(update: int, outcome: str, name: str, gaps: list[float]) -> dict[str, Any]:
    return {
        "kind": "gaps",
        "update": update,
        "outcome": outcome,
        "class": name,
        "tokens": len(gaps),
        "above": round(sum(gap for gap in gaps if gap > 0), 3),
        "below": round(sum(gap for gap in gaps if gap < 0), 3),
    }
