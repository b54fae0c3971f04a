"""Environments by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seed_opd.environments.base import Action, Environment, Observation, Outcome
from seed_opd.errors import UserError

NAMES = ("alfworld",)


def make(name: str, **options: Any) -> Environment:
    """Build an environment by name; its package is imported only now. Raises UserError for an unknown name."""
    if name == "alfworld":
        from seed_opd.environments.alfworld import AlfworldEnvironment

        return AlfworldEnvironment(**options)
    raise UserError(f"environment: {name!r} is unknown; choose one of {', '.join(NAMES)}.")


def data_source(name: str) -> Iterator[str]:
    """Sentences about an environment's data; originals that are missing are fetched where that is possible."""
    if name == "alfworld":
        from seed_opd.environments.alfworld.download import report

        return report()
    raise UserError(f"environment: {name!r} is unknown; choose one of {', '.join(NAMES)}.")


__all__ = ["NAMES", "Action", "Environment", "Observation", "Outcome", "data_source", "make"]
