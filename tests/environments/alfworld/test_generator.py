"""Generated games: plausible, apart by split, the same for the same seed, and won by their walkthroughs."""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from itertools import islice

import pytest

from seed_opd.environments.alfworld import engine
from seed_opd.environments.alfworld.families import FAMILIES, goals, split_of
from seed_opd.environments.alfworld.generator import (
    PACKAGE,
    PACKAGED,
    SPLITS,
    generate,
    generate_named,
    generate_stream,
    packaged_games,
)
from seed_opd.environments.alfworld.rooms import ALL_ROOMS, SIZES, TRAIN_ROOMS, household, room
from seed_opd.errors import UserError

POSED = [(task, scene) for task, family in FAMILIES.items() for scene in family.scenes]


@pytest.fixture(scope="module")
def package() -> dict[str, dict]:
    with tarfile.open(PACKAGE) as archive:
        return {entry.name: json.load(archive.extractfile(entry)) for entry in archive if entry.isfile()}


def objects(game: dict, of: str) -> list[str]:
    """The types of a game's objects or receptacles."""
    declared = game["pddl_problem"].split("(:init")[0]
    return [
        name.rsplit("_bar_", 1)[-1] if "Basin" in name else name.split("_bar_")[0]
        for name in re.findall(rf"(\S+) - {of}\b", declared)
    ]


def wins(game: dict) -> bool:
    """Whether the walkthrough wins with its last command and not before."""
    play = engine.load(game).new()
    play.reset()
    won = [play.won]
    for command in game["walkthrough"]:
        play.step(command)
        won.append(play.won)
    return won == [False] * len(game["walkthrough"]) + [True]


def test_package_is_whole_small_and_balanced(package: dict[str, dict]) -> None:
    assert PACKAGE.stat().st_size <= 2**20
    counts = Counter(tuple(re.match(r"generated_1\.0/(\w+)/(\w+)-", name).groups()) for name in package)
    assert counts == {(split, task): count for split, count in PACKAGED.items() for task in FAMILIES}


def test_package_is_what_the_generator_makes(package: dict[str, dict]) -> None:
    made = dict(packaged_games())
    assert made.keys() == package.keys()
    assert all(made[name] == game for name, game in package.items())


def test_every_packaged_game_is_won_by_its_walkthrough(package: dict[str, dict]) -> None:
    assert [name for name, game in package.items() if not wins(game)] == []


@pytest.mark.parametrize(("task", "scene"), POSED)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("size", SIZES)
def test_generated_games_are_won_and_of_their_size(task: str, scene: str, split: str, size: str) -> None:
    for seed in range(3):
        game = generate(seed, scene, task, size, split)
        fewest, most = SIZES[size]
        assert fewest <= len(objects(game, "receptacle")) <= most
        assert size == "full" or 6 <= len(objects(game, "object")) <= 16
        assert wins(game)


def test_things_start_only_where_they_can_be() -> None:
    contains = household().contains
    for scene in household().scenes.values():
        for name, thing in scene.things.items():
            if name not in household().kinds["fixtures"]:
                assert all(name in contains[place] for place in thing.places), name


def test_same_seed_same_game_other_seed_other_game() -> None:
    first = generate(5, "kitchen", "pick_and_place_simple")
    assert generate(5, "kitchen", "pick_and_place_simple") == first
    assert generate(6, "kitchen", "pick_and_place_simple") != first


def test_unseen_rooms_are_like_no_training_room() -> None:
    for scene in household().scenes:
        for size in SIZES:
            train = {room(scene, index, size).receptacles for index in range(TRAIN_ROOMS)}
            assert not train & {room(scene, index, size).receptacles for index in range(TRAIN_ROOMS, ALL_ROOMS)}


def test_a_goal_belongs_to_one_split_and_some_pairs_are_unseen_in_training() -> None:
    for task, scene in POSED:
        kept = Counter(
            split_of(task, thing, place, where, unseen=False)
            for where in (room(scene, index, "full") for index in range(TRAIN_ROOMS))
            for thing, place in goals(task, where)
        )
        assert kept["train"] > kept["valid_seen"] > 0, (task, scene)
    assert split_of("pick_and_place_simple", "Mug", "Desk", room("bedroom", 0, "full"), unseen=True) == "valid_unseen"


def test_the_training_stream_has_no_game_of_a_panel(package: dict[str, dict]) -> None:
    panels = {name.split("/")[2] for name in package if "/valid_" in name}
    streamed = [name.split("/")[0] for name, _ in islice(generate_stream(7), 3000)]
    assert not panels & set(streamed)
    assert set(Counter(folder.split("-")[0] for folder in streamed).values()) == {500}


def test_the_unseen_panel_has_pairs_that_training_never_asks_for(package: dict[str, dict]) -> None:
    where = room("kitchen", 0, "small")
    asked = {tuple(name.split("/")[2].split("-")[:4]) for name in package if "/valid_unseen/" in name}
    kept = {(thing, place) for task, thing, _, place in asked if split_of(task, thing, place, where, unseen=False) is None}
    streamed = {tuple(name.split("-")[1:4:2]) for name, _ in islice(generate_stream(8), 3000)}
    assert len(kept) >= 10
    assert not kept & streamed


def test_stream_depends_on_its_seed_alone() -> None:
    assert list(islice(generate_stream(1), 8)) == list(islice(generate_stream(1), 8))
    assert list(islice(generate_stream(1), 8)) != list(islice(generate_stream(2), 8))


def test_both_wordings_of_a_task_occur() -> None:
    for task, family in FAMILIES.items():
        used = set()
        for seed in range(20):
            name, game = generate_named(seed, family.scenes[0], task)
            _, thing, _, place, _ = name.split("/")[0].lower().split("-")
            lines = [f"Your task is to: {wording.format(thing=thing, place=place)}" for wording in family.wordings]
            used |= {index for index, line in enumerate(lines) if f'"{line}"' in game["grammar"]}
        assert used == {0, 1}, task


@pytest.mark.parametrize(
    "wrong", [("attic", "pick_and_place_simple"), ("kitchen", "look_at_obj_in_light"), ("kitchen", "pick_and_eat")]
)
def test_what_cannot_be_generated_is_said(wrong: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="cannot be generated"):
        generate(0, *wrong)


def test_folder_names_say_what_a_game_asks() -> None:
    name, game = generate_named(3, "bathroom", "pick_clean_then_place_in_recep")
    task, thing, _, place, _ = name.split("/")[0].split("-")
    assert task == "pick_clean_then_place_in_recep"
    assert f"{thing}Type" in game["pddl_problem"].split("(:goal")[1]
    assert f"{place}Type" in game["pddl_problem"].split("(:goal")[1]
