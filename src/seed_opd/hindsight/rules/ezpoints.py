"""Skills written by rules, for EZPoints episodes: no model, only the cards and formulas that the episode's text shows.

A success becomes the formula that did it ("first type 10, next type +, ..."). A failure becomes a correction ("do not type 7
after 10") and a formula that the solver finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from seed_opd.environments.ezpoints.cards import FACE_VALUE, FACES, TARGET, Hand, read
from seed_opd.environments.ezpoints.formula import EQUALS, NUMBERS, OPERATORS, solutions
from seed_opd.errors import UserError
from seed_opd.hindsight.rules.critical_steps import MOST
from seed_opd.trajectory import Skill, Trajectory

NAME = "rules"
Mistake = Literal["wrong_first", "wrong_next", "too_early", "no_card", "unread", "no_end"]

_AVOID: dict[Mistake, str] = {
    "wrong_first": "do not type {token} first",
    "wrong_next": "do not type {token} after {before}",
    "too_early": "do not type = before the formula makes 12",
    "no_card": "do not type {token}, no card is left for it",
    "unread": "do not answer without one token",
    "no_end": "do not forget to end with =",
}
_REASON: dict[Mistake, str] = {
    "wrong_first": "{token} was typed first",
    "wrong_next": "{token} was typed after {before}",
    "too_early": "the formula ended too early",
    "no_card": "{token} is on no card that was left",
    "unread": "the answers had no token",
    "no_end": "the formula was not ended",
}


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What an episode showed: the cards, a formula that makes 12 and, after a failure, the token at fault."""

    hand: Hand
    formula: tuple[str, ...]
    mistake: Mistake | None = None
    token: str = ""
    before: str = ""  # the token before it
    steps: tuple[int, ...] = ()  # those that typed the formula; after a failure the one at fault

    @property
    def words(self) -> dict[str, str]:
        return {"token": self.token, "before": self.before}


def write(trajectory: Trajectory) -> Skill:
    """The skill of an episode, with those of its critical steps; raises UserError when its text shows no cards."""
    known = facts(trajectory)
    workflow = f"{_faces(known.hand)}{_workflow(known.formula)}"
    if known.mistake is None:
        summary = f"{' '.join(known.formula)} makes {TARGET}, and the task was done."
        steps = tuple((index, f"type {trajectory.steps[index].action} now.") for index in known.steps)[:MOST]
        return Skill(summary, workflow, analyzer=NAME, steps=steps)
    summary = f"the task failed: {_REASON[known.mistake].format(**known.words)}."
    avoid = _AVOID[known.mistake].format(**known.words)
    wrong = tuple((index, f"do not type {known.token} now.") for index in known.steps if known.token)
    return Skill(summary, f"{avoid}: {workflow}", analyzer=NAME, steps=wrong)


def named(trajectory: Trajectory) -> dict[str, list[str]]:
    """What a good skill names: the `number`s and the `operator` of a formula that makes 12, a `face` card that counts 10,
    and the `mistake`. Raises UserError when the episode's text shows no cards."""
    known = facts(trajectory)
    return {
        "number": list(dict.fromkeys(token for token in known.formula if token in NUMBERS)),
        "operator": [token for token in known.formula if token in OPERATORS],
        "face": [FACES[card.rank] for card in known.hand if card.rank in FACES],
        "mistake": [_AVOID[known.mistake].format(**known.words).removeprefix("do not ")] if known.mistake else [],
    }


def facts(trajectory: Trajectory) -> Hindsight:
    """Read a finished episode; raises UserError when its text shows no cards, or none that make 12."""
    texts = [*(step.observation for step in trajectory.steps), trajectory.final_observation]
    states = [read(text) for text in texts]
    hand, formulas = states[0][0], [formula for _, formula in states]
    ways = solutions([card.value for card in hand], TARGET)
    if not ways:
        raise UserError(f"cards: {texts[0]!r} cannot make {TARGET}, so that nothing can be said; give another episode.")
    if trajectory.success:
        typed = [index for index, (before, after) in enumerate(pairwise(formulas)) if before != after]
        way = formulas[-1] if formulas[-1] in ways else ways[0]
        return Hindsight(hand, way, steps=(*typed, len(trajectory.steps) - 1))  # the last is the "="
    return _failed(hand, ways, formulas, [step.action for step in trajectory.steps])


def _failed(
    hand: Hand, ways: Sequence[tuple[str, ...]], formulas: Sequence[tuple[str, ...]], actions: Sequence[str]
) -> Hindsight:
    """The first token from which no solution follows; else what was done most in vain."""
    way = ways[0]  # the first that goes on from the formula so far
    for step, action in enumerate(actions):
        before, after = formulas[step], formulas[step + 1]
        if action == EQUALS and before not in ways:
            return Hindsight(hand, way, "too_early", EQUALS, steps=(step,))
        if not any(solution[: len(after)] == after for solution in ways):
            return Hindsight(hand, way, "wrong_next" if before else "wrong_first", action, "".join(before[-1:]), (step,))
        way = next(solution for solution in ways if solution[: len(after)] == after)
    in_vain = [step for step in range(len(actions)) if formulas[step] == formulas[step + 1]]
    vain = Counter(actions[step] for step in in_vain)
    if not vain or formulas[-1] in ways:
        return Hindsight(hand, way, "no_end")
    ((token, _),) = vain.most_common(1)
    first = next(step for step in in_vain if actions[step] == token)
    return Hindsight(hand, way, "no_card" if token in NUMBERS else "unread", token, steps=(first,))


def _faces(hand: Hand) -> str:
    """That a face card counts 10, where there is one."""
    return "".join(f"the {FACES[card.rank]} counts {FACE_VALUE}, " for card in hand if card.rank in FACES)


def _workflow(formula: Sequence[str]) -> str:
    """The tokens in their order."""
    marks = ["first", *["next"] * (len(formula) - 1), "then"]
    return ", ".join(f"{mark} type {token}" for mark, token in zip(marks, (*formula, EQUALS), strict=True)) + "."
