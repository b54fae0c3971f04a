"""PDDL domains and problems, read into conjunctive clauses.

Understood is what household domains use: types, constants, `and`, `or`, `not`, `imply`, `exists`, `=`, `when` and action
costs (which are ignored). `forall` is refused with a clear error. A condition becomes its disjunctive normal form, so that
every action is a handful of conjunctive queries. As in Fast Downward, whose reading defines the original environment, all
text is lower-cased and every type is a kind of `object`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, product
from typing import Any

from seed_opd.errors import UserError

Expression = list[Any]  # nested lists of strings
Typed = tuple[tuple[str, str], ...]  # (name, type) pairs
Arguments = tuple[str, ...]

EQUALS = "="
OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Literal:
    """An atom or its negation; arguments that start with "?" are variables."""

    predicate: str
    arguments: Arguments
    positive: bool = True


@dataclass(frozen=True, slots=True)
class Clause:
    """A conjunction of literals; `variables` are those that exist only here, with their types."""

    literals: tuple[Literal, ...]
    variables: Typed = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """A literal that becomes true if one of the clauses of `condition` holds; None means always."""

    literal: Literal
    condition: tuple[Clause, ...] | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """An action is possible where one of its clauses holds."""

    name: str
    parameters: Typed
    clauses: tuple[Clause, ...]
    effects: tuple[Effect, ...]


@dataclass(frozen=True, eq=False)
class Domain:
    """`parents` leads from a type to the type that it is a kind of; `fluents` are the predicates that actions change."""

    name: str
    parents: dict[str, str]
    constants: Typed
    actions: tuple[Action, ...]
    fluents: frozenset[str]


@dataclass(frozen=True, slots=True)
class Problem:
    """`goal` is a conjunction of parts, each a disjunction of clauses."""

    objects: Typed
    initial: tuple[tuple[str, Arguments], ...]
    goal: tuple[tuple[Clause, ...], ...]


@lru_cache(maxsize=8)
def parse_domain(text: str) -> Domain:
    """Read a domain; the last few texts are remembered. Raises UserError for what is not understood."""
    name, sections, actions = "", {}, []
    for section in _definition(text, "domain"):
        match section:
            case ["domain", str(name)]:
                pass
            case [":action", *rest]:
                actions.append(_action(rest))
            case [str(key), *rest]:
                sections[key] = rest
            case _:
                raise UserError(f"pddl domain: {_show(section)} is not a section.")
    actions = [action for action in actions if action.effects]
    return Domain(
        name=name,
        parents=dict(_typed(sections.get(":types", []))),
        constants=_typed(sections.get(":constants", [])),
        actions=tuple(actions),
        fluents=frozenset(effect.literal.predicate for action in actions for effect in action.effects),
    )


def parse_problem(text: str) -> Problem:
    """Read a problem. Raises UserError for what is not understood."""
    sections = {section[0]: section[1:] for section in _definition(text, "problem") if section}
    if len(sections.get(":goal", ())) != 1:
        raise UserError("pddl problem: exactly one goal is needed in (:goal ...).")
    goal = sections[":goal"][0]
    parts = goal[1:] if goal[:1] == ["and"] else [goal]
    names = count()
    return Problem(
        objects=_typed(sections.get(":objects", [])),
        initial=tuple((atom.predicate, atom.arguments) for atom in map(_fact, sections.get(":init", ())) if atom),
        goal=tuple(tuple(_clauses(part, {}, names)) for part in parts),
    )


def parse_expression(text: str) -> Expression:
    """Read one parenthesised expression as nested lists. Raises UserError if the parentheses do not match."""
    if ";" in text:
        text = re.sub(";.*", "", text)
    tokens = text.lower().replace("(", " ( ").replace(")", " ) ").replace("?", " ?").split()
    # The words are written as JSON, since its reader builds the nested lists many times faster than a loop here.
    written = json.dumps(tokens)[1:-1].replace('"(", ', "[").replace('[")"', "[]").replace(', ")"', "]")
    try:
        expression = json.loads(written)
    except (ValueError, RecursionError):
        expression = None
    if not isinstance(expression, list):
        raise UserError("pddl: the text must be one expression in parentheses, each of them closed.")
    return expression


def _definition(text: str, kind: str) -> Expression:
    expression = parse_expression(text)
    if expression[:1] != ["define"] or not all(isinstance(section, list) for section in expression[1:]):
        raise UserError(f"pddl {kind}: the text must be (define ({kind} NAME) ...).")
    return expression[1:]


def _typed(items: Sequence[Any]) -> Typed:
    """Read `a b - type c - other`; what has no type is an object."""
    result: list[tuple[str, str]] = []
    waiting: list[str] = []
    tokens = iter(items)
    for item in tokens:
        if item == "-":
            kind = next(tokens, None)
            if not isinstance(kind, str):
                raise UserError(f"pddl: a plain type is needed after '-' in {_show(list(items))}.")
            for name in waiting:
                result.append((name, kind))
            waiting = []
        elif isinstance(item, str):
            waiting.append(item)
        else:
            raise UserError(f"pddl: {_show(item)} is not a name in a typed list.")
    return tuple(result + [(name, OBJECT) for name in waiting])


def _action(parts: Expression) -> Action:
    name, fields = parts[0], dict(zip(parts[1::2], parts[2::2], strict=False))
    names = count()
    precondition = fields.get(":precondition") or ["and"]
    return Action(
        name=name,
        parameters=_typed(fields.get(":parameters", [])),
        clauses=tuple(_clauses(precondition, {}, names)),
        effects=tuple(_effects(fields.get(":effect") or ["and"], None, names)),
    )


def _effects(expression: Expression, condition: tuple[Clause, ...] | None, names: Iterator[int]) -> Iterator[Effect]:
    match expression:
        case ["and", *parts]:
            for part in parts:
                yield from _effects(part, condition, names)
        case ["when", list(when), list(effect)] if condition is None:
            yield from _effects(effect, tuple(_clauses(when, {}, names)), names)
        case ["increase", *_]:
            pass  # costs matter to a planner only
        case ["forall" | "when", *_]:
            raise UserError(f"pddl effect: {_show(expression)} is not supported; write plain or singly conditional effects.")
        case ["not", list(atom)]:
            yield Effect(_literal(atom, {}, positive=False), condition)
        case _:
            yield Effect(_literal(expression, {}, positive=True), condition)


def _clauses(expression: Expression, renamed: dict[str, str], names: Iterator[int], positive: bool = True) -> list[Clause]:
    """The disjunctive normal form of a condition, or of its negation; quantified variables get names of their own."""
    match expression:
        case ["not", list(part)]:
            return _clauses(part, renamed, names, not positive)
        case ["imply", list(left), list(right)]:
            return _clauses(["or", ["not", left], right], renamed, names, positive)
        case ["and" | "or" as word, *parts]:
            choices = [_clauses(part, renamed, names, positive) for part in parts]
            if (word == "and") == positive:
                return [_conjunction(combination) for combination in product(*choices)]
            return [clause for choice in choices for clause in choice]
        case ["exists", list(variables), list(part)] if positive:
            fresh = tuple((f"{name}@{next(names)}", kind) for name, kind in _typed(variables))
            inner = renamed | {old: new for (old, _), (new, _) in zip(_typed(variables), fresh, strict=True)}
            return [Clause(c.literals, fresh + c.variables) for c in _clauses(part, inner, names)]
        case ["exists" | "forall", *_]:
            raise UserError(f"pddl condition: {_show(expression)} is universal, which is not supported.")
        case _:
            return [Clause((_literal(expression, renamed, positive),))]


def _conjunction(clauses: Sequence[Clause]) -> Clause:
    literals = dict.fromkeys(literal for clause in clauses for literal in clause.literals)
    return Clause(tuple(literals), tuple(variable for clause in clauses for variable in clause.variables))


def _literal(expression: Expression, renamed: dict[str, str], positive: bool) -> Literal:
    if not isinstance(expression, list) or not expression or not all(isinstance(part, str) for part in expression):
        raise UserError(f"pddl: {_show(expression)} is not an atom.")
    predicate, *terms = map(str, expression)
    return Literal(predicate, tuple([renamed.get(term, term) for term in terms]), positive)


def _fact(expression: Any) -> Literal | None:
    """An initial fact; None for what needs no telling: an assigned cost, or that something is false."""
    if expression[:1] in ([EQUALS], ["not"]):
        return None
    return _literal(expression, {}, positive=True)


def _show(expression: Any) -> str:
    if isinstance(expression, list):
        text = "(" + " ".join(map(_show, expression)) + ")"
        return text if len(text) < 80 else text[:76] + "...)"
    return str(expression)
