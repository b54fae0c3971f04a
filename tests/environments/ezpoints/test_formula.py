"""Formulas against Python's own arithmetic, read from its syntax tree; the solver against all formulas."""

from __future__ import annotations

import ast
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.ezpoints.cards import TARGET
from seed_opd.environments.ezpoints.formula import LONGEST, NUMBERS, TOKENS, solutions, value

PAIRS = [(2, 10), (3, 9), (4, 8), (5, 7), (6, 6), (2, 6), (3, 4)]
"""All pairs of values that are dealt."""


def arithmetic(text: str) -> int | None:
    """What Python makes of a formula, None for what it cannot read; a power too large to matter counts as 0."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    return walked(tree.body)


def walked(node: ast.expr) -> int:
    match node:
        case ast.Constant(int(number)):
            return number
        case ast.UnaryOp(ast.UAdd(), operand):
            return walked(operand)
        case ast.BinOp(left, ast.Add(), right):
            return walked(left) + walked(right)
        case ast.BinOp(left, ast.Mult(), right):
            return walked(left) * walked(right)
        case ast.BinOp(left, ast.Pow(), right):
            return walked(left) ** walked(right) if walked(right) < 100 else 0
        case _:
            raise AssertionError(ast.dump(node))


@given(st.lists(st.sampled_from([*NUMBERS, "+", "*"]), max_size=12))
def test_values_are_those_of_python_and_powers_are_malformed(tokens: list[str]) -> None:
    expected = None if ("*", "*") in pairwise(tokens) else arithmetic(" ".join(tokens))
    assert value(tokens) == expected


@given(st.lists(st.one_of(st.sampled_from(NUMBERS), st.sampled_from(["+", "*", "+ +", "* +"])), min_size=1, max_size=15))
def test_well_formed_formulas_have_the_value_of_python(parts: list[str]) -> None:
    tokens = " ".join(parts).split()
    expected = arithmetic(" ".join(tokens))
    if expected is not None and "* *" not in " ".join(tokens):
        assert value(tokens) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2 + 10", 12),
        ("3 * 4", 12),
        ("2 + 2 * 5", 12),
        ("2 * 5 + 2", 12),
        ("+ 6 + + 6", 12),
        ("6 * + 2", 12),
        ("7", 7),
        ("", None),
        ("+", None),
        ("2 +", None),
        ("* 2", None),
        ("2 10", None),
        ("2 * * 6", None),
        ("2 + 10 =", None),
        ("2 + __import__", None),
    ],
)
def test_values_by_hand(text: str, number: int | None) -> None:
    assert value(text.split()) == number


@given(st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=3)), max_size=20))
def test_anything_is_a_number_or_none(tokens: list[str]) -> None:
    assert value(tokens) is None or value(tokens) > 0


@pytest.mark.parametrize("pair", PAIRS)
def test_no_formula_of_a_dealt_pair_is_judged_otherwise_than_by_python(pair: tuple[int, int]) -> None:
    """All formulas that can be typed, joined without spaces as the original does, "**" and joined digits included."""
    first, second = map(str, pair)
    for length in range(LONGEST + 1):
        for tokens in product(dict.fromkeys((first, second, "+", "*")), repeat=length):
            used = [token for token in tokens if token in NUMBERS]
            if sorted(used) == sorted((first, second)):
                assert (value(tokens) == TARGET) == (arithmetic("".join(tokens)) == TARGET), tokens


@pytest.mark.parametrize("pair", PAIRS)
def test_solutions_are_all_short_formulas_that_make_the_target(pair: tuple[int, int]) -> None:
    found = solutions(pair, TARGET)
    orders = {pair, pair[::-1]}
    tried = {(str(a), op, str(b)) for a, b in orders for op in "+*" if (a + b if op == "+" else a * b) == TARGET}
    assert found and set(found) == tried and len(found) == len(set(found))


def test_the_order_of_the_cards_comes_first() -> None:
    assert solutions((10, 2), TARGET) == [("10", "+", "2"), ("2", "+", "10")]
    assert solutions((6, 6), TARGET) == [("6", "+", "6")]
    assert solutions((5, 5), TARGET) == []
