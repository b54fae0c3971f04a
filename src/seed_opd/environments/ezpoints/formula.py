"""Formulas over + and *: read by a small parser, never evaluated as code; and the formulas that solve a hand.

    sum     = product { "+" product }
    product = signed { "*" signed }
    signed  = { "+" } number

Python, by which the original evaluates formulas, also reads "**" and joins digits that stand side by side. With the cards of
the game neither can make 12, so that both are malformed here and no reward differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

NUMBERS = tuple(str(number) for number in range(1, 11))
OPERATORS = ("+", "*")
EQUALS = "="
TOKENS = (*NUMBERS, *OPERATORS, EQUALS)
"""What can be typed."""

LONGEST = 6
"""A formula of so many tokens takes no more, not even "=": the original calls it truncated, the reference code plays on."""


class _Malformed(Exception):
    """The tokens are no formula."""


def value(tokens: Sequence[str]) -> int | None:
    """The value of a formula, None where the tokens are none."""
    try:
        result, rest = _sum(list(tokens))
    except _Malformed:
        return None
    return None if rest else result


def _sum(tokens: list[str]) -> tuple[int, list[str]]:
    """A sum at the beginning of the tokens, and what follows it."""
    total, rest = _product(tokens)
    while rest[:1] == ["+"]:
        term, rest = _product(rest[1:])
        total += term
    return total, rest


def _product(tokens: list[str]) -> tuple[int, list[str]]:
    total, rest = _signed(tokens)
    while rest[:1] == ["*"]:
        factor, rest = _signed(rest[1:])
        total *= factor
    return total, rest


def _signed(tokens: list[str]) -> tuple[int, list[str]]:
    start = next((i for i, token in enumerate(tokens) if token != "+"), len(tokens))
    if start == len(tokens) or tokens[start] not in NUMBERS:
        raise _Malformed
    return int(tokens[start]), tokens[start + 1 :]


def solutions(values: Sequence[int], target: int) -> list[tuple[str, ...]]:
    """The shortest formulas of two values that make the target, without "="; the order of the values first, + before *."""
    orders = dict.fromkeys(permutations(values))
    formulas = [(str(first), operator, str(second)) for first, second in orders for operator in OPERATORS]
    return [formula for formula in formulas if value(formula) == target]
