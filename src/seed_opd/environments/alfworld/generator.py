"""Household games of our own, in the file format of ALFWorld's games: plausible rooms, six task families, three splits.

A goal is a task family, a type of object and a type of place. Which split a goal belongs to in which room is a pure function
(`split_of`), so a stream of training games never holds a panel's game: `valid_seen` has the training rooms with goals that
training never poses there, `valid_unseen` has other rooms and also pairs of object and place that training never poses.

Run as a module it writes the games that come with the package.
"""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from seed_opd.environments.alfworld.families import FAMILIES, LAMP, Goal, goals, split_of
from seed_opd.environments.alfworld.rooms import ALL_ROOMS, SIZES, TRAIN_ROOMS, Room, household, room
from seed_opd.errors import UserError

SPLITS = ("train", "valid_seen", "valid_unseen")
PACKAGED = {"train": 120, "valid_seen": 20, "valid_unseen": 20}  # games of each family in the package
PACKAGE = Path(__file__).with_name("games.tar.xz")


@cache
def _choices(scene: str, family: str, size: str, split: str) -> tuple[tuple[Room, dict[str, tuple[str, ...]]], ...]:
    """The rooms of a split in which a family can be posed, each with the things that may be asked for by place."""
    unseen = split == "valid_unseen"
    choices = []
    for index in range(TRAIN_ROOMS, ALL_ROOMS) if unseen else range(TRAIN_ROOMS):
        where = room(scene, index, size)
        by_place: dict[str, tuple[str, ...]] = {}
        for thing, place in goals(family, where):
            if split_of(family, thing, place, where, unseen) == split:
                by_place[place] = (*by_place.get(place, ()), thing)
        if by_place:
            choices.append((where, by_place))
    return tuple(choices)


# ---- one game


@dataclass(frozen=True)
class Receptacle:
    """A receptacle of a game: type, number among its type, identifier and location in the problem."""

    kind: str
    number: int
    id: str
    location: str

    @property
    def name(self) -> str:
        return f"{self.kind.lower()} {self.number}"


@dataclass(frozen=True)
class Item:
    """A thing in a game: type, number among its type, identifier, and the receptacle that it starts in."""

    kind: str
    number: int
    id: str
    at: Receptacle

    @property
    def name(self) -> str:
        return f"{self.kind.lower()} {self.number}"


def generate(seed: int, scene: str, task: str, size: str = "small", split: str = "train") -> dict[str, Any]:
    """Make one game, always the same for the same arguments: grammar, pddl_domain, pddl_problem, solvable, walkthrough.

    `scene` is a name in rooms.yaml, `task` a key of FAMILIES. Raises UserError for an unknown name, or for a task that is
    not posed in that scene.
    """
    return generate_named(seed, scene, task, size, split)[1]


def generate_named(
    seed: int, scene: str, task: str, size: str = "small", split: str = "train"
) -> tuple[str, dict[str, Any]]:
    """A game as `generate` makes it, with the folder it stands in: <task>-<object>-None-<place>-<room>/<trial>."""
    _check(scene, task, size, split)
    rng = random.Random(f"game/{split}/{size}/{scene}/{task}/{seed}")
    where, by_place = rng.choice(_choices(scene, task, size, split))
    place = rng.choice(list(by_place))
    thing = rng.choice(by_place[place])
    goal = Goal(task, thing, place, rng.choice(FAMILIES[task].wordings).format(thing=thing.lower(), place=place.lower()))
    receptacles = _receptacles(where)
    items = _place(_inventory(goal, where, size, rng), goal, where, rng)
    game = {
        "grammar": _text("grammar.twl2").replace("$TASK$", goal.text),
        "pddl_domain": _text("domain.pddl"),
        "pddl_problem": _problem(goal, receptacles, items),
        "solvable": True,
        "walkthrough": _walkthrough(goal, receptacles, items),
    }
    return f"{task}-{thing}-None-{place}-{where.number}/trial_{seed:010d}", game


def generate_stream(seed: int, size: str = "small") -> Iterator[tuple[str, dict[str, Any]]]:
    """Training games without end, as (folder, game); families in turn, scenes and rooms at random."""
    rng = random.Random(f"stream/{seed}")
    while True:
        for task, family in FAMILIES.items():
            yield generate_named(rng.randrange(2**32), rng.choice(family.scenes), task, size, "train")


def _check(scene: str, task: str, size: str, split: str) -> None:
    for field, value, known in (
        ("task", task, FAMILIES),
        ("scene", scene, FAMILIES[task].scenes if task in FAMILIES else ()),
        ("size", size, SIZES),
        ("split", split, SPLITS),
    ):
        if value not in known:
            raise UserError(f"{field} {value!r} cannot be generated here; choose one of: {', '.join(known)}.")


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _receptacles(where: Room) -> tuple[Receptacle, ...]:
    """The receptacles of a room, each at a location of its own (location 0 is the middle of the room)."""
    made: list[Receptacle] = []
    for kind, count in where.receptacles:
        for number in range(1, count + 1):
            index = len(made) + 1
            made.append(Receptacle(kind, number, _identifier(kind, number, index), f"loc_bar_{index}_bar_0_bar_0_bar_0"))
    return tuple(made)


def _identifier(kind: str, number: int, index: int) -> str:
    """An identifier in the form of the originals, which carry coordinates; engines number a type's copies from the last."""
    name, part = (kind.removesuffix("Basin"), f"_bar_{kind}") if kind.endswith("Basin") else (kind, "")
    return f"{name}_bar__plus_{99 - number:02d}_dot_00_bar__plus_00_dot_00_bar__plus_{index:02d}_dot_00{part}"


def _inventory(goal: Goal, where: Room, size: str, rng: random.Random) -> list[tuple[str, int]]:
    """The types of things in a game with their counts: the goal's first, then others as often as the scene has them."""
    things = household().scenes[where.scene].things
    most_copies, limit = (2, rng.randint(10, 16)) if size == "small" else (3, 99)
    wanted = FAMILIES[goal.family].copies
    chosen = {goal.thing: rng.randint(wanted, max(wanted, most_copies))}
    if goal.place == LAMP:
        chosen[LAMP] = 1
    others = [name for name, thing in things.items() if name not in chosen and any(place in where for place in thing.places)]
    rng.shuffle(others)
    for name in others:
        expected = things[name].mean * rng.uniform(0.5, 1.5)
        count = min(int(expected + rng.random()), most_copies)
        if count and sum(chosen.values()) + count <= limit:
            chosen[name] = count
    return list(chosen.items())


def _place(inventory: list[tuple[str, int]], goal: Goal, where: Room, rng: random.Random) -> list[Item]:
    """Put every thing where such things are usually found; nothing that only needs moving starts at its goal."""
    things = household().scenes[where.scene].things
    by_kind: dict[str, list[Receptacle]] = {}
    for receptacle in _receptacles(where):
        by_kind.setdefault(receptacle.kind, []).append(receptacle)
    items: list[Item] = []
    for kind, count in inventory:
        avoided = goal.place if kind == goal.thing and not FAMILIES[goal.family].state else None
        weights = {place: weight for place, weight in things[kind].places.items() if place in by_kind and place != avoided}
        for number in range(1, count + 1):
            place = rng.choices(list(weights), list(weights.values()))[0]
            items.append(Item(kind, number, _identifier(kind, number, len(items) + 1), rng.choice(by_kind[place])))
    return items


# ---- the problem in PDDL

START = "loc_bar_0_bar_0_bar_0_bar_0"
DOMAIN_RTYPES, DOMAIN_OTYPES = (
    ("SinkBasin", "Microwave", "Fridge"),
    ("Sink", "Knife", "ButterKnife"),
)  # the domain names these

GOAL_PLACE = """(exists (?r - receptacle) (exists (?o - object) (and
  {extra}(objectType ?o {thing}Type) (receptacleType ?r {place}Type) (inReceptacle ?o ?r))))"""
GOAL_TWO = """(exists (?r - receptacle) (exists (?o1 - object) (and
  (objectType ?o1 {thing}Type) (receptacleType ?r {place}Type) (inReceptacle ?o1 ?r)
  (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 {thing}Type) (inReceptacle ?o2 ?r))))))"""
GOAL_LOOK = """(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and
  (objectType ?ot {place}Type) (toggleable ?ot) (isToggled ?ot)
  (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))
(exists (?o - object ?a - agent) (and (objectType ?o {thing}Type) (holds ?a ?o)))"""


def _problem(goal: Goal, receptacles: tuple[Receptacle, ...], items: list[Item]) -> str:
    """The problem file of a game."""
    rtypes = dict.fromkeys((*DOMAIN_RTYPES, *(r.kind for r in receptacles)))
    otypes = dict.fromkeys((*DOMAIN_OTYPES, *(item.kind for item in items)))
    lines = [
        "(define (problem household) (:domain alfred)",
        "(:objects",
        "agent1 - agent",
        *(f"{kind}Type - otype" for kind in otypes),
        *(f"{kind}Type - rtype" for kind in rtypes),
        *sorted(f"{item.id} - object" for item in items),
        *sorted(f"{r.id} - receptacle" for r in receptacles),
        *(f"{r.location} - location" for r in receptacles),
        f"{START} - location)",
        "(:init (= (total-cost) 0)",
        f"(atLocation agent1 {START})",
        *_receptacle_facts(receptacles),
        *_containment_facts(tuple(rtypes), tuple(otypes)),
        *(fact for item in items for fact in _item_facts(item)),
        ")",
        f"(:goal (and {_goal(goal)})))",
    ]
    return "\n".join(lines) + "\n"


@cache
def _receptacle_facts(receptacles: tuple[Receptacle, ...]) -> list[str]:
    openable = household().kinds["openable"]
    facts = []
    for r in receptacles:
        facts += [f"(receptacleType {r.id} {r.kind}Type)", f"(receptacleAtLocation {r.id} {r.location})"]
        facts += [f"(openable {r.id})"] * (r.kind in openable)
    return facts


def _containment_facts(rtypes: tuple[str, ...], otypes: tuple[str, ...]) -> list[str]:
    contains = household().contains
    return [f"(canContain {r}Type {o}Type)" for r in rtypes if r in contains for o in otypes if o in contains[r]]


def _item_facts(item: Item) -> list[str]:
    return [
        f"(objectType {item.id} {item.kind}Type)",
        f"(inReceptacle {item.id} {item.at.id})",
        f"(objectAtLocation {item.id} {item.at.location})",
        *(f"({predicate} {item.id})" for predicate in _properties(item.kind)),
    ]


@cache
def _properties(kind: str) -> tuple[str, ...]:
    kinds = household().kinds
    properties = [name for name in ("cleanable", "heatable", "coolable", "sliceable") if kind in kinds[name]]
    properties += ["isReceptacleObject"] * (kind in kinds["vessels"]) + ["toggleable"] * (kind == LAMP)
    return (*properties, "pickupable") if kind not in kinds["fixtures"] else tuple(properties)


def _goal(goal: Goal) -> str:
    family = FAMILIES[goal.family]
    extra = f"({family.kind} ?o) ({family.state} ?o) " if family.state else ""
    template = GOAL_LOOK if goal.place == LAMP else GOAL_TWO if family.copies == 2 else GOAL_PLACE
    return template.format(thing=goal.thing, place=goal.place, extra=extra)


# ---- a solution


def _walkthrough(goal: Goal, receptacles: tuple[Receptacle, ...], items: list[Item]) -> list[str]:
    """Commands that win the game."""
    family = FAMILIES[goal.family]
    wanted = [item for item in items if item.kind == goal.thing][: family.copies]
    if goal.place == LAMP:
        lamp = next(item for item in items if item.kind == LAMP)
        take = [*_approach(wanted[0].at), f"take {wanted[0].name} from {wanted[0].at.name}"]
        return _without_repeats([*take, *_approach(lamp.at), f"use {lamp.name}"])
    place = next(r for r in receptacles if r.kind == goal.place)
    commands: list[str] = []
    for item in wanted:
        commands += [*_approach(item.at), f"take {item.name} from {item.at.name}"]
        if family.state:
            appliance = next(r for r in receptacles if r.kind == family.appliance)
            commands += [f"go to {appliance.name}", f"{family.verb} {item.name} with {appliance.name}"]
        commands += [*_approach(place), f"move {item.name} to {place.name}"]
    return _without_repeats(commands)


def _approach(receptacle: Receptacle) -> list[str]:
    go = f"go to {receptacle.name}"
    return [go, f"open {receptacle.name}"] if receptacle.kind in household().kinds["openable"] else [go]


def _without_repeats(commands: list[str]) -> list[str]:
    """Drop what is already so: going to where one stands, opening what is open."""
    kept: list[str] = []
    here = ""
    opened: set[str] = set()
    for command in commands:
        verb, _, rest = command.partition(" ")
        if command == here or (verb == "open" and rest in opened):
            continue
        if verb == "go":
            here = command
        if verb == "open":
            opened.add(rest)
        kept.append(command)
    return kept


# ---- the games that come with the package


def packaged_games() -> Iterator[tuple[str, dict[str, Any]]]:
    """The package's games, as (path in the archive, game): small rooms, as many of each family, scenes in turn."""
    for split, count in PACKAGED.items():
        for task, family in FAMILIES.items():
            for index in range(count):
                name, game = generate_named(index, family.scenes[index % len(family.scenes)], task, "small", split)
                yield f"generated_1.0/{split}/{name}/game.tw-pddl", game


def write_package(path: Path = PACKAGE) -> None:
    """Write the package's games as one archive whose bytes depend on nothing but this code."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
        for name, game in sorted(packaged_games()):
            content = json.dumps(game, indent=0, ensure_ascii=False).encode()
            entry = tarfile.TarInfo(name)  # owner and time stay zero
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    write_package()
