"""What is played in a recorded game, and how a state is hashed; shared by the recorder and the tests.

The commands depend only on the game's name, its walkthrough and the texts and admissible commands seen so far. So another
engine is asked the same commands for exactly as long as it gives the same answers.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Sequence

RANDOM_STEPS = 50
ADMISSIBLE_SHARE = 0.7
WRONG_SHARE = 0.2  # the rest is malformed

NAME = re.compile(r"[A-Za-z]+ [0-9]+")
GUESSES = (
    "go to {place}",
    "open {place}",
    "close {place}",
    "take {thing} from {place}",
    "move {thing} to {place}",
    "put {thing} in/on {place}",
    "examine {place}",
    "examine {thing}",
    "use {thing}",
    "heat {thing} with {place}",
    "clean {thing} with {place}",
    "cool {thing} with {place}",
    "slice {thing} with {thing}",
)
MALFORMED = (
    "",
    "   ",
    "\n\t",
    "go to",
    "examine",
    "examine ",
    "take  from ",
    "asdf qwer",
    "xyzzy!?;--",
    "None",
    "0",
    "{o.name}",
    "#look.feedback#",
    "look; inventory",
    "look\ninventory",
    "\u00a0look\u3000",
    "go to \u684c\u5b50 1",
    "\u0440\u0443\u0441\u0441\u043a\u0438\u0439 \U0001f9fc",
    "\u0000",
    "'\"\\",
    "go to " + "desk 1 " * 300,
    "x" * 20_000,
)


def verb(command: str) -> str:
    """The first word of a command."""
    return command.split(" ")[0]


class Script:
    """Chooses the commands of one game: first its walkthrough, then RANDOM_STEPS random ones."""

    def __init__(self, game: str, walkthrough: Sequence[str]) -> None:
        self._random = random.Random(f"seed-opd oracle, {game}")
        self._walkthrough = list(walkthrough)
        self._places: set[str] = set()
        self._things: set[str] = set()
        self._played = 0

    def __len__(self) -> int:
        """The number of commands in all."""
        return len(self._walkthrough) + RANDOM_STEPS

    def next(self, feedback: str, admissible: Sequence[str]) -> str:
        """The next command, given the text just read and the admissible commands of the state it came with."""
        commands = sorted(admissible)
        self._learn_names(feedback, commands)
        self._played += 1
        if self._played <= len(self._walkthrough):
            return self._walkthrough[self._played - 1]
        kind = self._random.random()
        if kind < ADMISSIBLE_SHARE:
            return self._admissible(commands)
        if kind < ADMISSIBLE_SHARE + WRONG_SHARE:
            return self._wrong(commands)
        return self._pick(MALFORMED)

    def _learn_names(self, feedback: str, commands: Sequence[str]) -> None:
        names = set(NAME.findall("\n".join([feedback, *commands])))
        if not self._played:
            self._places = names  # the first text lists the receptacles, also those that share a location
        self._things |= names - self._places

    def _pick(self, choices: Sequence[str]) -> str:
        # Only random() is promised to be the same in every version of Python.
        return choices[int(self._random.random() * len(choices))]

    def _admissible(self, commands: Sequence[str]) -> str:
        """Half of the time any command, half of the time, where there is one, a command that changes more than the place."""
        changing = [command for command in commands if verb(command) not in ("go", "look", "inventory", "help", "examine")]
        if self._random.random() < 0.5 or not changing:
            return self._pick(commands)
        kind = self._pick(sorted(set(map(verb, changing))))
        return self._pick([command for command in changing if verb(command) == kind])

    def _wrong(self, commands: Sequence[str]) -> str:
        """A well-formed guess, or an admissible command with a change; now and then the result is admissible after all."""
        if self._random.random() < 0.6:
            place = self._pick(sorted(self._places) or ["desk 1"])
            thing = self._pick(sorted(self._things) or ["mug 1"])
            return self._pick(GUESSES).format(place=place, thing=thing)
        command = self._pick(commands)
        changes = (
            command.upper(),
            command.title(),
            f"  {command} \n",
            command.replace(" ", "  "),
            command[:-1],
            command + ".",
            command + "0",
            command.replace(" 1", " 01"),
        )
        return self._pick(changes)


def digest(command: str | None, feedback: str, admissible: Sequence[str], score: float, won: bool, moves: int) -> str:
    """The sha256, in hexadecimal, of a state and of the command that led to it (None after the reset)."""
    state = [command, feedback, sorted(admissible), int(score), bool(won), int(moves)]
    text = json.dumps(state, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


SHORT = 6  # hexadecimal characters kept of each state's digest


def record(game: str, digests: Sequence[str]) -> dict[str, object]:
    """What is kept of a game: its name, a short hash per state, and one over the whole episode.

    `digests` holds one digest per state, the first after the reset.
    """
    episode = hashlib.sha256("".join(digests).encode("ascii")).hexdigest()
    return {"game": game, "steps": len(digests) - 1, "states": "".join(d[:SHORT] for d in digests), "episode": episode}
