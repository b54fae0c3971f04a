"""Environments by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seed_opd.environments.base import Action, Environment, Observation, Outcome
from seed_opd.environments.options import WrongOption, check_options
from seed_opd.errors import UserError

NAMES = ("alfworld", "webshop", "search", "sokoban", "ezpoints")


def make(name: str, /, **options: Any) -> Environment:
    """Build an environment by name; its package is imported only now, and its data are opened when a task is asked for.

    Raises UserError for an unknown name, and WrongOption for an option that it does not have or that has another type.
    """
    kind = _class_of(name)
    check_options(kind, options)
    return kind(**options)


def _class_of(name: str) -> type[Environment]:
    if name == "alfworld":
        from seed_opd.environments.alfworld import AlfworldEnvironment

        return AlfworldEnvironment
    if name == "webshop":
        from seed_opd.environments.webshop import WebshopEnvironment

        return WebshopEnvironment
    if name == "search":
        from seed_opd.environments.searchqa import SearchEnvironment

        return SearchEnvironment
    if name == "sokoban":
        from seed_opd.environments.sokoban import SokobanEnvironment

        return SokobanEnvironment
    if name == "ezpoints":
        from seed_opd.environments.ezpoints import EzpointsEnvironment

        return EzpointsEnvironment
    raise UserError(f"environment: {name!r} is unknown; choose one of {', '.join(NAMES)}.")


def data_source(name: str) -> Iterator[str]:
    """Sentences about an environment's data; originals that are missing are fetched where that is possible."""
    if name == "alfworld":
        from seed_opd.environments.alfworld.download import report

        return report()
    if name == "webshop":
        from seed_opd.environments.webshop.download import report as webshop_report

        return webshop_report()
    if name == "search":
        from seed_opd.environments.searchqa.data import report as search_report

        return search_report()
    if name in ("sokoban", "ezpoints"):
        return iter([f"{name}: its tasks are made from seeds; there is nothing to fetch."])
    raise UserError(f"environment: {name!r} is unknown; choose one of {', '.join(NAMES)}.")


__all__ = ["NAMES", "Action", "Environment", "Observation", "Outcome", "WrongOption", "data_source", "make"]
