"""Small episodes, written by hand in the wording of the household environment."""

from collections.abc import Sequence

from hypothesis import strategies as st

from seed_opd.trajectory import Step, Task, Trajectory

ROOM = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 2, a cabinet 1, a countertop 1, "
    "a desk 1, a fridge 1, a microwave 1, a sinkbasin 1, and a shelf 1."
)


def episode(
    goal: str,
    category: str,
    turns: Sequence[tuple[str, str]],
    success: bool = True,
    invalid: Sequence[int] = (),
    room: str = ROOM,
) -> Trajectory:
    """An episode from its (action, what it led to) pairs."""
    seen = [f"{room}\n\nYour task is to: {goal}", *(text for _, text in turns)]
    steps = tuple(
        Step(seen[i], f"<think>go on</think><action>{action}</action>", action, i not in invalid, 0.0)
        for i, (action, _) in enumerate(turns)
    )
    return Trajectory(
        Task("alfworld", "train", 0), goal, category, steps, success, float(success), final_observation=seen[-1]
    )


CLEAN = episode(
    "put a clean mug in desk.",
    "clean",
    [
        ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1, and a knife 2."),
        ("go to cabinet 2", "You arrive at cabinet 2. The cabinet 2 is closed."),
        ("open cabinet 2", "You open the cabinet 2. The cabinet 2 is open. In it, you see a mug 1, and a plate 2."),
        ("take mug 1 from cabinet 2", "You pick up the mug 1 from the cabinet 2."),
        ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."),
        ("clean mug 1 with sinkbasin 1", "You clean the mug 1 using the sinkbasin 1."),
        ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 2."),
        ("move mug 1 to desk 1", "You move the mug 1 to the desk 1."),
    ],
)

LOST = episode(
    "heat some egg and put it in shelf.",
    "heat",
    [
        ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1."),
        ("go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed."),
        ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing."),
        ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a book 1."),
    ],
    success=False,
)

APPLE = ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1, and a knife 2.")
TAKE_APPLE = ("take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1.")
TO_DESK = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see nothing.")
PUT_APPLE = ("move apple 1 to desk 1", "You move the apple 1 to the desk 1.")
NOTHING = "Nothing happens."
CABINET = ("go to cabinet 2", "You arrive at cabinet 2. The cabinet 2 is closed.")
LAMP = ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a desklamp 1.")
PICK, COOL, TWO, LOOK = (
    "put a apple in desk.",
    "put a cool apple in desk.",
    "put two apple in desk.",
    "examine the apple with the desklamp.",
)

ANY_TEXT = st.lists(
    st.sampled_from([*(t for turn in (APPLE, TAKE_APPLE, PUT_APPLE, LAMP, CABINET) for t in turn), NOTHING, "", "a 1."])
)
