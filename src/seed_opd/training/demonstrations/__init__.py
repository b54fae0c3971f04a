"""Scripted play as text, by environment: what the tiny policies are pretrained on."""

from __future__ import annotations

from collections.abc import Iterator

from seed_opd.environments import NAMES
from seed_opd.environments.options import WrongOption, check_options
from seed_opd.errors import UserError
from seed_opd.training.demonstrations.lesson import Demonstration, Reading, Teacher, teach


def teacher(name: str, max_steps: int, **options: object) -> Teacher:
    """Who plays an environment for others to imitate; `options` are the environment's, where it has any for practice.

    Raises UserError for an environment that nobody teaches, and for options that it does not have.
    """
    if options and name in ("alfworld", "webshop", "search"):
        raise WrongOption(*next(iter(options.items())), f"changes nothing in the practice of {name}; leave it out.")
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

        kind = SokobanTeacher if name == "sokoban" else EzpointsTeacher
        check_options(kind.plays, options)
        return kind(max_steps, **options)
    raise UserError(f"environment: nobody plays {name!r} to imitate; choose one of {', '.join(NAMES)}.")


def demonstrations(name: str, seed: int, max_steps: int, **options: object) -> Iterator[Demonstration]:
    """An endless, seeded stream of demonstrations; tasks of one seed never return under another."""
    return teach(teacher(name, max_steps, **options), seed)


__all__ = ["Demonstration", "Reading", "Teacher", "demonstrations", "teach", "teacher"]
