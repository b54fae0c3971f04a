"""EZPoints as an environment: what is dealt, rewards by hand, limits, replay, wrong use."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments import data_source, make
from seed_opd.environments.ezpoints import EzpointsEnvironment
from seed_opd.environments.ezpoints.cards import TARGET, Card, deal, read, tell
from seed_opd.environments.ezpoints.expert import Expert, thought
from seed_opd.environments.ezpoints.formula import NUMBERS, TOKENS, solutions
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

KING, TWO, SIX, OTHER_SIX = Card(13, "S"), Card(2, "H"), Card(6, "C"), Card(6, "D")
GOOD, BAD, OPEN = (10.0, True, True), (0.0, True, False), (0.0, False, False)


# ---- cards


def test_the_pairs_that_are_dealt_are_those_of_the_original() -> None:
    hands = [deal(seed) for seed in range(20000)]
    pairs = {tuple(sorted(card.value for card in hand)) for hand in hands}
    assert pairs == {(2, 10), (3, 9), (4, 8), (5, 7), (6, 6), (2, 6), (3, 4)}
    assert all(sum(card.rank > 10 for card in hand) <= 1 and min(card.rank for card in hand) >= 2 for hand in hands)
    faces = sum(any(card.rank > 10 for card in hand) for hand in hands) / len(hands)
    assert faces == pytest.approx(3 / 12, abs=0.01)
    products = sum(sum(card.value for card in hand) != TARGET for hand in hands) / len(hands)
    assert products == pytest.approx(4 / 24, abs=0.01)  # 2, 3, 4 and 6 (half of the time) of twelve ranks
    suits = Counter(card.suit for hand in hands for card in hand)
    assert len(suits) == 4 and min(suits.values()) > 9500


def test_a_seed_deals_what_the_original_deals_for_it() -> None:
    """Its draws, in its order, on Python's global generator."""
    for seed in range(500):
        random.seed(seed)
        rank, suit = random.randint(2, 13), random.choice("HSDC")
        value = min(rank, 10)
        times = value in (1, 2, 3, 4, 6) and random.random() <= 0.5
        cards = [Card(rank, suit), Card(12 // value if times else 12 - value, random.choice("HSDC"))]
        assert deal(seed) == tuple(cards[::-1] if random.random() <= 0.5 else cards)


@given(st.integers(0, 2**40))
def test_every_hand_can_be_solved(seed: int) -> None:
    environment = EzpointsEnvironment()
    environment.start(deal(seed))
    formula = solutions([card.value for card in environment.hand], TARGET)[0]
    outcomes = [environment.step(token) for token in (*formula, "=")]
    assert [outcome.success for outcome in outcomes] == [False, False, False, True] and outcomes[-1].reward == 10


def test_cards_are_written_out() -> None:
    environment = EzpointsEnvironment()
    first = environment.start((KING, TWO))
    assert first.text == "Cards: king of spades, 2 of hearts\nFormula:" and first.actions == TOKENS
    assert environment.step("2").text == "Cards: king of spades, 2 of hearts\nFormula: 2"
    assert "10 of clubs" in environment.start((Card(10, "C"), Card(2, "C"))).text


@given(st.integers(0, 2**40), st.lists(st.sampled_from(TOKENS), max_size=6))
def test_a_state_is_read_back_from_its_text(seed: int, formula: list[str]) -> None:
    assert read(tell(deal(seed), formula)) == (deal(seed), tuple(formula))


@pytest.mark.parametrize(
    "text", ["", "Cards: 6 of clubs\nFormula:", "Cards: 1 of clubs, 2 of hearts\nFormula:", "Formula: 6"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="EZPoints"):
        read(text)


# ---- rewards


def played(hand: tuple[Card, Card], tokens: str) -> tuple[float, bool, bool]:
    """Reward of all steps, done and success at last."""
    environment = EzpointsEnvironment()
    environment.start(hand)
    outcomes = [environment.step(token) for token in tokens.split(" ")]
    return sum(outcome.reward for outcome in outcomes), outcomes[-1].done, outcomes[-1].success


@pytest.mark.parametrize(
    ("hand", "tokens", "end"),
    [
        ((KING, TWO), "10 + 2 =", GOOD),  # a king counts as 10
        ((KING, TWO), "2 + 10 =", GOOD),
        ((SIX, OTHER_SIX), "6 + 6 =", GOOD),  # each card once, two of a kind twice
        ((SIX, TWO), "6 * 2 =", GOOD),
        ((SIX, TWO), "6 3 * dance 2 =", GOOD),  # what cannot be typed changes nothing
        ((SIX, TWO), "6 * + 2 =", GOOD),
        ((SIX, TWO), "6 + 2 =", BAD),
        ((SIX, OTHER_SIX), "6 + 6 + =", BAD),  # operators are never refused
        ((SIX, OTHER_SIX), "6 =", BAD),
        ((SIX, TWO), "=", BAD),
        ((SIX, TWO), "6 2 =", BAD),
        ((SIX, TWO), "6 * 2", OPEN),
        ((KING, TWO), "+ + + + + + 10 2 =", OPEN),  # six tokens are the most: not even "=" is taken any more
        ((SIX, TWO), "+ + + 6 * 2 =", OPEN),
        ((SIX, TWO), "+ + 6 * 2 =", GOOD),
    ],
)
def test_rewards_by_hand(hand: tuple[Card, Card], tokens: str, end: tuple[float, bool, bool]) -> None:
    assert played(hand, tokens) == end


@given(st.integers(0, 1000), st.lists(st.sampled_from([*TOKENS, "", "x"]), max_size=12))
def test_a_formula_never_uses_a_card_twice_and_an_end_is_the_end(seed: int, tokens: list[str]) -> None:
    environment = EzpointsEnvironment()
    environment.start(deal(seed))
    last, total = None, 0.0
    for token in tokens:
        outcome = environment.step(token)
        numbers = Counter(token for token in environment.formula if token in NUMBERS)
        assert not numbers - Counter(str(card.value) for card in environment.hand) and len(environment.formula) <= 6
        if last is not None and last.done:
            assert (outcome.text, outcome.reward, outcome.success) == (last.text, 0.0, last.success)
        last, total = outcome, total + outcome.reward
    assert total in (0.0, 10.0) and (total == 10.0) == (last is not None and last.success)


# ---- tasks


def test_categories_say_what_a_hand_asks_for() -> None:
    environment = EzpointsEnvironment()
    seen = set()
    for task in environment.tasks("valid")[:200]:
        hand, kind = environment.hand_of(task), environment.category(task)
        seen.add(kind)
        assert (kind == "face") == any(card.rank > 10 for card in hand)
        if kind != "face":
            assert kind == ("sum" if sum(card.value for card in hand) == 12 else "product")
    assert seen == set(environment.categories)


def test_an_episode_is_replayed_from_its_task_and_its_actions_pictures_too() -> None:
    environment, fresh = EzpointsEnvironment(), make("ezpoints")
    for task in environment.tasks("train")[:10]:
        rng = random.Random(task.index)
        environment.reset(task), fresh.reset(task)
        for action in rng.choices([*TOKENS, "x"], k=8):
            assert environment.step(action) == fresh.step(action)
            picture = fresh.picture()
            assert picture is not None and (environment.picture() == picture).all()


def test_a_reset_forgets_the_last_episode() -> None:
    environment = EzpointsEnvironment()
    tasks = environment.tasks("train")
    first = environment.reset(tasks[0])
    environment.step("+"), environment.step("=")
    assert environment.reset(tasks[0]) == first and not environment.step("+").done


def test_wrong_use_is_one_clear_sentence() -> None:
    with pytest.raises(UserError, match="call reset first"):
        EzpointsEnvironment().step("+")
    with pytest.raises(UserError, match="train, valid"):
        EzpointsEnvironment().tasks("test")
    with pytest.raises(UserError, match="does not exist"):
        EzpointsEnvironment().reset(Task("ezpoints", "train", 3))
    with pytest.raises(UserError, match=r"^environment.options.view: "):
        EzpointsEnvironment(view="words")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"^environment.options.size: "):
        EzpointsEnvironment(size=10)
    assert "seeds" in " ".join(data_source("ezpoints"))
    assert EzpointsEnvironment(view="image").max_steps == 8


# ---- the expert


def wins(expert: Expert) -> int:
    environment, won = EzpointsEnvironment(), 0
    for task in environment.tasks("train")[:60]:
        environment.reset(task)
        for _ in range(environment.max_steps):
            outcome = environment.step(expert.act(environment.hand, environment.formula))
            if outcome.done:
                won += outcome.success
                break
    return won


def test_the_expert_wins_and_mistakes_cost_wins() -> None:
    won = [wins(Expert(random.Random(0), mistakes)) for mistakes in (0.0, 0.3, 0.8)]
    assert wins(Expert()) == won[0] == 60 > won[1] > won[2]
    assert wins(Expert(random.Random(4), 0.3)) == wins(Expert(random.Random(4), 0.3))
    with pytest.raises(UserError, match="rng"):
        Expert(mistakes=0.2)
    with pytest.raises(UserError, match="probability"):
        Expert(random.Random(0), 2)


def test_the_expert_takes_over_and_ends_what_is_beyond_help() -> None:
    assert Expert().act((SIX, TWO), ("6", "*")) == "2"
    assert Expert().act((SIX, TWO), ("2",)) == "*"
    assert Expert().act((SIX, TWO), ("6", "+")) == "="
    assert {Expert(random.Random(seed)).act((SIX, TWO), ()) for seed in range(20)} == {"6", "2"}


def test_thoughts_are_three_or_four_words() -> None:
    said = [thought((SIX, TWO), formula, token) for formula, token in (((), "6"), (("6",), "*"), (("6", "*", "2"), "="))]
    assert all(3 <= len(text.split()) <= 4 for text in said) and len(set(said)) == 3
