"""Playing a game file: what the original ALFWorld text engine says and accepts, without it.

`load(data)` gives a `Game`, which never changes and may be shared; `game.new()` gives a `Play`, one live episode.
The domain, the grammar and the problem that the file carries are interpreted; no action and no wording is known here.

Where the rules of the original (TextWorld 1.7.0 over Fast Downward, and ALFWorld 0.4.2's names) are not obvious:
an action that would change nothing is not admissible; of several actions with the same command the first is taken; a fact
counts as false for the text (`not_p`) only once an action has made it false. Two differences are on purpose, and no game of
ALFWorld shows them: the original's texts take every conditional effect for one that happened, and in domains whose types are
more than one level deep it lists things several times; ours see what is true, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seed_opd.environments.alfworld.actions import NEGATION, GameAction, compile_clause, schemas_of
from seed_opd.environments.alfworld.grammar import Rule, parse_grammar
from seed_opd.environments.alfworld.names import readable_names
from seed_opd.environments.alfworld.pddl import OBJECT, Arguments, Domain, parse_domain, parse_problem
from seed_opd.environments.alfworld.query import Facts, Kinds
from seed_opd.environments.alfworld.text import Entity, Narrator
from seed_opd.errors import UserError

NOTHING_HAPPENS = "Nothing happens."
INTRODUCTION = (Rule("intro"),)


def load(data: Mapping[str, Any]) -> Game:
    """Make a game of what a `game.tw-pddl` file holds. Raises UserError if a part is missing or not understood."""
    for key in ("pddl_domain", "pddl_problem", "grammar"):
        if not isinstance(data.get(key), str):
            raise UserError(f"game: the text {key!r} is missing; a game.tw-pddl file has it.")
    try:
        return Game(data["pddl_domain"], data["pddl_problem"], data["grammar"])
    except RecursionError as error:
        raise UserError("game: its expressions or rules are nested too deeply.") from error


class Game:
    """A game, ready to be played any number of times.

    `objects` gives the type of each object, `names` the name of each object that a fact is about, by its identifier;
    `goal` is a conjunction of parts, each a disjunction of clauses.
    """

    def __init__(self, domain_text: str, problem_text: str, grammar_text: str) -> None:
        domain, problem, grammar = parse_domain(domain_text), parse_problem(problem_text), parse_grammar(grammar_text)
        self.objects: dict[str, str] = dict(domain.constants + problem.objects)
        self.names = readable_names({argument for _, arguments in problem.initial for argument in arguments})
        self.goal = problem.goal
        self._facts = _initial_facts(problem.initial, domain, self.objects, {atom.predicate for atom in grammar.atoms()})
        entities = {name: Entity(name, kind, self.names.get(name, name)) for name, kind in self.objects.items()}
        self.narrator = Narrator(grammar, entities)
        self.actions = []
        for schema in schemas_of(domain).compiled(self._facts):
            if schema.name not in grammar.actions:
                raise UserError(f"grammar: there is no text for the action {schema.name!r} of the domain.")
            text = grammar.actions[schema.name]
            self.actions.append(GameAction(schema, text, grammar, self.narrator, self._facts))
        self.readers = _readers(self.actions)
        self._goal_parts = [[compile_clause(clause, self._facts) for clause in part] for part in problem.goal]
        self.goal_reads = {literal.predicate for part in problem.goal for clause in part for literal in clause.literals}

        start = self._facts.copy()
        self.introduction = self.narrator.say(INTRODUCTION, {}, start)
        self.first_commands = [action.commands(start) for action in self.actions]
        self.won_at_start = self.reached(start)

    def new(self) -> Play:
        """A new episode, at its start."""
        return Play(self)

    def first_facts(self) -> Facts:
        return self._facts.copy()

    def reached(self, facts: Facts) -> bool:
        """Whether the goal holds."""
        return all(
            any(query(facts, [None] * len(slots), lambda slots: True) for query, slots in part) for part in self._goal_parts
        )


class Play:
    """One live episode of a game. Nothing in it depends on anything but the commands."""

    __slots__ = ("_admissible", "_commands", "_facts", "_stale", "_won", "game", "moves")

    def __init__(self, game: Game) -> None:
        self.game = game
        self.reset()

    def reset(self) -> str:
        """Start again and return the first observation."""
        self._facts = self.game.first_facts()
        self._commands = list(self.game.first_commands)
        self._stale: set[int] = set()
        self._admissible: tuple[str, ...] | None = None
        self._won: bool | None = self.game.won_at_start
        self.moves = 0
        return self.game.introduction

    def step(self, command: str) -> str:
        """Carry out a command and return what is said; what is not admissible changes nothing and does not count."""
        command = command.strip()
        for action, commands in zip(self.game.actions, self._current_commands(), strict=True):
            if command in commands:
                values = commands[command]
                self._note(action.apply(self._facts, values))
                self.moves += 1
                return self.game.narrator.say(action.feedback, action.scope(values), self._facts)
        return NOTHING_HAPPENS

    @property
    def admissible(self) -> tuple[str, ...]:
        """All commands that would be carried out now, sorted."""
        if self._admissible is None:
            self._admissible = tuple(sorted(set().union(*self._current_commands())))
        return self._admissible

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        if self._won is None:
            self._won = self.game.reached(self._facts)
        return self._won

    @property
    def score(self) -> int:
        return int(self.won)

    def facts(self) -> Iterator[tuple[str, Arguments]]:
        """All true facts, with the identifiers of the objects; for experts that may see everything."""
        for predicate, facts in self._facts.true.items():
            if not predicate.startswith(NEGATION):
                for fact in facts:
                    yield predicate, fact

    def holds(self, predicate: str, *arguments: str) -> bool:
        return arguments in self._facts.of(predicate)

    def copy(self) -> Play:
        """An episode that has come as far as this one and goes on on its own."""
        other = Play.__new__(Play)
        other.game, other.moves = self.game, self.moves
        other._facts, other._commands, other._stale = self._facts.copy(), list(self._commands), set(self._stale)
        other._admissible, other._won = self._admissible, self._won
        return other

    def _note(self, changed: set[str]) -> None:
        for predicate in changed:
            if predicate in self.game.readers:
                self._stale.update(self.game.readers[predicate])
                self._admissible = None
            if predicate in self.game.goal_reads:
                self._won = None

    def _current_commands(self) -> list[dict[str, Arguments]]:
        for i in self._stale:
            self._commands[i] = self.game.actions[i].commands(self._facts)
        self._stale.clear()
        return self._commands


def _kinds(objects: Mapping[str, str], parents: Mapping[str, str]) -> Kinds:
    kinds = Kinds({OBJECT: dict.fromkeys(objects)})
    for name, kind in objects.items():
        seen = {OBJECT}
        while kind not in seen:
            kinds.setdefault(kind, {})[name] = None
            seen.add(kind)
            kind = parents.get(kind, OBJECT)
    return kinds


def _initial_facts(
    initial: tuple[tuple[str, Arguments], ...], domain: Domain, objects: Mapping[str, str], said: set[str]
) -> Facts:
    """The facts at the start: those that never change, and as a layer over them those that do."""
    negations = {name for name in said if name.startswith(NEGATION) and name.removeprefix(NEGATION) in domain.fluents}
    static: dict[str, dict[Arguments, None]] = {}
    changing: dict[str, dict[Arguments, None]] = {name: {} for name in sorted(domain.fluents | negations)}
    for predicate, arguments in initial:
        (changing if predicate in changing else static).setdefault(predicate, {})[arguments] = None
    kinds = _kinds(objects, domain.parents)
    return Facts(changing, kinds, Facts(static, kinds))


def _readers(actions: list[GameAction]) -> dict[str, list[int]]:
    readers: dict[str, list[int]] = {}
    for i, action in enumerate(actions):
        for predicate in action.reads:
            readers.setdefault(predicate, []).append(i)
    return readers
