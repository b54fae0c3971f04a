"""Whatever waits, waits for a bounded time."""

from __future__ import annotations

import threading

import pytest

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.deadline import within


def test_a_result_comes_through():
    assert within(10, "adding", lambda: 1 + 1) == 2
    assert within(10, "nothing", lambda: None) is None


def fail(error: Exception) -> None:
    raise error


def test_a_failure_is_named():
    with pytest.raises(RunStopped, match="the engine: KeyError: 'gone'; see its log") as stopped:
        within(10, "the engine", lambda: fail(KeyError("gone")))
    assert isinstance(stopped.value.__cause__, KeyError)


@pytest.mark.parametrize("kind", [RunStopped, UserError])
def test_what_is_a_sentence_already_stays_one(kind):
    with pytest.raises(kind, match=r"^as it was$"):
        within(10, "the engine", lambda: fail(kind("as it was")))


def test_what_hangs_is_named_and_left_behind():
    let_go = threading.Event()
    with pytest.raises(RunStopped, match=r"the engine: no answer within 0\.05 seconds"):
        within(0.05, "the engine", let_go.wait)
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "the engine"] == [
        True
    ]  # nothing waits for it
    let_go.set()
