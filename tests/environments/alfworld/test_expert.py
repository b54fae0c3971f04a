"""The scripted players win what they are meant to win, and see no more than they are meant to see."""

from __future__ import annotations

import json
import os
import random
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from seed_opd.environments.alfworld import engine
from seed_opd.environments.alfworld.expert import Expert, InformedExpert, SearchingExpert, understand
from seed_opd.environments.alfworld.families import FAMILIES
from seed_opd.environments.alfworld.generator import PACKAGE, generate, generate_stream
from seed_opd.errors import UserError

LIMIT = 50


def begin(data: dict) -> tuple[engine.Play, str, str]:
    """A live game, its task and its first observation."""
    play = engine.load(data).new()
    room, _, goal = play.reset().partition("Your task is to: ")
    return play, goal.strip(), room


def finish(play: engine.Play, expert: Expert, observation: str, limit: int = LIMIT) -> list[str]:
    """Let an expert play until it wins or the limit is reached; the commands that it gave."""
    commands: list[str] = []
    while not play.won and len(commands) < limit:
        admissible = [command for command in play.admissible if command != "help"]
        commands.append(expert.act(observation, admissible))
        assert commands[-1] in admissible
        observation = play.step(commands[-1])
    return commands


def search(data: dict, expert: SearchingExpert) -> tuple[bool, list[str]]:
    play, goal, room = begin(data)
    expert.reset(goal, room)
    commands = finish(play, expert, room)
    return play.won, commands


def inform(data: dict) -> tuple[bool, list[str]]:
    play, goal, room = begin(data)
    expert = InformedExpert(play)
    expert.reset(goal, room)
    commands = finish(play, expert, room)
    return play.won, commands


def archived(path: Path, split: str) -> Iterator[tuple[str, dict]]:
    with tarfile.open(path) as archive:
        for entry in archive:
            if f"/{split}/" in entry.name and entry.name.endswith("game.tw-pddl"):
                yield entry.name, json.load(archive.extractfile(entry))


@pytest.fixture(scope="module")
def originals() -> Path:
    folder = os.environ.get("SEED_OPD_DATA")
    if not folder:
        pytest.skip("the original games are not here; set SEED_OPD_DATA")
    return next((Path(folder) / "alfworld").glob("*.tar.xz"))


# ---- understanding


@pytest.mark.parametrize("family", FAMILIES)
def test_every_wording_is_understood(family: str) -> None:
    for wording in FAMILIES[family].wordings:
        wish = understand("Your task is to: " + wording.format(thing="creditcard", place="sidetable"))
        assert (wish.family, wish.thing, wish.place) == (family, "creditcard", "sidetable")


@pytest.mark.parametrize("goal", ["", "make tea.", "put a clean mug fridge.", "put a dirty mug in fridge."])
def test_other_tasks_are_refused(goal: str) -> None:
    with pytest.raises(UserError, match="not one of the six"):
        understand(goal)


# ---- searching


@pytest.mark.parametrize("size", ["small", "full"])
def test_searching_wins_generated_games(size: str) -> None:
    games = [game for _, game in islice(generate_stream(11, size), 120)]
    results = [search(game, SearchingExpert()) for game in games]
    assert sum(won for won, _ in results) == len(games)


@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen"])
def test_both_win_the_packaged_panels(split: str) -> None:
    for name, game in archived(PACKAGE, split):
        found, read = search(game, SearchingExpert()), inform(game)
        assert found[0] and read[0], name
        assert len(read[1]) <= len(game["walkthrough"]) + 1, name


def test_searching_plays_the_same_unless_it_is_given_random_numbers() -> None:
    game = generate(4, "kitchen", "pick_heat_then_place_in_recep", "full")
    assert search(game, SearchingExpert()) == search(game, SearchingExpert())
    varied = {tuple(search(game, SearchingExpert(random.Random(seed)))[1]) for seed in range(8)}
    assert len(varied) > 3
    assert search(game, SearchingExpert(random.Random(1))) == search(game, SearchingExpert(random.Random(1)))


def test_varied_search_still_wins() -> None:
    rng = random.Random(3)
    results = [search(game, SearchingExpert(rng))[0] for _, game in islice(generate_stream(5), 60)]
    assert sum(results) >= 58


# ---- mistakes


def test_mistakes_make_play_longer_and_sometimes_fail() -> None:
    games = [game for _, game in islice(generate_stream(23), 60)]
    steps, wins = [], []
    for mistakes in (0.0, 0.3, 0.9):
        rng = random.Random(0)
        results = [search(game, SearchingExpert(rng, mistakes)) for game in games]
        wins.append(sum(won for won, _ in results))
        steps.append(sum(len(commands) for _, commands in results))
    assert wins[0] >= wins[1] >= wins[2]
    assert wins[1] > wins[2] > 0
    assert steps[0] < 0.8 * steps[1] < 0.8 * steps[2]


def test_mistakes_need_random_numbers() -> None:
    with pytest.raises(UserError, match="rng"):
        SearchingExpert(mistakes=0.1)


# ---- informed


def test_informed_takes_over_from_any_point() -> None:
    rng = random.Random(2)
    for _, game in islice(generate_stream(31, "full"), 60):
        play, goal, observation = begin(game)
        expert = InformedExpert(play)
        expert.reset(goal, observation)
        for _ in range(rng.randrange(30)):
            if not play.won:
                observation = play.step(rng.choice(play.admissible))
        finish(play, expert, observation, 25)
        assert play.won, goal


# ---- originals


@pytest.mark.parametrize(("split", "games"), [("valid_seen", 140), ("valid_unseen", 134)])
def test_originals_are_won(originals: Path, split: str, games: int) -> None:
    results = [(search(game, SearchingExpert()), inform(game)) for _, game in archived(originals, split)]
    assert len(results) == games
    assert sum(found[0] for found, _ in results) >= 0.95 * games
    assert all(read[0] for _, read in results)
