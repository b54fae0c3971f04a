"""Scripted play as text, by environment: what the tiny policies are pretrained on."""

from __future__ import annotations

from collections.abc import Iterator

from seed_opd.errors import UserError
from seed_opd.training.demonstrations.lesson import Demonstration, Teacher, teach

NAMES = ("alfworld", "webshop", "search", "sokoban", "ezpoints")


def teacher(name: str, max_steps: int, **options: object) -> Teacher:
    """Who plays an environment for others to imitate; raises UserError for one that nobody teaches."""
    if name == "alfworld":
        from seed_opd.training.demonstrations.alfworld import AlfworldTeacher

        return AlfworldTeacher(max_steps)
    if name == "webshop":
        from seed_opd.training.demonstrations.webshop import WebshopTeacher

        return WebshopTeacher(max_steps)
    if name == "search":
        from seed_opd.training.demonstrations.search import SearchTeacher

        return SearchTeacher(max_steps)
    if name in ("sokoban", "ezpoints"):
        from seed_opd.training.demonstrations.vision import EzpointsTeacher, SokobanTeacher

        return {"sokoban": SokobanTeacher, "ezpoints": EzpointsTeacher}[name](max_steps, **options)
    raise UserError(f"environment: nobody plays {name!r} to imitate; choose one of {', '.join(NAMES)}.")


def demonstrations(name: str, seed: int, max_steps: int, **options: object) -> Iterator[Demonstration]:
    """An endless, seeded stream of demonstrations; tasks of one seed never return under another."""
    return teach(teacher(name, max_steps, **options), seed)


__all__ = ["NAMES", "Demonstration", "Teacher", "demonstrations", "teach", "teacher"]
