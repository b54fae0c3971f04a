"""The actions of one game, compiled: where they are possible, what they are called and what they change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from seed_opd.environments.alfworld.grammar import ActionText, Attribute, Each, Grammar, Operation, Rule, Text, Value
from seed_opd.environments.alfworld.pddl import Action, Arguments, Clause, Literal, Typed
from seed_opd.environments.alfworld.query import Compiler, Condition, Facts, Query, Slots
from seed_opd.environments.alfworld.text import Narrator, Scope

Kinds = Callable[[str], Collection[str] | None]  # the objects of a type; None for all objects
Term = int | str  # a slot, or an object by its identifier
Equalities = tuple[tuple[Term, Term], ...]

FEW = 2  # facts that an answer may depend on to be remembered
REMEMBERED = 64  # answers kept per action and game
NEGATION = "not_"  # in front of a predicate: an action has made this fact false


@dataclass(frozen=True, slots=True)
class CompiledClause:
    """One way in which an action is possible. It changes nothing where all pairs of one of the `idle` lists are equal."""

    query: Query
    width: int
    idle: tuple[Equalities, ...]

    def changes_something(self, slots: Slots) -> bool:
        return not any(all(_value(a, slots) == _value(b, slots) for a, b in equalities) for equalities in self.idle)


@dataclass(frozen=True, slots=True)
class CompiledEffect:
    predicate: str
    arguments: tuple[Term, ...]
    positive: bool
    condition: tuple[Query, ...] | None
    width: int

    def happens(self, facts: Facts, values: Arguments) -> bool:
        slots = [*values, *[None] * (self.width - len(values))]
        return self.condition is None or any(query(facts, slots, _stop) for query in self.condition)

    def fact(self, values: Arguments) -> Arguments:
        return tuple([_value(term, values) for term in self.arguments])


class CompiledAction:
    """An action of one game. `reads` are the changing predicates on which its possible commands depend."""

    def __init__(
        self, action: Action, text: ActionText, grammar: Grammar, compile_: ClauseCompiler, narrator: Narrator
    ) -> None:
        self.name = action.name
        self.parameters = [(name.strip("?"), kind) for name, kind in action.parameters]
        self.feedback = text.feedback
        self._command = text.command
        self._narrator = narrator
        self._size = len(action.parameters)
        self._clauses = [compile_.clause(clause, action) for clause in action.clauses if compile_.can_hold(clause, action)]
        self._effects = [compile_.effect(effect.literal, effect.condition, action.parameters) for effect in action.effects]
        names, predicates = _reads(text.command, grammar, {name for name, _ in self.parameters})
        self._named = [i for i, (name, _) in enumerate(self.parameters) if names is None or name in names]
        self.reads = predicates | {literal.predicate for clause in action.clauses for literal in clause.literals}
        self.reads &= compile_.fluents
        self._remembers = not predicates & compile_.fluents
        self._commands: dict[Arguments, str] = {}
        self._reads_in_order = sorted(self.reads)
        self._answers: dict[tuple[tuple[Arguments, ...], ...], dict[str, Arguments]] = {}

    def commands(self, facts: Facts) -> dict[str, Arguments]:
        """All commands that are possible now, with the values of the parameters; of equal commands the first counts.

        The answer is remembered where it depends on a few facts only. It must not be changed.
        """
        read = [facts.true[predicate] for predicate in self._reads_in_order]
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
        size = self._size
        for clause in self._clauses:

            def found(slots: Slots, clause: CompiledClause = clause) -> bool:
                if not clause.idle or clause.changes_something(slots):
                    values[tuple(slots[:size])] = None
                return False

            clause.query(facts, [None] * clause.width, found)
        commands: dict[str, Arguments] = {}
        for arguments in values:
            commands.setdefault(self._text(arguments, facts), arguments)
        return commands

    def scope(self, values: Arguments) -> Scope:
        return dict(zip(self.parameters, values, strict=True))

    def apply(self, facts: Facts, values: Arguments) -> set[str]:
        """Make the action's effects true and return the predicates that changed; what is added wins over what is removed."""
        happening = [effect for effect in self._effects if effect.happens(facts, values)]
        changes = {(effect.predicate, effect.fact(values)): False for effect in happening if not effect.positive}
        changes.update({(effect.predicate, effect.fact(values)): True for effect in happening if effect.positive})
        changed = set()
        for (predicate, fact), positive in changes.items():
            negation = NEGATION + predicate
            if (facts.add if positive else facts.remove)(predicate, fact):
                changed.add(predicate)
            if negation in facts.true and (facts.remove if positive else facts.add)(negation, fact):
                changed.add(negation)
        return changed

    def _text(self, values: Arguments, facts: Facts) -> str:
        if not self._remembers:
            return self._narrator.say(self._command, self.scope(values), facts)
        key = tuple([values[i] for i in self._named])
        if key not in self._commands:
            self._commands[key] = self._narrator.say(self._command, self.scope(values), facts)
        return self._commands[key]


@dataclass(frozen=True, slots=True)
class ClauseCompiler:
    """Compiles clauses and effects against the initial facts of a game."""

    facts: Facts
    kinds: Kinds
    everything: Collection[str]
    fluents: frozenset[str]

    def can_hold(self, clause: Clause, action: Action | None = None) -> bool:
        """Whether there are objects for all variables."""
        variables = clause.variables + (action.parameters if action else ())
        return all(self.kinds(kind) is None or self.kinds(kind) for _, kind in variables)

    def clause(self, clause: Clause, action: Action) -> CompiledClause:
        query, slots = self.query(clause, action.parameters)
        return CompiledClause(query, len(slots), tuple(_idle(action, clause, slots)))

    def query(self, clause: Clause, parameters: Typed, bound: bool = False) -> tuple[Query, dict]:
        """Compile a clause whose parameters, in the first slots, are bound or are to be found."""
        kinds: dict[Hashable, Collection[str] | None] = {
            name: self.kinds(kind) for name, kind in parameters + clause.variables
        }
        compiler = Compiler(self.facts, kinds, self.everything)
        names = [name for name, _ in parameters]
        conditions = [Condition(literal.predicate, literal.arguments, literal.positive) for literal in clause.literals]
        return compiler.compile(conditions, names, bound, [*names, *kinds]), compiler.slots

    def effect(self, literal: Literal, condition: tuple[Clause, ...] | None, parameters: Typed) -> CompiledEffect:
        slots = {name: slot for slot, (name, _) in enumerate(parameters)}
        queries, width = None, 0
        if condition is not None:
            compiled = [self.query(clause, parameters, bound=True) for clause in condition if self.can_hold(clause)]
            queries, width = tuple(query for query, _ in compiled), max((len(s) for _, s in compiled), default=0)
        arguments = tuple(slots.get(argument, argument) for argument in literal.arguments)
        return CompiledEffect(literal.predicate, arguments, literal.positive, queries, width)


def _idle(action: Action, clause: Clause, slots: dict[str, int]) -> Iterator[Equalities]:
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


def _equalities(literal: Literal, other: Literal, slots: dict[str, int]) -> Equalities:
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
