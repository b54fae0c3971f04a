"""The engine on a domain of its own: what is admissible, what is said, when it is won."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from vault import DOMAIN, GRAMMAR, PROBLEM, WALKTHROUGH, WITHOUT_LIGHT, game

from seed_opd.environments.alfworld.engine import NOTHING_HAPPENS, Play, load
from seed_opd.errors import UserError


def play(*commands: str) -> Play:
    live = load(game()).new()
    for command in commands:
        assert live.step(command) != NOTHING_HAPPENS, command
    return live


def test_every_state_is_as_the_original_engine_answered() -> None:
    """The file holds what TextWorld's PddlEnv with ALFWorld's names answered for this game (tests/oracle/README.md)."""
    shared = load(game(grammar=WITHOUT_LIGHT))
    for episode in json.loads(Path(__file__).with_name("vault_original.json").read_text()):
        live = shared.new()
        for expected in episode:
            command = expected["command"]
            said = live.reset() if command is None else live.step(command)
            answer = {"command": command, "feedback": said, "admissible": list(live.admissible)}
            assert answer | {"won": live.won, "moves": live.moves} == expected


def test_first_observation_is_said_by_the_grammar() -> None:
    live = load(game()).new()
    assert live.reset() == "-= Vault =-\n\nlobby  holds a key 1.\n\nYour task is to: leave a thing in the vault."


def test_admissible_commands_are_sorted_and_leave_out_what_changes_nothing() -> None:
    assert play().admissible == ("grab key 1", "help", "nap", "peer", "press", "walk to cellar")


def test_a_walkthrough_wins_at_its_last_step_and_not_before() -> None:
    live = play(*WALKTHROUGH[:-1])
    assert (live.won, live.score) == (False, 0)
    live.step(WALKTHROUGH[-1])
    assert (live.won, live.score, live.moves) == (True, 1, len(WALKTHROUGH))


def test_play_goes_on_after_the_goal_and_the_goal_may_be_lost() -> None:
    live = play(*WALKTHROUGH)
    live.step("grab coin 1")
    assert not live.won


def test_a_disjunction_lets_one_walk_a_door_both_ways() -> None:
    assert "walk to lobby" in play("walk to cellar").admissible


def test_an_existential_precondition_needs_the_key_in_hand_and_the_door_nearby() -> None:
    assert "unlock vault" not in play("grab key 1").admissible
    assert "unlock vault" not in play("walk to cellar").admissible
    assert "unlock vault" in play("grab key 1", "walk to cellar").admissible


def test_what_is_not_admissible_changes_nothing_and_does_not_count() -> None:
    live = play("walk to cellar")
    before = sorted(live.facts())
    for command in ("walk to vault", "Walk to lobby", "walk  to lobby", "rest", "", "{t.name}", "#scene#"):
        assert live.step(command) == NOTHING_HAPPENS
    assert (live.moves, sorted(live.facts())) == (1, before)


def test_outer_space_around_a_command_is_ignored() -> None:
    assert play().step("\u00a0 walk to cellar\n") == "cellar  holds a coin 2& a coin 1."


def test_lists_are_joined_by_the_separators_of_the_grammar_in_the_order_of_the_identifiers() -> None:
    live = play("grab key 1", "walk to cellar")
    live.step("drop key 1")
    assert live.step("press").startswith("Snap")
    live.step("walk to lobby")
    assert live.step("walk to cellar") == "cellar  holds a coin 2, a coin 1& a key 1, and it is bright."


def test_no_two_variables_of_a_text_stand_for_the_same_object() -> None:
    loop = PROBLEM.replace("(door Lobby Cellar)", "(door Lobby Cellar) (door Lobby Lobby)")
    assert load(game(pddl_problem=loop)).new().step("peer") == "Next door: cellar."
    assert play("walk to cellar").step("peer") == "Next door: vault."


def test_what_an_action_both_adds_and_removes_stays_true() -> None:
    assert play().step("nap") == "You nap. lobby  holds a key 1."


def test_conditional_effects_read_the_state_before_the_action() -> None:
    live = play()
    said = [live.step("press") for _ in range(3)]
    assert said == ["Snap, and it is bright.", "Snap, and it is dark again.", "Snap, and it is bright."]
    assert live.holds("lit", "lobby")


def test_a_fact_is_false_for_the_texts_only_once_an_action_made_it_so() -> None:
    live = play()
    assert "dark" not in live.step("walk to cellar")


def test_attributes_and_or_are_evaluated() -> None:
    assert play().step("grab key 1") == "Got the key 1. There is nothing here."


def test_space_at_the_start_of_a_text_is_dropped() -> None:
    assert play().step("help") == "Try things."


def test_of_two_actions_with_one_command_the_first_is_taken() -> None:
    live = load(game(grammar=GRAMMAR.replace("grab {t}", "grab something"))).new()
    live.step("walk to cellar")
    assert live.admissible.count("grab something") == 1
    live.step("grab something")
    assert live.holds("has", "coin_bar_1")


def test_episodes_of_one_game_do_not_see_each_other() -> None:
    shared = load(game())
    first, second = shared.new(), shared.new()
    first.step("grab key 1")
    assert second.admissible == shared.new().admissible
    branch = first.copy()
    branch.step("walk to cellar")
    assert first.holds("in", "lobby") and branch.holds("in", "cellar")
    assert "drop key 1" in branch.admissible


def test_random_play_is_the_same_in_a_fresh_game_after_a_reset_and_from_a_copy() -> None:
    used = load(game()).new()
    for seed in range(20):
        used.reset()
        fresh = load(game()).new()
        rng = random.Random(seed)
        for _ in range(30):
            assert used.admissible == fresh.admissible == used.copy().admissible
            assert used.won == fresh.won
            command = rng.choice([*fresh.admissible, "rest"])
            assert used.step(command) == fresh.step(command)
        assert sorted(used.facts()) == sorted(fresh.facts())


@pytest.mark.parametrize("missing", ["pddl_domain", "pddl_problem", "grammar"])
def test_a_missing_part_is_named(missing: str) -> None:
    data = game()
    del data[missing]
    with pytest.raises(UserError, match=missing):
        load(data)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"pddl_domain": DOMAIN.replace("(in ?r) :effect (in ?r)", "(forall (?x - room) (in ?x)) :effect (in ?r)")},
            "universal",
        ),
        ({"pddl_domain": DOMAIN + ")"}, "parentheses"),
        ({"pddl_problem": PROBLEM.replace("(:goal", "(:aim")}, "goal"),
        ({"pddl_problem": "(" * 5000}, "parentheses"),
        ({"grammar": GRAMMAR.replace("action rest", "action sleep")}, "rest"),
        ({"grammar": GRAMMAR.replace('template :: "rest"', "template :: rest")}, "rest"),
        ({"grammar": GRAMMAR + "actions of all kinds"}, "line"),
        ({"grammar": GRAMMAR.replace("t.name or t.id", "t.__class__")}, "__class__"),
        ({"grammar": GRAMMAR.replace("t.name or t.id", "__import__('os')")}, "not understood"),
        ({"grammar": GRAMMAR.replace('"intro"', '"opening"')}, "intro"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_reason(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        load(game(**changes))
