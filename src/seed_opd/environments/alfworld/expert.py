"""Scripted players of household games: one that searches as a person would, and one that reads the state.

Both decide alike from what they believe (`Belief`); they differ in where that comes from. The searching expert reads nothing
but what a player sees: the task, the observations and the admissible commands. The informed expert reads the live game.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from seed_opd.environments.alfworld.engine import Play
from seed_opd.environments.alfworld.families import FAMILIES, LAMP
from seed_opd.environments.alfworld.rooms import household, usual_places
from seed_opd.errors import UserError

NAME = r"[a-z]+ \d+"
ARRIVED = re.compile(rf"You arrive at ({NAME})\.")
LISTED = re.compile(rf"(?:On the|The) ({NAME})(?: is open\. In it)?, you see ([^.]*)\.")
TAKEN = re.compile(rf"You (?:pick up|take) the ({NAME}) from the ({NAME})\.")
PUT = re.compile(rf"You (?:move|put) the ({NAME}) (?:to|in/on) the ({NAME})\.")
CHANGED = re.compile(rf"You (clean|heat|cool) the ({NAME}) using the ({NAME})\.")
ITEM = re.compile(rf"\ban? ({NAME})")


def kind_of(name: str) -> str:
    """The type in a name: "mug" of "mug 1"."""
    return name.split(" ")[0]


@dataclass(frozen=True)
class Wish:
    """A task's text, understood: family, and types of thing and place in lower case."""

    family: str
    thing: str
    place: str

    @property
    def verb(self) -> str:
        return FAMILIES[self.family].verb

    @property
    def appliance(self) -> str:
        return FAMILIES[self.family].appliance.lower()

    @property
    def under_lamp(self) -> bool:
        return self.place == LAMP.lower()


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (name, re.compile(wording.rstrip(".").format(thing="(?P<thing>[a-z]+)", place="(?P<place>[a-z]+)")))
        for name, family in FAMILIES.items()
        for wording in family.wordings
    )


def understand(goal: str) -> Wish:
    """Read a task's text; raises UserError for a text that is none of the wordings of the six families."""
    text = goal.strip().removeprefix("Your task is to:").strip().rstrip(".")
    for family, pattern in _patterns():
        if match := pattern.fullmatch(text):
            return Wish(family, match["thing"], match["place"])
    raise UserError(f"goal {goal!r} is not one of the six ALFWorld tasks; give the task line of an ALFWorld game.")


@dataclass
class Belief:
    """What a player knows. `contents` has only receptacles that were looked into; `together` shared locations."""

    receptacles: list[str] = field(default_factory=list)
    contents: dict[str, set[str]] = field(default_factory=dict)
    here: list[str] = field(default_factory=list)
    holding: str | None = None
    ready: set[str] = field(default_factory=set)
    together: dict[str, set[str]] = field(default_factory=dict)
    useless: set[str] = field(default_factory=set)  # things that cannot be taken or changed
    refused: set[str] = field(default_factory=set)  # places that do not take the thing

    def where(self, item: str) -> str | None:
        """The receptacle where an item is known to be."""
        return next((name for name in self.receptacles if item in self.contents.get(name, ())), None)


class Expert(ABC):
    """A player that never gives up: `reset` with the task's text and the first observation, then `act` until the end."""

    def __init__(self) -> None:
        self._moods: dict[str, float] = {}  # a liking for receptacles, to vary the order of a search
        self.wish = Wish("", "", "")
        self.belief = Belief()
        self._admissible: Sequence[str] = ()

    def reset(self, goal: str, observation: str) -> None:
        """Begin an episode; raises UserError where the goal is not understood."""
        self.wish = understand(goal)
        self.belief = Belief(receptacles=ITEM.findall(observation))

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """The next command, given what the last one led to and what can be done now."""
        self._admissible = admissible
        self._perceive(observation)
        return self._decide()

    @abstractmethod
    def _perceive(self, observation: str) -> None:
        """Bring the belief up to date."""

    # ---- deciding

    def _decide(self) -> str:
        held = self.belief.holding
        if held is None:
            return self._fetch()
        if kind_of(held) != self.wish.thing or held in self.belief.useless:
            return self._put_away(held)
        if self.wish.under_lamp:
            return self._use_lamp()
        if self.wish.verb and held not in self.belief.ready:
            return self._change(held)
        return self._deliver(held)

    def _fetch(self) -> str:
        belief = self.belief
        found = [item for item in self._known(self.wish.thing) if item not in belief.useless and not self._delivered(item)]
        if not found:
            return self._explore(self.wish.thing)
        item = min(found, key=self._distance)
        place = belief.where(item) or ""
        if place not in belief.here:
            return self._go(place)
        if (command := f"take {item} from {place}") in self._admissible:
            return command
        if (command := f"open {place}") in self._admissible:
            return command
        belief.useless.add(item)
        return self._fetch()

    def _known(self, kind: str) -> list[str]:
        contents = self.belief.contents
        return [item for name in self.belief.receptacles for item in sorted(contents.get(name, ())) if kind_of(item) == kind]

    def _delivered(self, item: str) -> bool:
        if self.wish.under_lamp or (self.wish.verb and item not in self.belief.ready):
            return False
        return self.belief.where(item) == self._destination()

    def _distance(self, item: str) -> int:
        place = self.belief.where(item) or ""
        return (place not in self.belief.here) * 2 + (kind_of(place) in _openable())

    def _use_lamp(self) -> str:
        kind = self.wish.place
        for command in self._admissible:
            if command.startswith(f"use {kind} "):
                return command
        lamps = self._known(kind)
        return self._go(self.belief.where(lamps[0]) or "") if lamps else self._explore(kind)

    def _change(self, held: str) -> str:
        tools = [name for name in self.belief.receptacles if kind_of(name) == self.wish.appliance]
        for tool in tools:
            if (command := f"{self.wish.verb} {held} with {tool}") in self._admissible:
                return command
        if not tools or any(tool in self.belief.here for tool in tools):
            self.belief.useless.add(held)
            return self._put_away(held)
        return self._go(self._nearest(tools))

    def _deliver(self, held: str) -> str:
        place = self._destination()
        if place is None:
            return self._put_away(held)
        if place not in self.belief.here:
            return self._go(place)
        if command := self._putting(held, place):
            return command
        if (command := f"open {place}") in self._admissible:
            return command
        self.belief.refused.add(place)
        return self._deliver(held)

    def _destination(self) -> str | None:
        """The place to deliver to: where most of the things wanted already are, else the nearest; None where all refused."""
        belief, wish = self.belief, self.wish
        places = [name for name in belief.receptacles if kind_of(name) == wish.place and name not in belief.refused]

        def merit(place: str) -> int:
            items = [item for item in belief.contents.get(place, ()) if kind_of(item) == wish.thing]
            return len(items) if FAMILIES[wish.family].copies > 1 else 0

        best = max(map(merit, places), default=0)
        return self._nearest([place for place in places if merit(place) == best])

    def _put_away(self, held: str) -> str:
        """Get rid of something: here if that can be, else at the next place that might take it."""
        for place in self.belief.here:
            if command := self._putting(held, place):
                return command
        for place in self.belief.here:
            if (command := f"open {place}") in self._admissible:
                return command
        takers = _takers(kind_of(held))
        places = [name for name in self.belief.receptacles if kind_of(name) in takers and name not in self.belief.here]
        return self._go(places[0] if places else "")

    def _putting(self, held: str, place: str) -> str | None:
        """The admissible command that puts something in a place; its wording differs between versions of the data."""
        for command in self._admissible:
            if command.startswith((f"move {held} ", f"put {held} ")) and command.endswith(f" {place}"):
                return command
        return None

    # ---- moving and searching

    def _nearest(self, places: list[str]) -> str | None:
        for place in places:
            if place in self.belief.here:
                return place
        reachable = [place for place in places if f"go to {place}" in self._admissible] or places
        return next(iter(reachable), None)

    def _go(self, place: str | None) -> str:
        """Go to a place, or to one that shares its location, or, where neither is possible from here, anywhere."""
        for name in (place, *sorted(self.belief.together.get(place or "", ()))):
            if (command := f"go to {name}") in self._admissible:
                return command
        return next((command for command in self._admissible if command.startswith("go to ")), self._admissible[0])

    def _explore(self, kind: str) -> str:
        """Look into the most promising receptacle that was not looked into yet."""
        belief = self.belief
        unknown = [name for name in belief.receptacles if name not in belief.contents]
        if not unknown:  # everything was seen and something was overlooked: begin again
            belief.contents.clear()
            unknown = belief.receptacles
        reachable = [name for name in unknown if self._in_reach(name)] or unknown
        place = max(reachable, key=lambda name: self._promise(kind, name))
        if place not in belief.here:
            return self._go(place)
        if (command := f"open {place}") in self._admissible:
            return command
        belief.contents[place] = set()  # nothing more can be learnt here
        return f"examine {place}"

    def _in_reach(self, place: str) -> bool:
        near = (place, *self.belief.together.get(place, ()))
        return place in self.belief.here or any(f"go to {name}" in self._admissible for name in near)

    def _promise(self, kind: str, place: str) -> float:
        """How likely a thing is found in a place, by what is usual in a household, over the steps that looking takes."""
        here, place_kind = place in self.belief.here, kind_of(place)
        alike = sum(kind_of(name) == place_kind for name in self.belief.receptacles)
        steps = (not here) + (place_kind in _openable()) + 0.1
        return (_usual(kind).get(place_kind, 0) + 0.5) / alike / steps * self._moods.get(place, 1.0)


class SearchingExpert(Expert):
    """A player that knows only what a player sees. The same episode always gives the same play, unless `rng` is given.

    `rng` varies the order of searching. `mistakes` is the probability, per step, of doing something useless but admissible
    instead: wandering, idling, taking a wrong thing, dropping the right one, skipping the appliance; it needs `rng`.
    """

    def __init__(self, rng: random.Random | None = None, mistakes: float = 0.0) -> None:
        if mistakes and rng is None:
            raise UserError(f"mistakes {mistakes} needs random draws; give the expert a seeded rng.")
        super().__init__()
        self._rng = rng
        self._mistakes = mistakes

    def reset(self, goal: str, observation: str) -> None:
        super().reset(goal, observation)
        self._skipped: set[str] = set()
        if self._rng is not None:
            self._moods = {name: self._rng.expovariate(1.0) for name in self.belief.receptacles}

    def _perceive(self, observation: str) -> None:
        belief = self.belief
        belief.here = [name for name in belief.receptacles if f"examine {name}" in self._admissible]
        for name in belief.here:
            belief.together.setdefault(name, set()).update(belief.here)
        for place, items in LISTED.findall(observation):
            belief.contents[place] = set(ITEM.findall(items))
        for item, place in TAKEN.findall(observation):
            belief.holding = item
            belief.contents.setdefault(place, set()).discard(item)
        for item, place in PUT.findall(observation):
            belief.holding = None
            belief.contents.setdefault(place, set()).add(item)
            belief.ready -= self._skipped
        for verb, item, _ in CHANGED.findall(observation):
            if verb == self.wish.verb:
                belief.ready.add(item)

    def _decide(self) -> str:
        if self._rng is not None and self._rng.random() < self._mistakes:
            return self._mistake(self._rng)
        return super()._decide()

    def _mistake(self, rng: random.Random) -> str:
        held, admissible, right = self.belief.holding, self._admissible, f"take {self.wish.thing} "
        wander = [command for command in admissible if command.startswith("go to ")]
        idle = [command for command in admissible if command.startswith(("look", "inventory", "examine "))]
        wrong = [command for command in admissible if command.startswith("take ") and not command.startswith(right)]
        drop = [command for command in admissible if held and command.startswith((f"move {held} ", f"put {held} "))]
        kinds = [commands for commands in (wander, idle, wrong, drop) if commands]
        if held and self.wish.verb and kind_of(held) == self.wish.thing and held not in self.belief.ready:
            kinds.append([])  # skip the appliance
        commands = rng.choice(kinds)
        if commands:
            return rng.choice(commands)
        self._skipped.add(held or "")
        self.belief.ready.add(held or "")
        return super()._decide()


class InformedExpert(Expert):
    """A player that reads the state of a live game, and so can take over from any point of an episode."""

    def __init__(self, play: Play) -> None:
        super().__init__()
        self._play = play

    def reset(self, goal: str, observation: str) -> None:
        super().reset(goal, observation)
        play, objects, names = self._play, self._play.game.objects, self._play.game.names
        locations = [name for name, kind in objects.items() if kind == "location"]
        self._location = {
            names[place]: next(
                (location for location in locations if play.holds("receptacleatlocation", place, location)), ""
            )
            for place, kind in objects.items()
            if kind == "receptacle" and place in names
        }
        places = self.belief.receptacles = sorted(self._location)
        self.belief.together = {
            place: {other for other in places if self._location[other] == self._location[place]} for place in places
        }
        if kind := FAMILIES[self.wish.family].kind:
            self.belief.useless = {names[item] for item in objects if item in names and not play.holds(kind, item)}

    def _perceive(self, observation: str) -> None:
        names, belief = self._play.game.names, self.belief
        facts: dict[str, list[tuple[str, ...]]] = {}
        for predicate, arguments in self._play.facts():
            facts.setdefault(predicate, []).append(arguments)
        ((_, here),) = facts["atlocation"]
        belief.here = [place for place in belief.receptacles if self._location[place] == here]
        belief.contents = {place: set() for place in belief.receptacles}
        for item, place in facts.get("inreceptacle", ()):
            belief.contents[names[place]].add(names[item])
        belief.holding = next((names[item] for _, item in facts.get("holds", ())), None)
        belief.ready = {names[item] for (item,) in facts.get(FAMILIES[self.wish.family].state.lower(), ())}


@cache
def _openable() -> frozenset[str]:
    return frozenset(kind.lower() for kind in household().kinds["openable"])


@cache
def _cased(kind: str) -> str:
    """The type as rooms.yaml spells it."""
    known = {name.lower(): name for scene in household().scenes.values() for name in scene.things}
    return known.get(kind, kind)


@cache
def _usual(kind: str) -> dict[str, int]:
    return {place.lower(): weight for place, weight in usual_places(_cased(kind)).items()}


@cache
def _takers(kind: str) -> frozenset[str]:
    """The kinds of receptacle that take a kind of thing."""
    return frozenset(place.lower() for place, things in household().contains.items() if _cased(kind) in things)
