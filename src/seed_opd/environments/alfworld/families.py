"""The six task families: where each is posed, its wordings, what it can ask for, and in which split."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache

from seed_opd.environments.alfworld.rooms import Room, household

LAMP = "DeskLamp"


@dataclass(frozen=True)
class Family:
    """A task family: where it is posed, its wordings, and for a change of state the appliance and its predicates."""

    scenes: tuple[str, ...]
    wordings: tuple[str, str]
    appliance: str = ""
    kind: str = ""  # what the object must be: cleanable, heatable, coolable
    state: str = ""  # what the object must become
    verb: str = ""
    copies: int = 1


FAMILIES = {
    "pick_and_place_simple": Family(
        ("kitchen", "living room", "bedroom", "bathroom"), ("put a {thing} in {place}.", "put some {thing} on {place}.")
    ),
    "look_at_obj_in_light": Family(
        ("living room", "bedroom"), ("look at {thing} under the {place}.", "examine the {thing} with the {place}.")
    ),
    "pick_clean_then_place_in_recep": Family(
        ("kitchen", "bathroom"),
        ("put a clean {thing} in {place}.", "clean some {thing} and put it in {place}."),
        *("SinkBasin", "cleanable", "isClean", "clean"),
    ),
    "pick_heat_then_place_in_recep": Family(
        ("kitchen",),
        ("put a hot {thing} in {place}.", "heat some {thing} and put it in {place}."),
        *("Microwave", "heatable", "isHot", "heat"),
    ),
    "pick_cool_then_place_in_recep": Family(
        ("kitchen",),
        ("put a cool {thing} in {place}.", "cool some {thing} and put it in {place}."),
        *("Fridge", "coolable", "isCool", "cool"),
    ),
    "pick_two_obj_and_place": Family(
        ("kitchen", "living room", "bedroom", "bathroom"),
        ("put two {thing} in {place}.", "find two {thing} and put them in {place}."),
        copies=2,
    ),
}


@cache
def goals(family: str, where: Room) -> tuple[tuple[str, str], ...]:
    """All (thing, place) pairs that a family can ask for in a room, whatever their split."""
    house, task = household(), FAMILIES[family]
    things = house.scenes[where.scene].things
    findable = {name: {place for place in thing.places if place in where} for name, thing in things.items()}
    movable = [name for name, places in findable.items() if places and name not in house.kinds["fixtures"]]
    if family == "look_at_obj_in_light":
        return tuple((thing, LAMP) for thing in movable) if findable[LAMP] else ()
    pairs = [
        (thing, place)
        for place, _ in where.receptacles
        if place not in house.kinds["not_targets"] and place != task.appliance
        for thing in movable
        if thing in house.contains.get(place, ())
    ]
    if task.kind:
        return tuple(pair for pair in pairs if pair[0] in house.kinds[task.kind] and task.appliance in where)
    return tuple((thing, place) for thing, place in pairs if findable[thing] - {place})


def split_of(family: str, thing: str, place: str, where: Room, unseen: bool) -> str | None:
    """The one split in which a goal is posed in a room; None for a training room's pair that is kept for unseen rooms."""
    if unseen:
        return "valid_unseen"
    if zlib.crc32(f"{thing}-{place}".encode()) % 8 == 0:
        return None
    return "valid_seen" if zlib.crc32(f"{family}-{thing}-{place}-{where.number}".encode()) % 6 == 0 else "train"


@dataclass(frozen=True)
class Goal:
    """What a game asks for, with the family's wording filled in."""

    family: str
    thing: str
    place: str
    text: str
