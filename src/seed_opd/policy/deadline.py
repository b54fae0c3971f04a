"""A bound on calls that wait for another process and have no time-out of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from seed_opd.errors import RunStopped

Result = TypeVar("Result")


def within(seconds: float, what: str, call: Callable[[], Result]) -> Result:
    """The result of `call`, or what it raised; RunStopped when neither came in time.

    A call that never returns keeps its thread until the process ends; the thread does not keep the process.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = call()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in outcome:
        raise outcome["error"]
    if "result" not in outcome:
        raise RunStopped(f"{what}: no answer within {seconds:g} seconds; see its log, then resume from the last checkpoint.")
    result: Result = outcome["result"]
    return result
