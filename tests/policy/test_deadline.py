"""Whatever waits, waits for a bounded time."""

from __future__ import annotations

import threading

import pytest

from seed_opd.errors import RunStopped
from seed_opd.policy.deadline import within


def test_a_result_and_an_error_come_through():
    assert within(10, "adding", lambda: 1 + 1) == 2
    assert within(10, "nothing", lambda: None) is None
    with pytest.raises(KeyError, match="gone"):
        within(10, "failing", lambda: {}["gone"])


def test_what_hangs_is_named_and_left_behind():
    let_go = threading.Event()
    with pytest.raises(RunStopped, match=r"the engine: no answer within 0\.05 seconds"):
        within(0.05, "the engine", let_go.wait)
    let_go.set()
