"""Calls into another program that may fail in any way, or never return: each ends in time, with a sentence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from seed_opd.errors import RunStopped, UserError

Result = TypeVar("Result")


def within(seconds: float, what: str, call: Callable[[], Result]) -> Result:
    """The result of `call`; RunStopped when it fails, or when nothing came in time.

    A call that never returns keeps its thread until the process ends; the thread does not keep the process.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = call()
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(seconds)
    if error := outcome.get("error"):
        raise _named(what, error) from error
    if "result" not in outcome:
        raise RunStopped(f"{what}: no answer within {seconds:g} seconds; see its log, then resume from the last checkpoint.")
    result: Result = outcome["result"]
    return result


def _named(what: str, error: Exception) -> Exception:
    if isinstance(error, RunStopped | UserError):
        return type(error)(*error.args)
    reason = " ".join(str(error).split())[:300]
    return RunStopped(f"{what}: {type(error).__name__}: {reason}; see its log, then resume from the last checkpoint.")
