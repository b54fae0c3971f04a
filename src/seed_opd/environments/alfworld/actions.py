"""Actions, compiled: where they are possible, what they are called and what they change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from seed_opd.environments.alfworld.grammar import (
    ActionText,
    Attribute,
    Each,
    Grammar,
    Operation,
    Placeholder,
    Rule,
    Text,
    Value,
)
from seed_opd.environments.alfworld.pddl import EQUALS, Action, Arguments, Clause, Domain, Effect, Literal, Typed
from seed_opd.environments.alfworld.query import Compiler, Condition, Facts, Query, Slots, getter
from seed_opd.environments.alfworld.text import Narrator, Scope

Term = int | str  # a slot, or an object by its identifier
Equalities = tuple[tuple[Term, Term], ...]

FEW = 2  # facts that an answer may depend on to be remembered
REMEMBERED = 64  # answers kept per action and game
NO_COMMANDS: dict[str, Arguments] = {}
NEGATION = "not_"  # in front of a predicate: an action has made this fact false


@dataclass(frozen=True, slots=True)
class CompiledClause:
    """One way in which an action is possible, where there are objects of all `kinds`.

    It changes nothing where all pairs of one of the `idle` lists are equal.
    """

    query: Query
    width: int
    kinds: frozenset[str]
    idle: tuple[Equalities, ...]

    def changes_something(self, slots: Slots) -> bool:
        return not any(all(_value(a, slots) == _value(b, slots) for a, b in equalities) for equalities in self.idle)


@dataclass(frozen=True, slots=True)
class CompiledEffect:
    """What becomes true or false, always or where one of the queries of `condition` has an answer."""

    predicate: str
    fact: Callable[[Arguments], Arguments]
    positive: bool
    condition: tuple[Query, ...] | None
    width: int

    def happens(self, facts: Facts, values: Arguments) -> bool:
        if self.condition is None:
            return True
        slots = [*values, *[None] * (self.width - len(values))]
        return any(query(facts, slots, _stop) for query in self.condition)


@dataclass(frozen=True, slots=True)
class Schema:
    """An action as the domain gives it, compiled; all games of the domain share it."""

    name: str
    parameters: tuple[Placeholder, ...]
    clauses: tuple[CompiledClause, ...]
    effects: tuple[CompiledEffect, ...]  # first those that remove
    reads: frozenset[str]
    needs: frozenset[str]  # predicates without a fact of which no clause holds


class Schemas:
    """The actions of a domain, compiled when its first game is loaded, whose facts say how many of each there are."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._schemas: list[Schema] = []

    def compiled(self, facts: Facts) -> list[Schema]:
        if not self._schemas:
            self._schemas = [_schema(action, facts) for action in self._domain.actions]
        return self._schemas


schemas_of = lru_cache(maxsize=8)(Schemas)


class GameAction:
    """An action in one game. `reads` are the changing predicates on which its possible commands depend."""

    def __init__(self, schema: Schema, text: ActionText, grammar: Grammar, narrator: Narrator, facts: Facts) -> None:
        fluents = facts.true
        self.feedback = text.feedback
        self._schema = schema
        self._clauses = [clause for clause in schema.clauses if all(facts.kinds[kind] for kind in clause.kinds)]
        self._command = text.command
        self._narrator = narrator
        names, predicates = _reads(text.command, grammar, {name for name, _ in schema.parameters})
        self._named = [i for i, (name, _) in enumerate(schema.parameters) if names is None or name in names]
        self.reads = sorted((schema.reads | predicates).intersection(fluents))
        self._needs = sorted(schema.needs.intersection(fluents))
        self._text_is_fixed = predicates.isdisjoint(fluents)
        self._texts: dict[Arguments, str] = {}
        self._answers: dict[tuple[tuple[Arguments, ...], ...], dict[str, Arguments]] = {}

    def commands(self, facts: Facts) -> dict[str, Arguments]:
        """All commands that are possible now, with the values of the parameters; of equal commands the first counts.

        The answer is remembered where it depends on a few facts only. It must not be changed.
        """
        true = facts.true
        for predicate in self._needs:
            if not true[predicate]:
                return NO_COMMANDS
        read = [true[predicate] for predicate in self.reads]
        if sum(map(len, read)) > FEW:
            return self._find(facts)
        key = tuple(map(tuple, read))
        if key not in self._answers:
            if len(self._answers) >= REMEMBERED:
                self._answers.clear()
            self._answers[key] = self._find(facts)
        return self._answers[key]

    def _find(self, facts: Facts) -> dict[str, Arguments]:
        values: dict[Arguments, None] = {}
        size = len(self._schema.parameters)
        for clause in self._clauses:

            def found(slots: Slots, clause: CompiledClause = clause) -> bool:
                if not clause.idle or clause.changes_something(slots):
                    values[tuple(slots[:size])] = None
                return False

            clause.query(facts, [None] * clause.width, found)
        commands: dict[str, Arguments] = {}
        for arguments in values:
            text = self._text(arguments, facts)
            commands[text] = min(commands[text], arguments) if text in commands else arguments
        return commands

    def scope(self, values: Arguments) -> Scope:
        return dict(zip(self._schema.parameters, values, strict=True))

    def apply(self, facts: Facts, values: Arguments) -> set[str]:
        """Make the action's effects true and return the predicates that changed; what is added wins over what is removed."""
        changes = {
            (effect.predicate, effect.fact(values)): effect.positive
            for effect in self._schema.effects
            if effect.happens(facts, values)
        }
        changed = set()
        for (predicate, fact), positive in changes.items():
            negation = NEGATION + predicate
            if (facts.add if positive else facts.remove)(predicate, fact):
                changed.add(predicate)
            if negation in facts.true and (facts.remove if positive else facts.add)(negation, fact):
                changed.add(negation)
        return changed

    def _text(self, values: Arguments, facts: Facts) -> str:
        if not self._text_is_fixed:
            return self._narrator.say(self._command, self.scope(values), facts)
        key = tuple([values[i] for i in self._named])
        if key not in self._texts:
            self._texts[key] = self._narrator.say(self._command, self.scope(values), facts)
        return self._texts[key]


def compile_clause(
    clause: Clause, facts: Facts, parameters: Typed = (), bound: bool = False
) -> tuple[Query, dict[Hashable, int]]:
    """Compile a clause; its parameters, which have the first slots, are `bound` or are to be found."""
    names = [name for name, _ in parameters]
    compiler = Compiler(dict(parameters + clause.variables), facts)
    conditions = [Condition(literal.predicate, literal.arguments, literal.positive) for literal in clause.literals]
    return compiler.compile(conditions, names, bound, compiler.kinds), compiler.slots


def _schema(action: Action, facts: Facts) -> Schema:
    clauses = []
    for clause in action.clauses:
        query, slots = compile_clause(clause, facts, action.parameters)
        kinds = frozenset(kind for _, kind in action.parameters + clause.variables)
        clauses.append(CompiledClause(query, len(slots), kinds, tuple(_idle(action, clause, slots))))
    return Schema(
        name=action.name,
        parameters=tuple((name.strip("?"), kind) for name, kind in action.parameters),
        clauses=tuple(clauses),
        effects=tuple(_effect(effect, facts, action.parameters) for effect in sorted(action.effects, key=_adds)),
        reads=frozenset(literal.predicate for clause in action.clauses for literal in clause.literals),
        needs=frozenset.intersection(*(_needs(clause) for clause in action.clauses)) if action.clauses else frozenset(),
    )


def _needs(clause: Clause) -> frozenset[str]:
    return frozenset(literal.predicate for literal in clause.literals if literal.positive and literal.predicate != EQUALS)


def _effect(effect: Effect, facts: Facts, parameters: Typed) -> CompiledEffect:
    slots = {name: slot for slot, (name, _) in enumerate(parameters)}
    condition, width = None, 0
    if effect.condition is not None:
        compiled = [compile_clause(clause, facts, parameters, bound=True) for clause in effect.condition]
        condition, width = tuple(query for query, _ in compiled), max(len(slots) for _, slots in compiled)
    arguments = tuple(slots.get(argument, argument) for argument in effect.literal.arguments)
    return CompiledEffect(
        effect.literal.predicate, getter(arguments, always_tuple=True), effect.literal.positive, condition, width
    )


def _adds(effect: Effect) -> bool:
    return effect.literal.positive


def _idle(action: Action, clause: Clause, slots: Mapping[Hashable, int]) -> Iterator[Equalities]:
    """When the action changes nothing: all its effects are among its conditions, or undone by the same action."""
    reasons = []
    for effect in action.effects:
        same = [literal for literal in clause.literals if _alike(literal, effect.literal, effect.literal.positive)]
        if not effect.literal.positive:
            same += [
                e.literal for e in action.effects if e.condition == effect.condition and _alike(e.literal, effect.literal)
            ]
        reasons.append([_equalities(literal, effect.literal, slots) for literal in same])
    for combination in product(*reasons):
        yield tuple(dict.fromkeys(pair for equalities in combination for pair in equalities))


def _alike(literal: Literal, other: Literal, positive: bool = True) -> bool:
    return literal.predicate == other.predicate and literal.positive is positive


def _equalities(literal: Literal, other: Literal, slots: Mapping[Hashable, int]) -> Equalities:
    pairs = zip(literal.arguments, other.arguments, strict=True)
    terms = [sorted((slots.get(a, a), slots.get(b, b)), key=str) for a, b in pairs if a != b]
    return tuple((a, b) for a, b in terms)


def _reads(text: Text, grammar: Grammar, parameters: Collection[str]) -> tuple[set[str] | None, set[str]]:
    """The variables that a text depends on (None: on all), and the predicates."""
    names: set[str] = set()
    predicates: set[str] = set()
    waiting, seen = list(text), set()
    while waiting:
        symbol = waiting.pop()
        queries = []
        if isinstance(symbol, Each):
            queries.append(symbol.query)
            if isinstance(symbol.content, Rule):
                waiting.append(symbol.content)
            else:
                names |= set(_variables(symbol.content))
            if symbol.listed:
                waiting += [Rule("list_empty"), Rule("list_separator"), Rule("list_last_separator")]
        elif isinstance(symbol, Rule) and symbol not in seen:
            seen.add(symbol)
            for alternative in grammar.rules.get(symbol.name, ()):
                queries.append(alternative.condition)
                waiting += alternative.text
        atoms = [atom for query in queries if query for atom in query.atoms]
        predicates |= {atom.predicate for atom in atoms}
        names |= {name for atom in atoms for name, _ in atom.arguments}
    return (names if names <= set(parameters) else None), predicates


def _variables(value: Value) -> Iterator[str]:
    if isinstance(value, Attribute):
        yield value.variable
    elif isinstance(value, Operation):
        for operand in value.operands:
            yield from _variables(operand)


def _value(term: Term, slots: Sequence) -> str:
    return slots[term] if isinstance(term, int) else term


def _stop(slots: Slots) -> bool:
    return True
