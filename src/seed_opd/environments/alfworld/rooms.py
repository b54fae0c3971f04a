"""What a household looks like: which rooms there are, what can stand where, and where things are usually found."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

SIZES = {"small": (6, 9), "full": (12, 30)}  # fewest and most receptacles in a room
TRAIN_ROOMS, ALL_ROOMS = 24, 30  # rooms of each scene: the first 24 are for training, the others are unseen


@dataclass(frozen=True)
class Thing:
    """A type of movable thing: the mean number of its copies in a room, and the share of each place where it is found."""

    mean: float
    places: Mapping[str, int]


@dataclass(frozen=True)
class Scene:
    """A kind of room: the number of its first room, the range of each receptacle's count by size, and its things."""

    first: int
    counts: Mapping[str, Mapping[str, tuple[int, int]]]
    things: Mapping[str, Thing]


@dataclass(frozen=True)
class Household:
    """The table in rooms.yaml. `kinds` maps a property, such as openable or heatable, to the types that have it."""

    kinds: Mapping[str, frozenset[str]]
    contains: Mapping[str, frozenset[str]]
    scenes: Mapping[str, Scene]


@dataclass(frozen=True)
class Room:
    """One room: its scene and number, and its receptacles as (type, count) pairs."""

    scene: str
    number: int
    receptacles: tuple[tuple[str, int], ...]

    def __contains__(self, receptacle: str) -> bool:
        return any(name == receptacle for name, _ in self.receptacles)


@cache
def household() -> Household:
    """The household that games are made of."""
    table = yaml.safe_load(resources.files(__package__).joinpath("rooms.yaml").read_text(encoding="utf-8"))
    return Household(
        kinds={name: frozenset(types.split()) for name, types in table.items() if isinstance(types, str)},
        contains={
            receptacle: frozenset(things.split())
            for names, things in table["contains"].items()
            for receptacle in names.split()
        },
        scenes={name: _scene(entry) for name, entry in table["scenes"].items()},
    )


def _scene(entry: dict[str, Any]) -> Scene:
    counts = {size: {name: _range(str(count)) for name, count in entry[size].items()} for size in SIZES}
    return Scene(entry["first"], counts, {name: _thing(text) for name, text in entry["things"].items()})


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _thing(text: str) -> Thing:
    mean, *places = text.split()
    return Thing(float(mean), dict(zip(places[::2], map(int, places[1::2]), strict=True)))


@cache
def room(scene: str, index: int, size: str) -> Room:
    """The room with that index in its scene. An unseen room (index 24 and up) has receptacles like no training room's."""
    counts = household().scenes[scene].counts[size]
    seen = {room(scene, other, size).receptacles for other in range(TRAIN_ROOMS)} if index >= TRAIN_ROOMS else set()
    fewest, most = SIZES[size]
    rng = random.Random(f"room/{size}/{scene}/{index}")
    while True:
        drawn = [(name, rng.randint(*bounds)) for name, bounds in counts.items()]
        receptacles = tuple((name, count) for name, count in drawn if count)
        if fewest <= sum(count for _, count in receptacles) <= most and receptacles not in seen:
            return Room(scene, household().scenes[scene].first + index, receptacles)


@cache
def usual_places(thing: str) -> dict[str, int]:
    """Where a type of thing is found over all scenes, as weights by type of receptacle; empty for an unknown thing."""
    weights: dict[str, int] = {}
    for scene in household().scenes.values():
        for place, weight in scene.things[thing].places.items() if thing in scene.things else ():
            weights[place] = weights.get(place, 0) + weight
    return weights
