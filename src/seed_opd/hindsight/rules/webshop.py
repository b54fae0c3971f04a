"""Skills written by rules, for shopping episodes: no model, only what the episode's text shows.

The sentences are short and regular, so that a very small model can learn to write them and to follow them. A success becomes
a workflow (what to search, which product to open, which options to choose); a failure becomes a correction ("do not ...")
and the workflow that hindsight suggests.
"""

from __future__ import annotations

from collections.abc import Iterator

from seed_opd.hindsight.rules.shopping import Hindsight, Mistake, facts
from seed_opd.trajectory import Skill, Trajectory

NAME = "rules"

_AVOID: dict[Mistake, str] = {
    "repeated": "do not search {culprit} more than once",
    "nothing_seen": "do not leave before a product is found",
    "not_bought": "do not leave {culprit} unbought",
    "wrong_option": "do not choose {culprit}",
    "too_early": "do not buy {culprit} before you choose {missing}",
    "too_dear": "do not buy {culprit}, it costs more than {limit:.2f}",
    "no_such_option": "do not buy {culprit}, it has no {missing}",
    "wrong_product": "do not buy {culprit}, it lacks {missing}",
}
_REASON: dict[Mistake, str] = {
    "repeated": "{culprit} was searched again and again",
    "nothing_seen": "no product was found that could be it",
    "not_bought": "{culprit} was seen and not bought",
    "wrong_option": "{culprit} was chosen",
    "too_early": "{culprit} was bought without {missing}",
    "too_dear": "{culprit} was bought and costs too much",
    "no_such_option": "{culprit} was bought and has no {missing}",
    "wrong_product": "{culprit} was bought and lacks {missing}",
}
_UNKNOWN = "what the task asks for"


def write(trajectory: Trajectory) -> Skill:
    """The skill of an episode; its status is "error" where the text of a success does not show what was bought."""
    known = facts(trajectory)
    if known.mistake is None:
        if known.product is None:
            return Skill("", "", "error", "the episode's text does not show what was bought", NAME)
        with_values = f" with {' and '.join(known.values)}" if known.values else ""
        return Skill(f"{_product(known)} was bought{with_values}, and it was the right one.", workflow(known), analyzer=NAME)
    words = {"culprit": _culprit(known), "missing": known.missing or _UNKNOWN, "limit": known.goal.limit}
    summary = f"the task failed: {_REASON[known.mistake].format(**words)}."
    return Skill(summary, f"{_AVOID[known.mistake].format(**words)}: {workflow(known)}", analyzer=NAME)


def named(trajectory: Trajectory) -> dict[str, list[str]]:
    """What a good skill names: the `product`, the `option`s to choose, and after a failure what was wrong, the `mistake`."""
    known = facts(trajectory)
    if known.mistake is None and known.product is None:
        return {}
    return {
        "product": [known.product.asin] if known.product else [],
        "option": list(known.values),
        "mistake": [known.culprit] if known.culprit else [],
    }


def workflow(known: Hindsight) -> str:
    """What to do, in order, with every name that is known."""
    clauses = list(_clauses(known))
    marks = ["first", *["next"] * (len(clauses) - 2), "then"]
    return ", ".join(f"{mark} {clause}" for mark, clause in zip(marks, clauses, strict=True)) + "."


def _clauses(known: Hindsight) -> Iterator[str]:
    product = known.product
    yield f"search {product.query if product and product.query else known.goal.query}"
    if product and product.page > 1:
        yield f"turn to page {product.page}"
    yield f"open {_product(known)}"
    for value in known.values:
        yield f"choose {value}"
    yield "buy it"


def _product(known: Hindsight) -> str:
    return known.product.asin.upper() if known.product else "another product"


def _culprit(known: Hindsight) -> str:
    """Products are named as the pages name them, in capitals."""
    return known.culprit if known.mistake in ("repeated", "wrong_option") else known.culprit.upper()
