"""What hindsight knows about a household (ALFWorld) episode, read from its text alone.

The goal names a task family and object types. The environment's answers say where objects were, what was opened, and what
was done with them; hidden state is never looked at. An expert's plan is read in the same way, from its commands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from seed_opd.errors import UserError
from seed_opd.trajectory import Trajectory

Family = Literal["pick", "look", "clean", "heat", "cool", "two"]
Mistake = Literal[
    "repeated",
    "not_found",
    "closed",
    "wrong_object",
    "not_taken",
    "tool_skipped",
    "wrong_order",
    "wrong_place",
    "not_placed",
    "one_missing",
]

TOOL_TYPES: dict[Family, str] = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}

_TREATMENTS: dict[str, Family] = {"clean": "clean", "hot": "heat", "heat": "heat", "cool": "cool", "cold": "cool"}
_GOALS: tuple[tuple[str, Family | None], ...] = (
    (r"(?:look at|examine)(?: an?| some| the)? (?P<object>\w+) (?:under|with) (?:the |an? )?(?P<target>\w+)", "look"),
    (r"(?:put|find) two (?P<object>\w+)(?: and put them)? (?:in|on) (?:the |an? )?(?P<target>\w+)", "two"),
    (r"put (?:an?|some|the) (?P<how>clean|hot|cool|cold) (?P<object>\w+) (?:in|on) (?:the |an? )?(?P<target>\w+)", None),
    (r"(?P<how>clean|heat|cool) (?:an?|some|the) (?P<object>\w+) and put it (?:in|on) (?:the |an? )?(?P<target>\w+)", None),
    (r"put (?:an?|some|the) (?P<object>\w+) (?:in|on) (?:the |an? )?(?P<target>\w+)", "pick"),
)

_NAME = r"([a-z]+ \d+)"
_LISTED = re.compile(rf"\ban? {_NAME}")
_ROOM = re.compile(r"Looking quickly around you, you see (.*?)\.")
_CONTENTS = re.compile(rf"(?:On the {_NAME}, you see|The {_NAME} is open\. In it, you see) (.*?)\.")
_CLOSED = re.compile(rf"The {_NAME} is closed\.")
_NOTHING = "Nothing happens"

# What was done, as the environment confirms it and as a command asks for it (older data says "put X in/on Y").
_CONFIRMED = {
    "go": re.compile(rf"You arrive at (?:the )?{_NAME}\."),
    "open": re.compile(rf"You open the {_NAME}\."),
    "take": re.compile(rf"You pick up the {_NAME} from the {_NAME}\."),
    "move": re.compile(rf"You (?:move|put) the {_NAME} (?:to|in/on|in|on) the {_NAME}\."),
    "treat": re.compile(rf"You (clean|heat|cool) the {_NAME} using the {_NAME}\."),
    "light": re.compile(rf"You turn on the {_NAME}\."),
}
_COMMANDED = {
    "go": re.compile(rf"go to {_NAME}$"),
    "open": re.compile(rf"open {_NAME}$"),
    "take": re.compile(rf"take {_NAME} from {_NAME}$"),
    "move": re.compile(rf"(?:move|put) {_NAME} (?:to|in/on|in|on) {_NAME}$"),
    "treat": re.compile(rf"(clean|heat|cool) {_NAME} with {_NAME}$"),
    "light": re.compile(rf"use {_NAME}$"),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """A task in the environment's words; `target_type` is where the object goes, or the lamp to look at it under."""

    family: Family
    object_type: str
    target_type: str


@dataclass(frozen=True, slots=True)
class Site:
    """A thing, where one stands to reach it (neighbours can share a standing place), and whether it had to be opened."""

    name: str
    stop: str
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Find:
    """An object of the right type, and where it was first."""

    name: str
    at: Site


@dataclass(frozen=True, slots=True)
class Hindsight:
    """The facts of one episode.

    `finds` are the objects that were used or, after a failure, that could be; `tool` and `destination` what was used or
    could be. `searched` are places seen without such an object, `unsearched` the room's other places, in the order in
    which they were named. `mistake` is None after a success; `culprit` is the thing or command that it is about.
    """

    goal: Goal
    success: bool
    finds: tuple[Find, ...] = ()
    tool: Site | None = None
    destination: Site | None = None
    searched: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()
    mistake: Mistake | None = None
    culprit: str = ""


def parse_goal(text: str) -> Goal:
    """Read a goal; raises UserError when it is none of the six task families."""
    plain = text.lower().strip().removeprefix("your task is to:").strip().rstrip(".")
    for pattern, family in _GOALS:
        match = re.fullmatch(pattern, plain)
        if match:
            return Goal(family or _TREATMENTS[match["how"]], match["object"], match["target"])
    raise UserError(f"goal: {text!r} is none of the six household task families; use the rules analyzer for ALFWorld only.")


def facts(trajectory: Trajectory) -> Hindsight:
    """Read the facts of a finished episode; raises UserError when its goal is not understood."""
    goal = parse_goal(trajectory.goal)
    episode = _Episode(goal)
    texts = [step.observation for step in trajectory.steps] + [trajectory.final_observation]
    episode.look(texts[0])
    for step, text in zip(trajectory.steps, texts[1:], strict=True):
        episode.turn(step.action, text)
    return _succeeded(episode) if trajectory.success else _failed(episode, len(trajectory.steps))


def plan_facts(goal: str, commands: Iterable[str]) -> Hindsight:
    """The facts of an episode in which these commands succeed, without having seen its text."""
    episode = _Episode(parse_goal(goal))
    for command in commands:
        episode.did(command.strip(), _COMMANDED)
    return _succeeded(episode)


def object_type(name: str) -> str:
    return name.partition(" ")[0]


@dataclass(slots=True)
class _Episode:
    """Everything that an episode's text has shown so far."""

    goal: Goal
    here: str = ""
    room: list[str] = field(default_factory=list)
    shown: dict[str, bool] = field(default_factory=dict)  # place -> an object of the right type was there
    closed: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    origin: dict[str, Site] = field(default_factory=dict)  # object -> where it was first
    taken: list[str] = field(default_factory=list)
    held: str = ""
    moves: dict[str, Site] = field(default_factory=dict)  # object -> where it was put last
    treated: dict[str, Site] = field(default_factory=dict)
    lights: list[Site] = field(default_factory=list)
    refused: str = ""  # a closed place that something was asked from
    useless: Counter[str] = field(default_factory=Counter)
    seen_before: set[tuple[str, str]] = field(default_factory=set)

    def turn(self, action: str, text: str) -> None:
        """One action and what it led to."""
        if _NOTHING in text or (action, text) in self.seen_before:
            self.useless[action] += 1
        self.seen_before.add((action, text))
        asked = _COMMANDED["take"].match(action)
        if _NOTHING in text and asked and asked[2] in self.closed:
            self.refused = asked[2]
        self.did(text, _CONFIRMED)
        self.look(text)

    def look(self, text: str) -> None:
        """Take in what a text shows: the room, closed places, contents."""
        if not self.room and (room := _ROOM.search(text)):  # "look" can say later that there is nothing around
            self.room = _LISTED.findall(room[1])
        self.closed.update(_CLOSED.findall(text))
        for on, inside, listing in _CONTENTS.findall(text):
            self._see(on or inside, _LISTED.findall(listing))

    def did(self, text: str, patterns: dict[str, re.Pattern[str]]) -> None:
        """Take in what was done."""
        for kind, pattern in patterns.items():
            if match := pattern.search(text):
                self._apply(kind, match.groups())

    def ours(self, name: str) -> bool:
        return object_type(name) == self.goal.object_type

    def site(self, place: str) -> Site:
        return Site(place, self.here or place, place in self.opened)

    def _see(self, place: str, names: Sequence[str]) -> None:
        here = any(self.ours(name) for name in names)
        self.shown[place] = self.shown.get(place, False) or here
        for name in names:
            self.origin.setdefault(name, self.site(place))

    def _apply(self, kind: str, names: Sequence[str]) -> None:
        if kind == "go":
            self.here = names[0]
        elif kind == "open":
            self.opened.add(names[0])
            self.closed.discard(names[0])
        elif kind == "take":
            self.held = names[0]
            self.taken.append(names[0])
            self.origin.setdefault(names[0], self.site(names[1]))
        elif kind == "move":
            self.held = ""
            self.moves.pop(names[0], None)
            self.moves[names[0]] = self.site(names[1])
        elif kind == "treat" and names[0] == self.goal.family:
            self.treated[names[1]] = Site(names[2], self.here or names[2])
        elif kind == "light":
            self.lights.append(Site(names[0], self.here))


def _succeeded(episode: _Episode) -> Hindsight:
    goal = episode.goal
    if goal.family == "look":
        used = [episode.held] if episode.ours(episode.held) else []
        tool = episode.lights[-1] if episode.lights else None
        return Hindsight(goal, True, _finds(episode, used), tool)
    done = [name for name in _placed(episode) if goal.family not in TOOL_TYPES or name in episode.treated]
    used = done or [name for name in episode.treated if episode.ours(name)]  # goals can be half-true from the start
    used = used[-2:] if goal.family == "two" else used[-1:]
    tool = episode.treated.get(used[0]) if used else None
    return Hindsight(goal, True, _finds(episode, used), tool, episode.moves.get(used[-1]) if done else None)


def _failed(episode: _Episode, steps: int) -> Hindsight:
    goal = episode.goal
    candidates = list(dict.fromkeys([*reversed(episode.taken), *episode.origin]))
    ours = [name for name in candidates if episode.ours(name)]
    mistake, culprit = _mistake(episode, steps)
    searched = [place for place, had_one in episode.shown.items() if not had_one and place in episode.room]
    unsearched = sorted((p for p in episode.room if p not in episode.shown), key=lambda p: p not in episode.closed)
    return Hindsight(
        goal,
        False,
        _finds(episode, ours[: 2 if goal.family == "two" else 1]),
        _usable_tool(episode),
        None if goal.family == "look" else _usable_place(episode, goal.target_type),
        tuple(searched),
        tuple(unsearched),
        mistake,
        culprit,
    )


def _mistake(episode: _Episode, steps: int) -> tuple[Mistake, str]:
    """The first thing that stood between the episode and its goal, and what it is about."""
    goal = episode.goal
    if episode.useless.total() >= max(3, steps / 2):
        return "repeated", episode.useless.most_common(1)[0][0]
    if not any(episode.ours(name) for name in episode.origin):
        return "not_found", ""
    taken = [name for name in episode.taken if episode.ours(name)]
    if not taken:
        if episode.refused:
            return "closed", episode.refused
        return ("wrong_object", episode.taken[-1]) if episode.taken else ("not_taken", "")
    if goal.family == "look":
        return ("wrong_order" if episode.lights else "tool_skipped"), ""
    placed = _placed(episode)
    if goal.family in TOOL_TYPES and not any(name in episode.treated for name in taken):
        return ("wrong_order" if placed else "tool_skipped"), ""
    if placed:
        return ("one_missing" if goal.family == "two" else "wrong_order"), ""
    elsewhere = [site.name for name, site in episode.moves.items() if episode.ours(name) and name != episode.held]
    return ("wrong_place", elsewhere[-1]) if elsewhere else ("not_placed", "")


def _placed(episode: _Episode) -> list[str]:
    """Objects of the right type that were put into a place of the right type, in the order of it."""
    return [
        name
        for name, site in episode.moves.items()
        if episode.ours(name) and object_type(site.name) == episode.goal.target_type and name != episode.held
    ]


def _finds(episode: _Episode, names: Sequence[str]) -> tuple[Find, ...]:
    return tuple(Find(name, episode.origin[name]) for name in names if name in episode.origin)


def _usable_tool(episode: _Episode) -> Site | None:
    goal = episode.goal
    if goal.family == "look":
        seen = [Site(name, at.stop) for name, at in episode.origin.items() if object_type(name) == goal.target_type]
        known = episode.lights or seen
        return known[-1] if known else None
    place = _usable_place(episode, TOOL_TYPES[goal.family]) if goal.family in TOOL_TYPES else None
    return Site(place.name, place.stop) if place else None


def _usable_place(episode: _Episode, kind: str) -> Site | None:
    """The lowest-numbered place of a kind in the room, as far as it is known."""
    places = sorted(
        (place for place in episode.room if object_type(place) == kind), key=lambda place: int(place.split()[-1])
    )
    if not places:
        return None
    return Site(places[0], places[0], places[0] in episode.closed | episode.opened)
