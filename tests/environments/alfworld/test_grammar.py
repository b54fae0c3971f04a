"""The text grammar: symbols, queries, expressions, and no crash on anything."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vault import GRAMMAR

from seed_opd.environments.alfworld.grammar import (
    Atom,
    Attribute,
    Each,
    Operation,
    Rule,
    parse_grammar,
    parse_query,
    parse_text,
    parse_value,
)
from seed_opd.environments.alfworld.query import Facts, Kinds
from seed_opd.environments.alfworld.text import Entity, Narrator
from seed_opd.errors import UserError


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("plain text.", ("plain text.",)),
        ("", ()),
        ("a #b c# d", ("a ", Rule("b c"), " d")),
        ("#a#\n\n  #b#", (Rule("a"), "\n\n  ", Rule("b"))),
        (" \n (leading space is dropped)", ("(leading space is dropped)",)),
        ("a trailing space stays \n", ("a trailing space stays \n",)),
        ("{o.name}!", (Each(Attribute("o", "name"), None), "!")),
        ("{o}\t{r.id}", (Each(Attribute("o", "name"), None), Each(Attribute("r", "id"), None))),
        ('"quoted" x', ("quoted", " x")),
        ("up to here; not this", ("up to here",)),
        ("{o.name} (in {r.name})}", (Each(Attribute("o", "name"), None), " (in ", Each(Attribute("r", "name"), None), ")")),
    ],
)
def test_texts_are_sequences_of_symbols(text: str, symbols: tuple[object, ...]) -> None:
    assert parse_text(text) == symbols


def test_a_list_has_content_and_a_query() -> None:
    [each] = parse_text("[{#item(o)# | lies(o:thing, r:room) & in(r:room)}]")
    assert isinstance(each, Each) and each.listed and each.content == Rule("item(o)") and each.query is not None
    assert each.query.atoms == (Atom("lies", (("o", "thing"), ("r", "room"))), Atom("in", (("r", "room"),)))


def test_a_placeholder_without_type_is_named_after_it() -> None:
    question = parse_query("at(r') & on()")
    assert question is not None and question.atoms == (Atom("at", (("r'", "r"),)), Atom("on", ()))


def test_expressions_join_and_choose() -> None:
    joined = Operation("+", (Attribute("o", "indefinite"), " ", Attribute("o", "name")))
    assert parse_value("o.indefinite + ' ' + o.name ") == joined
    assert parse_value('r.id or "nobody"') == Operation("or", (Attribute("r", "id"), "nobody"))


@pytest.mark.parametrize(
    "text",
    ["", "o.", "o.name o.id", "+ o", "o +", "o()", "o[0]", "o.name.upper", "1 + 1", "lambda: 0", "'open", "o._x", "o.room"],
)
def test_anything_else_is_no_expression(text: str) -> None:
    with pytest.raises(UserError):
        parse_value(text)


@given(st.text("{}[]#|:&()ab .'\"\n;<>+", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        parse_text(text)


@given(st.integers(0, len(GRAMMAR)), st.integers(0, 30), st.text('{}":;#\n a', max_size=5))
def test_any_damaged_grammar_is_read_or_refused(start: int, length: int, instead: str) -> None:
    with contextlib.suppress(UserError):
        parse_grammar(GRAMMAR[:start] + instead + GRAMMAR[start + length :])


def test_a_later_block_replaces_a_rule_as_a_whole() -> None:
    block = 'grammar :: """{"intro": [{"rhs": "new"}]}""";'
    assert parse_grammar(GRAMMAR + block).rules["intro"][0].text == ("new",)


def say(text: str, **facts: list[tuple[str, ...]]) -> str:
    """What a text says about facts over the things a, b, c (of type t) and u (of type v)."""
    rules = """grammar :: \"\"\"{"list_empty": [{"rhs": "none"}], "list_separator": [{"rhs": ", "}],
        "list_last_separator": [{"rhs": ", and "}]}\"\"\";"""
    kinds = Kinds({"object": dict.fromkeys("abcu"), "t": dict.fromkeys("abc"), "v": {"u": None}})
    true = Facts({predicate: dict.fromkeys(rows) for predicate, rows in facts.items()}, kinds)
    entities = {name: Entity(name, kind, f"{name} 1") for kind in ("t", "v") for name in kinds[kind]}
    return Narrator(parse_grammar(rules), entities).say(parse_text(text), {}, true)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "none"),
        ([("a",)], "a 1"),
        ([("b",), ("a",)], "a 1, and b 1"),
        ([("c",), ("b",), ("a",)], "a 1, b 1, and c 1"),
    ],
)
def test_lists_are_sorted_and_separated(rows: list[tuple[str, ...]], said: str) -> None:
    assert say("[{x.name | p(x:t)}]", p=rows) == said


def test_queries_heed_types_join_atoms_and_keep_variables_apart() -> None:
    assert say("[{x.id | p(x:t)}]", p=[("a",), ("u",)]) == "a"
    assert (
        say("[{x.id + y.id | p(x:t) & q(x:t, y:object)}]", p=[("b",), ("a",)], q=[("b", "u"), ("b", "a"), ("a", "a")])
        == "ba, and bu"
    )
