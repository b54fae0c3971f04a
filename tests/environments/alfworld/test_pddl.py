"""PDDL: nested lists, typed lists, normal forms, and no crash on anything."""

from __future__ import annotations

import contextlib
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vault import DOMAIN, PROBLEM

from seed_opd.environments.alfworld.pddl import Clause, Literal, parse_domain, parse_expression, parse_problem
from seed_opd.errors import UserError

words = st.text("abcxyz01-_@.\"\\'", min_size=1, max_size=6)
expressions = st.recursive(st.lists(words, max_size=3), lambda inner: st.lists(words | inner, max_size=4), max_leaves=15)


def written(expression: Any) -> str:
    return expression if isinstance(expression, str) else "(" + " ".join(map(written, expression)) + ")"


@given(expressions)
def test_what_is_written_is_read_back(expression: list[Any]) -> None:
    assert parse_expression(written(expression)) == expression


@given(st.text('()ab; ?\n"\\[],:', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        assert isinstance(parse_expression(text), list)


@given(st.text("()ab; ?\n-:", max_size=60))
def test_any_problem_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        parse_problem(f"(define (problem p) (:objects {text}) (:init {text}) (:goal (and {text})))")


def test_comments_case_and_glued_variables() -> None:
    assert parse_expression("(A (b?c?D) ; (not this)\n e)") == ["a", ["b", "?c", "?d"], "e"]


def test_types_have_parents_and_constants_and_parameters_types() -> None:
    domain = parse_domain(DOMAIN)
    assert domain.parents == {"room": "object", "thing": "object"}
    assert domain.constants == (("lobby", "room"),)
    grab = next(action for action in domain.actions if action.name == "grab")
    assert grab.parameters == (("?t", "thing"), ("?r", "room"))
    assert domain.fluents >= {"in", "has", "free", "lit"} and "door" not in domain.fluents


def test_costs_are_no_facts() -> None:
    assert {predicate for predicate, _ in parse_problem(PROBLEM).initial} == {
        "in",
        "door",
        "locked",
        "free",
        "lies",
        "opens",
    }


# ---- the normal form says the same as the formula

ATOMS = ("a", "b", "c")
formulas: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([[atom] for atom in ATOMS]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: ["and", *parts])
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: ["or", *parts])
        | inner.map(lambda part: ["not", part])
        | st.tuples(inner, inner).map(lambda pair: ["imply", *pair])
    ),
    max_leaves=6,
)


def truth(formula: list[Any], true: set[str]) -> bool:
    match formula:
        case ["and", *parts]:
            return all(truth(part, true) for part in parts)
        case ["or", *parts]:
            return any(truth(part, true) for part in parts)
        case ["not", part]:
            return not truth(part, true)
        case ["imply", left, right]:
            return truth(right, true) or not truth(left, true)
    return formula[0] in true


@given(formulas)
def test_the_normal_form_is_true_where_the_formula_is(formula: list[Any]) -> None:
    goal = parse_problem(f"(define (problem p) (:goal {written(formula)}))").goal
    for values in product([False, True], repeat=len(ATOMS)):
        true = {atom for atom, value in zip(ATOMS, values, strict=True) if value}
        normal = all(any(all((x.predicate in true) is x.positive for x in c.literals) for c in part) for part in goal)
        assert normal == truth(formula, true)


def test_quantified_variables_get_names_of_their_own() -> None:
    text = "(define (problem p) (:goal (exists (?x - t) (and (p ?x) (exists (?x - u) (q ?x ?y))))))"
    [[clause]] = parse_problem(text).goal
    assert clause == Clause((Literal("p", ("?x@0",)), Literal("q", ("?x@1", "?y"))), (("?x@0", "t"), ("?x@1", "u")))


@pytest.mark.parametrize("condition", ["(forall (?x) (p ?x))", "(not (exists (?x) (p ?x)))"])
def test_universal_conditions_are_refused(condition: str) -> None:
    with pytest.raises(UserError, match="universal"):
        parse_problem(f"(define (problem p) (:goal {condition}))")
