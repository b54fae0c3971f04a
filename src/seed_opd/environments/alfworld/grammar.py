"""The text grammar of a game (twl2): what each action is called and what is said after it.

A text is a sequence of symbols: plain text, `#rule#`, `{expression}`, `{expression or #rule# | query}` (once per answer of
the query) and the same in brackets (the answers as a list, with the separators of the grammar). Expressions are read by the
small parser below and never handed to Python's own evaluation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from seed_opd.errors import UserError

Placeholder = tuple[str, str]  # name and type; the same name with another type is another placeholder


@dataclass(frozen=True, slots=True)
class Atom:
    """One part of a query."""

    predicate: str
    arguments: tuple[Placeholder, ...]


@dataclass(frozen=True, eq=False)
class Conjunction:
    """A query: it has an answer for every way in which all its atoms are true. Equal texts are read as the same object."""

    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """`variable.attribute` of an expression; a variable alone means its name."""

    variable: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Operation:
    """`+` joins texts, `or` takes the first that is not empty."""

    operator: str
    operands: tuple[Value, ...]


Value = str | Attribute | Operation


@dataclass(frozen=True, slots=True)
class Rule:
    """A reference to a rule of the grammar."""

    name: str


@dataclass(frozen=True, slots=True)
class Each:
    """What is said for each answer of a query, or once if there is no query; as a list if `listed`."""

    content: Rule | Value
    query: Conjunction | None
    listed: bool = False


Symbol = str | Rule | Each
Text = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One right-hand side of a rule, used where it is the first whose condition has an answer."""

    condition: Conjunction | None
    text: Text


@dataclass(frozen=True, slots=True)
class ActionText:
    """What an action is called, and what is said after it."""

    command: Text
    feedback: Text


@dataclass(frozen=True, slots=True)
class Grammar:
    rules: dict[str, tuple[Alternative, ...]]
    actions: dict[str, ActionText]

    def atoms(self) -> Iterator[Atom]:
        """All atoms of all queries and conditions."""
        for alternatives in self.rules.values():
            for alternative in alternatives:
                yield from alternative.condition.atoms if alternative.condition else ()
                yield from _atoms(alternative.text)
        for action in self.actions.values():
            yield from _atoms(action.command + action.feedback)


# ---- the file: actions and blocks of rules

_SPACE = r"(?:\s|#.*)*"
_STRING = r'"([^"]*)"'
_BLOCK = r'"""((?:.|\n)*?)"""'
_ACTION = re.compile(rf"action\s+([\w/-]+){_SPACE}\{{{_SPACE}")
_FIELD = re.compile(rf"(template|feedback|grammar|pddl){_SPACE}::{_SPACE}(?:{_BLOCK}|{_STRING}){_SPACE};{_SPACE}")
_END = re.compile(rf"\}}{_SPACE}")
_START = re.compile(_SPACE)


def parse_grammar(text: str) -> Grammar:
    """Read a grammar. Raises UserError where it is not understood.

    Games share all but a line of their grammar, so the pieces are remembered and only what is new is read again.
    """
    rules: dict[str, tuple[Alternative, ...]] = {}
    actions: dict[str, ActionText] = {}
    position = _end(_START.match(text))
    while position < len(text):
        if action := _ACTION.match(text, position):
            fields, position = _fields(text, action.end())
            if "template" not in fields or "feedback" not in fields:
                raise UserError(f"grammar: action {action[1]} needs a template and a feedback.")
            actions[action[1].lower()] = ActionText(parse_text(fields["template"]), parse_text(fields["feedback"]))
            lines = fields.get("grammar", "{}").split("\n")
            rules.update(_parse_rules("\n".join(line for line in lines if not line.lstrip().startswith("#"))))
            position = _end(_END.match(text, position), text, position)
        else:
            field = _FIELD.match(text, position)
            position = _end(field, text, position)
            if field and field[1] == "grammar":
                rules.update(_parse_rules(field[2]))
    return Grammar(rules, actions)


def _fields(text: str, position: int) -> tuple[dict[str, str], int]:
    fields = {}
    while field := _FIELD.match(text, position):
        fields[field[1]] = field[3] if field[2] is None else field[2]
        position = field.end()
    return fields, position


def _end(match: re.Match[str] | None, text: str = "", position: int = 0) -> int:
    if match is None:
        raise UserError(
            f"grammar: line {text.count(chr(10), 0, position) + 1} is not understood: {text[position : position + 40]!r}."
        )
    return match.end()


@lru_cache(maxsize=256)
def _parse_rules(text: str) -> dict[str, tuple[Alternative, ...]]:
    try:
        rules = json.loads(text)
        return {
            name: tuple(
                Alternative(parse_query(rule.get("condition", "")), parse_text(rule["rhs"])) for rule in alternatives
            )
            for name, alternatives in rules.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"grammar: a block of rules must be JSON, each rule a list of objects with an rhs; {error}."
        ) from error


# ---- texts

_QUERY = r"(?:\s*\|\s*(?P<query>[^;|{}\n\[\]#]+))?"
_CURLY = rf"\{{(?:#(?P<inner>[\w()/!<>\-\s,.]+)#|(?P<value>[^|\[\]{{}}\n<>]+)){_QUERY}\}}"
_EACH = re.compile(_CURLY)
_LIST = re.compile(rf"\[{_CURLY}\]")
_RULE = re.compile(r"#(?P<rule>[\w()/!<>\-\s,.]+)#")
_PLAIN = re.compile(r'"([^;|"<>\[\]#{}]*)"|([^;|"<>\[\]#{}]+)')
_LEADING = re.compile(r"(?://.*\n?|\s+)*")
_TABS = re.compile(r"\t*")


@lru_cache(maxsize=4096)
def parse_text(text: str) -> Text:
    """Read a text. As in the original, space at its start is dropped, and so is all from the first symbol not understood."""
    symbols: list[Symbol] = []
    position = _end(_LEADING.match(text))
    while True:
        position = _end(_TABS.match(text, position))
        if match := _LIST.match(text, position) or _EACH.match(text, position):
            content = Rule(match["inner"]) if match["inner"] else parse_value(match["value"])
            symbols.append(Each(content, parse_query(match["query"] or ""), listed=match[0].startswith("[")))
        elif match := _RULE.match(text, position):
            symbols.append(Rule(match["rule"]))
        elif match := _PLAIN.match(text, position):
            symbols.append(match[2] or match[1] or "")
        else:
            return tuple(symbols)
        position = match.end()


def _atoms(text: Text) -> Iterator[Atom]:
    for symbol in text:
        if isinstance(symbol, Each) and symbol.query:
            yield from symbol.query.atoms


# ---- queries: p(x:type, y:type) & q(y:type)

_ATOM = re.compile(r"\s*(!?[\w/]+)\s*\(([^()]*)\)\s*(&|$)")
_PLACEHOLDER = re.compile(r"\s*([\w']+)\s*(?::\s*([\w/-]+))?\s*")


@lru_cache(maxsize=1024)
def parse_query(text: str) -> Conjunction | None:
    """Read a conjunction of atoms; None if the text is empty."""
    atoms = []
    position = 0
    while position < len(text.rstrip()):
        match = _ATOM.match(text, position)
        if not match:
            raise UserError(f"grammar: the query {text!r} is not understood from {text[position:]!r} on.")
        arguments = match[2].split(",") if match[2].strip() else []
        atoms.append(Atom(match[1], tuple(_placeholder(argument, text) for argument in arguments)))
        position = match.end()
    return Conjunction(tuple(atoms)) if atoms else None


def _placeholder(text: str, query: str) -> Placeholder:
    match = _PLACEHOLDER.fullmatch(text)
    if not match:
        raise UserError(f"grammar: {text!r} in the query {query!r} must be name:type.")
    return match[1], match[2] or match[1].rstrip("'")


# ---- expressions: a.name or a.id + ' text'

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'[^'\\]*'|"[^"\\]*")|(?P<operator>\+|or\b)|(?P<variable>[A-Za-z_]\w*)(?:\.(?P<attribute>[a-z_]+))?)\s*"""
)
ATTRIBUTES = ("id", "type", "name", "definite", "indefinite")


@lru_cache(maxsize=1024)
def parse_value(text: str) -> Value:
    """Read an expression: attributes of variables and quoted texts, joined by `+` and `or` (which binds less)."""
    choices: list[list[Value]] = [[]]
    position, operand_next = 0, True
    while position < len(text):
        token = _TOKEN.match(text, position)
        if not token or (token["operator"] is None) != operand_next:
            raise UserError(f"grammar: the expression {text!r} is not understood from {text[position:]!r} on.")
        position, operand_next = token.end(), not operand_next
        if token["operator"] == "or":
            choices.append([])
        elif token["text"]:
            choices[-1].append(token["text"][1:-1])
        elif token["variable"]:
            if (attribute := token["attribute"] or "name") not in ATTRIBUTES:
                raise UserError(
                    f"grammar: {attribute!r} in {text!r} is not an attribute; there are {', '.join(ATTRIBUTES)}."
                )
            choices[-1].append(Attribute(token["variable"], attribute))
    if operand_next:
        raise UserError(f"grammar: the expression {text!r} ends too early.")
    return _joined("or", [_joined("+", sum_) for sum_ in choices])


def _joined(operator: str, operands: list[Value]) -> Value:
    return operands[0] if len(operands) == 1 else Operation(operator, tuple(operands))
