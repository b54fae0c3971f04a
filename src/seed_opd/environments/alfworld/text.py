"""Saying the texts of a grammar about the facts of a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from seed_opd.environments.alfworld.grammar import (
    Alternative,
    Attribute,
    Conjunction,
    Grammar,
    Placeholder,
    Rule,
    Symbol,
    Text,
    Value,
)
from seed_opd.environments.alfworld.query import Compiler, Condition, Facts, Query, Slots
from seed_opd.errors import UserError

Scope = dict[Placeholder, str]  # what each placeholder stands for, in the order in which they were bound


@dataclass(frozen=True, slots=True)
class Entity:
    """An object as expressions see it."""

    id: str
    type: str
    name: str
    definite: str = "the"
    indefinite: str = "a"


class Narrator:
    """Says the texts of one game."""

    def __init__(self, grammar: Grammar, entities: Mapping[str, Entity]) -> None:
        self._rules = grammar.rules
        self._entities = entities

    def say(self, text: Text, scope: Scope, facts: Facts) -> str:
        return "".join([symbol if isinstance(symbol, str) else self._say(symbol, scope, facts) for symbol in text])

    def _say(self, symbol: Symbol, scope: Scope, facts: Facts) -> str:
        if isinstance(symbol, str):
            return symbol
        if isinstance(symbol, Rule):
            return self.say(self._alternative(symbol.name, scope, facts).text, scope, facts)
        scopes = self._answers(symbol.query, scope, facts) if symbol.query else [scope]
        content = symbol.content
        if isinstance(content, Rule):
            said = [self._say(content, inner, facts) for inner in scopes]
        else:
            said = [self._evaluate(content, inner) for inner in scopes]
        return self._list(said, scope, facts) if symbol.listed else "".join(said)

    def _list(self, items: list[str], scope: Scope, facts: Facts) -> str:
        if not items:
            return self._say(Rule("list_empty"), scope, facts)
        if len(items) == 1:
            return items[0]
        separator = self._say(Rule("list_separator"), scope, facts) if len(items) > 2 else ""
        return separator.join(items[:-1]) + self._say(Rule("list_last_separator"), scope, facts) + items[-1]

    def _alternative(self, rule: str, scope: Scope, facts: Facts) -> Alternative:
        for alternative in self._rules.get(rule, ()):
            if not alternative.condition or self._has_answer(alternative.condition, scope, facts):
                return alternative
        raise UserError(f"grammar: there is no rule {rule!r} that can be used here.")

    def _evaluate(self, value: Value, scope: Scope) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, Attribute):
            return getattr(self._entity(value.variable, scope), value.attribute)
        if value.operator == "+":
            return "".join([self._evaluate(operand, scope) for operand in value.operands])
        said = [self._evaluate(operand, scope) for operand in value.operands]
        return next(filter(None, said), said[-1])

    def _entity(self, variable: str, scope: Scope) -> Entity:
        for (name, _), identifier in reversed(scope.items()):
            if name == variable:
                return self._entities[identifier]
        raise UserError(f"grammar: there is nothing that {variable!r} stands for in an expression.")

    def _answers(self, question: Conjunction, scope: Scope, facts: Facts) -> list[Scope]:
        query, variables = _compiled(question, tuple(scope))
        answers: list[Scope] = []

        def found(slots: Slots) -> bool:
            answers.append(dict(zip(variables, slots, strict=True)))
            return False

        query(facts, [*scope.values(), *[None] * (len(variables) - len(scope))], found)
        return answers

    def _has_answer(self, question: Conjunction, scope: Scope, facts: Facts) -> bool:
        query, variables = _compiled(question, tuple(scope))
        return query(facts, [*scope.values(), *[None] * (len(variables) - len(scope))], _stop)


@lru_cache(maxsize=4096)
def _compiled(question: Conjunction, bound: tuple[Placeholder, ...]) -> tuple[Query, tuple[Placeholder, ...]]:
    """The query, and what stands in its slots: first what is bound, then the others in the order of their first use."""
    variables = tuple(dict.fromkeys([*bound, *(placeholder for atom in question.atoms for placeholder in atom.arguments)]))
    compiler = Compiler({placeholder: placeholder[1] for placeholder in variables})
    return compiler.compile([Condition(atom.predicate, atom.arguments) for atom in question.atoms], bound), variables


def _stop(slots: Slots) -> bool:
    return True
