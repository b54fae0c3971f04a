"""The rules about EZPoints: what they read from an episode, and that a player who follows their words wins."""

from __future__ import annotations

import random
import re

import pytest

from seed_opd.environments.ezpoints import EzpointsEnvironment
from seed_opd.environments.ezpoints.cards import Card, Hand, deal
from seed_opd.environments.ezpoints.expert import Expert, respond
from seed_opd.environments.ezpoints.formula import TOKENS
from seed_opd.errors import UserError
from seed_opd.hindsight.library import Library
from seed_opd.hindsight.probe import score
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.rules.ezpoints import named, write
from seed_opd.trajectory import Step, Task, Trajectory

TASK = Task("ezpoints", "train", 0)
SIX_TWO = (Card(6, "C"), Card(2, "H"))
KING_TWO = (Card(2, "H"), Card(13, "S"))


def episode(hand: Hand, tokens: list[str]) -> Trajectory:
    """What a player types, cut where the game ends; "" is an answer without a token."""
    environment, steps, done, success = EzpointsEnvironment(), [], False, False
    text = environment.start(hand).text
    for token in tokens:
        outcome = environment.step(token)
        steps.append(Step(text, respond("go", token), token, bool(token), outcome.reward, TOKENS))
        text, done, success = outcome.text, outcome.done, outcome.success
        if done:
            break
    return Trajectory(TASK, "make 12 of both cards.", "sum", tuple(steps), success, float(success), text)


def expert_episode(hand: Hand, expert: Expert, limit: int = 8) -> Trajectory:
    environment, tokens, done = EzpointsEnvironment(), [], False
    environment.start(hand)
    while len(tokens) < limit and not done:
        tokens.append(expert.act(hand, environment.formula))
        done = environment.step(tokens[-1]).done
    return episode(hand, tokens)


# ---- what is written


def test_a_success_becomes_its_formula() -> None:
    skill = write(episode(SIX_TWO, ["2", "*", "6", "="]))
    assert skill.skill == "first type 2, next type *, next type 6, then type =."
    assert skill.summary == "2 * 6 makes 12, and the task was done."
    assert skill.steps == ((0, "type 2 now."), (1, "type * now."), (2, "type 6 now."), (3, "type = now."))


def test_what_a_face_counts_is_said() -> None:
    skill = write(episode(KING_TWO, ["10", "+", "2", "="]))
    assert skill.skill == "the king counts 10, first type 10, next type +, next type 2, then type =."
    assert named(episode(KING_TWO, ["2", "+", "10", "="]))["face"] == ["king"]


def test_a_roundabout_formula_becomes_a_straight_one() -> None:
    assert write(episode(SIX_TWO, ["+", "2", "*", "6", "="])).skill.startswith("first type 6, next type *")


@pytest.mark.parametrize(
    ("tokens", "skill"),
    [
        ("6 + 2 =", "do not type + after 6: first type 6, next type *, next type 2, then type =."),
        ("2 + 6 =", "do not type + after 2: first type 2, next type *, next type 6, then type =."),
        ("* 2", "do not type * first: first type 6, next type *, next type 2, then type =."),
        ("2 =", "do not type = before the formula makes 12: first type 2, next type *, next type 6, then type =."),
        ("7 7 6 9", "do not type 7, no card is left for it: first type 6, next type *, next type 2, then type =."),
        ("2 * 6 2", "do not forget to end with =: first type 2, next type *, next type 6, then type =."),
    ],
)
def test_a_failure_becomes_what_went_wrong_first_and_a_formula(tokens: str, skill: str) -> None:
    assert write(episode(SIX_TWO, tokens.split())).skill == skill


def test_answers_without_a_token_are_told() -> None:
    skill = write(episode(SIX_TWO, ["", "6", "", ""]))
    assert skill.skill.startswith("do not answer without one token: first type 6,")


@pytest.mark.parametrize(
    ("tokens", "steps"),
    [
        (["2", "*", "2", "2", "2", "2"], ((2, "do not type 2 now."),)),
        (["", "6", "", ""], ()),
        (["2", "6", "="], ((1, "do not type 6 now."),)),
        (["2", "2", "*", "", "6", "="], ((0, "type 2 now."), (2, "type * now."), (4, "type 6 now."), (5, "type = now."))),
    ],
)
def test_the_steps_told_are_those_that_did_it(tokens: list[str], steps: tuple[tuple[int, str], ...]) -> None:
    assert write(episode(SIX_TWO, tokens)).steps == steps


def test_cards_that_are_not_there_are_refused() -> None:
    lost = Trajectory(TASK, "make 12.", "sum", (Step("two cards", "", "6", True, 0.0),), False, 0.0, "")
    [skill] = RulesAnalyzer().analyze([lost])
    assert skill.status == "error" and "cards" in skill.raw
    with pytest.raises(UserError, match="cannot make 12"):
        write(episode((Card(9, "C"), Card(9, "H")), ["9"]))


# ---- what it is worth


def test_who_follows_the_words_wins_and_the_rules_agree_with_themselves() -> None:
    kinds = set()
    for seed in range(150):
        hand = deal(seed)
        trajectory = expert_episode(hand, Expert(random.Random(seed), (0.0, 0.3, 0.8)[seed % 3]))
        [skill] = RulesAnalyzer().analyze([trajectory])
        tokens = re.findall(r"(?:first|next|then) type (\S+?)[,.]", skill.skill)
        assert episode(hand, tokens).success and len(tokens) == 4, skill.skill
        assert score(skill, trajectory)["mean"] == 1.0
        kinds.add(trajectory.success)
    assert kinds == {True, False}


def test_every_category_has_its_text_in_the_library() -> None:
    texts = [Library.of("ezpoints").skill(category) for category in EzpointsEnvironment.categories]
    assert len(set(texts)) == 3 and all(len(text) < 400 for text in texts)
