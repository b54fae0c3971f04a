"""Facts with indexes, and conjunctive queries compiled to chains of small functions.

A compiled query walks its literals in order. Each step either scans the facts that match what is bound so far, or tests one
literal whose arguments are all bound, or tries all objects of a type. At the end of the chain the caller's function gets the
slots with all variables bound; it returns True to stop the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from seed_opd.environments.alfworld.pddl import EQUALS, OBJECT, Arguments

Pattern = tuple[str, tuple[int, ...]]  # a predicate and the positions that are looked up
Index = dict[Any, dict[Arguments, None]]
Slots = list[Any]
Found = Callable[[Slots], bool]
Query = Callable[["Facts", Slots, Found], bool]
New = tuple[int, int, str | None]  # the position of a variable met first, its slot, its type if not all objects have it
Again = tuple[int, int]  # the position of a variable met again within the same literal, and its slot

NOTHING: dict[Any, None] = {}


class Kinds(dict[str, dict[str, None]]):
    """The objects of each type, those of its subtypes included; an unknown type has none."""

    def __missing__(self, kind: str) -> dict[str, None]:
        return NOTHING


class Facts(dict[Pattern, Index]):
    """The facts that are true, by predicate (`true`), and indexes over them, each made when it is first asked for.

    Predicates that never change are looked up in `static`, which is shared. Dictionaries stand for ordered sets, so that
    nothing depends on the hash seed of the process.
    """

    def __init__(self, true: dict[str, dict[Arguments, None]], kinds: Kinds, static: Facts | None = None) -> None:
        super().__init__()
        self.true = true
        self.kinds = kinds
        self.static = static
        self._indexed: dict[str, list[tuple[int, ...]]] = {}

    def __missing__(self, pattern: Pattern) -> Index:
        predicate, positions = pattern
        if predicate not in self.true and self.static is not None:
            index = self.static[pattern]
        else:
            index = {}
            for fact in self.true.get(predicate, NOTHING):
                index.setdefault(_key(fact, positions), {})[fact] = None
            self._indexed.setdefault(predicate, []).append(positions)
        self[pattern] = index
        return index

    def of(self, predicate: str) -> Collection[Arguments]:
        if predicate in self.true or self.static is None:
            return self.true.get(predicate, NOTHING)
        return self.static.of(predicate)

    def add(self, predicate: str, fact: Arguments) -> bool:
        """Make a fact true, and say whether it was not."""
        facts = self.true[predicate]
        if fact in facts:
            return False
        facts[fact] = None
        for positions in self._indexed.get(predicate, ()):
            self[predicate, positions].setdefault(_key(fact, positions), {})[fact] = None
        return True

    def remove(self, predicate: str, fact: Arguments) -> bool:
        """Make a fact false, and say whether it was not."""
        facts = self.true[predicate]
        if fact not in facts:
            return False
        del facts[fact]
        for positions in self._indexed.get(predicate, ()):
            del self[predicate, positions][_key(fact, positions)][fact]
        return True

    def copy(self) -> Facts:
        """The same facts, which from now on change on their own; what is static stays shared."""
        return Facts({predicate: dict(facts) for predicate, facts in self.true.items()}, self.kinds, self.static)


def _key(fact: Arguments, positions: tuple[int, ...]) -> Any:
    return fact[positions[0]] if len(positions) == 1 else tuple(fact[i] for i in positions)


@dataclass(frozen=True, slots=True)
class Condition:
    """A literal for the compiler; an argument is a variable if it has a slot or a type, and else an object."""

    predicate: str
    arguments: tuple[Hashable, ...]
    positive: bool = True


@dataclass(slots=True)
class Compiler:
    """Compiles queries, for any game whose predicates and types have the same names.

    `kinds` gives the type of every variable. With `facts` of a typical state, the literals are walked in the order that
    promises the fewest facts. Without, they are walked as they are written, through sorted facts, and no two variables
    share an object: this is how TextWorld answers.
    """

    kinds: Mapping[Hashable, str]
    facts: Facts | None = None
    slots: dict[Hashable, int] = field(default_factory=dict)
    unbound: set[Hashable] = field(default_factory=set)

    def compile(
        self, literals: Iterable[Condition], first: Sequence[Hashable], bound: bool = True, wanted: Iterable[Hashable] = ()
    ) -> Query:
        """Compile a conjunction.

        The variables in `first` have the first slots, and their values there beforehand if they are `bound`; `wanted`
        variables get a value even if no literal has them.
        """
        self.slots = {variable: slot for slot, variable in enumerate(first)}
        self.unbound = set() if bound else set(first)
        steps: list[Callable[[Query], Query]] = []
        waiting = list(literals)
        while waiting:
            literal = self._next(waiting)
            if literal is None:
                variables = [v for literal in waiting for v in literal.arguments if self._free(v)]
                steps.append(self._try_all(variables[0]))
                continue
            waiting.remove(literal)
            steps.append(self._test(literal) if self._bound(literal) else self._scan(literal))
        steps += [self._try_all(variable) for variable in wanted if self._free(variable)]
        query: Query = _report
        for step in reversed(steps):
            query = step(query)
        return query

    def _free(self, argument: Hashable) -> bool:
        return argument in self.unbound or (argument in self.kinds and argument not in self.slots)

    def _bind(self, variable: Hashable) -> int:
        self.unbound.discard(variable)
        return self.slots.setdefault(variable, len(self.slots))

    def _bound(self, literal: Condition) -> bool:
        return not any(map(self._free, literal.arguments))

    def _next(self, waiting: Sequence[Condition]) -> Condition | None:
        """The literal to walk next: a test if there is one, else the scan that promises the fewest facts."""
        if self.facts is None:
            return waiting[0]
        best, least = None, math.inf
        for literal in waiting:
            free = sum(map(self._free, literal.arguments))
            if not free:
                return literal
            if literal.positive and literal.predicate != EQUALS:
                expected = len(self.facts.of(literal.predicate)) / 20 ** (len(literal.arguments) - free)
                if expected < least:
                    best, least = literal, expected
        return best

    def _test(self, literal: Condition) -> Callable[[Query], Query]:
        predicate, positive = literal.predicate, literal.positive
        values = self._getter(literal.arguments, always_tuple=True)
        if predicate == EQUALS:
            return lambda then: (
                lambda facts, slots, found: (len(set(values(slots))) == 1) is positive and then(facts, slots, found)
            )
        everywhere = tuple(range(len(literal.arguments)))
        if len(everywhere) == 1:
            values = self._getter(literal.arguments)
        return lambda then: (
            lambda facts, slots, found: (
                bool(facts[predicate, everywhere].get(values(slots))) is positive and then(facts, slots, found)
            )
        )

    def _scan(self, literal: Condition) -> Callable[[Query], Query]:
        positions = tuple(i for i, argument in enumerate(literal.arguments) if not self._free(argument))
        pattern = (literal.predicate, positions)
        key = self._getter([literal.arguments[i] for i in positions])
        new: list[New] = []
        again: list[Again] = []
        for i, argument in enumerate(literal.arguments):
            if self._free(argument):
                kind = self.kinds[argument]
                new.append((i, self._bind(argument), None if kind == OBJECT else kind))
            elif i not in positions:
                again.append((i, self.slots[argument]))
        if self.facts is None:
            return lambda then: _sorted_scan(pattern, key, new, again, then)
        return lambda then: _scan(pattern, key, new, again, then)

    def _try_all(self, variable: Hashable) -> Callable[[Query], Query]:
        kind, slot = self.kinds[variable], self._bind(variable)

        def step(then: Query) -> Query:
            def run(facts: Facts, slots: Slots, found: Found) -> bool:
                for member in facts.kinds[kind]:
                    slots[slot] = member
                    if then(facts, slots, found):
                        return True
                return False

            return run

        return step

    def _getter(self, arguments: Sequence[Hashable], always_tuple: bool = False) -> Callable[[Slots], Any]:
        return getter([self.slots.get(argument, argument) for argument in arguments], always_tuple)


def getter(places: Sequence[Any], always_tuple: bool = False) -> Callable[[Sequence[Any]], Any]:
    """A function that reads slots: the value of one place as it is, of several as a tuple; a text stands for itself."""
    if all(isinstance(place, int) for place in places) and len(places) > always_tuple:
        return itemgetter(*places)
    if len(places) == 1 and not always_tuple:
        return lambda slots: places[0]
    return lambda slots: tuple([slots[place] if isinstance(place, int) else place for place in places])


def _scan(pattern: Pattern, key: Callable[[Slots], Any], new: list[New], again: list[Again], then: Query) -> Query:
    def run(facts: Facts, slots: Slots, found: Found) -> bool:
        for fact in facts[pattern].get(key(slots), NOTHING):
            for position, slot, kind in new:
                value = fact[position]
                if kind is not None and value not in facts.kinds[kind]:
                    break
                slots[slot] = value
            else:
                if (not again or _same(fact, slots, again)) and then(facts, slots, found):
                    return True
        return False

    return run


def _sorted_scan(pattern: Pattern, key: Callable[[Slots], Any], new: list[New], again: list[Again], then: Query) -> Query:
    def run(facts: Facts, slots: Slots, found: Found) -> bool:
        for fact in sorted(facts[pattern].get(key(slots), NOTHING)):
            for position, slot, kind in new:
                value = fact[position]
                if value in slots[:slot] or (kind is not None and value not in facts.kinds[kind]):
                    break
                slots[slot] = value
            else:
                if (not again or _same(fact, slots, again)) and then(facts, slots, found):
                    return True
        return False

    return run


def _same(fact: Arguments, slots: Slots, again: list[Again]) -> bool:
    return all(fact[position] == slots[slot] for position, slot in again)


def _report(facts: Facts, slots: Slots, found: Found) -> bool:
    return found(slots)
