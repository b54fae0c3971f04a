from hypothesis import given
from hypothesis import strategies as st

from seed_opd.hindsight.serialise import serialise, steps_to_drop

from .episodes import CLEAN, episode

SHORT = episode("goal.", "pick", [("look", "You see."), ("dance", "Nothing happens.")], invalid=[1], room="A room.")


def test_form() -> None:
    assert serialise(SHORT) == (
        "Step 0\nObservation: A room.\n\nYour task is to: goal.\n"
        "Response: <think>go on</think><action>look</action>\nAction valid: true\n"
        "Step 1\nObservation: You see.\nResponse: <think>go on</think><action>dance</action>\nAction valid: false"
    )


def test_the_oldest_middle_is_left_out() -> None:
    text = serialise(CLEAN, dropped=3)
    shown = [line for line in text.splitlines() if line.startswith(("Step", "("))]
    assert shown == ["Step 0", "(3 steps left out)", "Step 4", "Step 5", "Step 6", "Step 7"]


@given(st.integers(0, 3000))
def test_no_more_than_needed(budget: int) -> None:
    dropped = steps_to_drop(CLEAN, lambda count: len(serialise(CLEAN, count)) <= budget)
    text = serialise(CLEAN, dropped)
    assert "Step 0\n" in text and "Step 7\n" in text
    assert len(text) <= budget or dropped == len(CLEAN.steps) - 2
    if dropped:
        assert len(serialise(CLEAN, dropped - 1)) > budget


def test_short_episodes_are_never_cut() -> None:
    assert steps_to_drop(SHORT, lambda dropped: False) == 0
