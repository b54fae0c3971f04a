"""Skills written by rules, for household episodes: no model, only what the episode's text shows.

The sentences are short and regular, so that a very small model can learn to write them and to follow them. A success
becomes a workflow ("first ..., next ..., then ..."); a failure becomes a correction ("do not ...") and the right order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from seed_opd.errors import UserError
from seed_opd.hindsight.rules.critical_steps import critical_steps
from seed_opd.hindsight.rules.household import TOOL_TYPES, Goal, Hindsight, Mistake, Site, facts, plan_facts
from seed_opd.trajectory import Skill, Trajectory

MOST_SEARCHED = 5
"""How many places that were searched in vain a skill names: the first, since a policy turns to these first again."""

MOST_UNSEARCHED = 3
"""How many places to search next a skill names."""

_AVOID: dict[Mistake, str] = {
    "repeated": "do not repeat {culprit}, it changes nothing",
    "not_found": "do not search {searched} again, no {type} is there",
    "closed": "do not take {object} while {culprit} is closed",
    "wrong_object": "do not take {culprit}, the task needs {type}",
    "not_taken": "do not pass by {object} at {place}",
    "tool_skipped": "do not forget to {treat}",
    "wrong_order": "do not {too_early}",
    "wrong_place": "do not leave {object} at {culprit}",
    "not_placed": "do not keep {object} in hand",
    "one_missing": "do not stop after one {type}, two are needed",
}
_AVOID_FIRST = "do not stop before {type} is found"
_REASON: dict[Mistake, str] = {
    "repeated": "{culprit} was repeated",
    "not_found": "no {type} was found",
    "closed": "{culprit} was not opened",
    "wrong_object": "{culprit} was taken and no {type}",
    "not_taken": "{object} was seen at {place} and not taken",
    "tool_skipped": "it was forgotten to {treat}",
    "wrong_order": "the order was wrong",
    "wrong_place": "{object} was left at {culprit}",
    "not_placed": "{object} was not brought to {destination}",
    "one_missing": "only one {type} was brought",
}


_GENERAL_AVOID: dict[Mistake, str] = {
    "repeated": "do not repeat what changed nothing",
    "not_found": "do not search a place twice, look at new ones",
    "closed": "do not pass by what is closed, open it",
    "wrong_object": "do not take anything but {type}",
    "not_taken": "do not pass by {type}, take it",
    "tool_skipped": "do not forget to {treat}",
    "wrong_order": "do not bring {type} away too early",
    "wrong_place": "do not leave {type} anywhere but at {destination}",
    "not_placed": "do not keep {type} in hand",
    "one_missing": "do not stop after one {type}, two are needed",
}
_GENERAL_REASON: dict[Mistake, str] = {
    "repeated": "something was repeated",
    "not_found": "no {type} was found",
    "closed": "something was not opened",
    "wrong_object": "something else than {type} was taken",
    "not_taken": "{type} was seen and not taken",
    "tool_skipped": "it was forgotten to {treat}",
    "wrong_order": "the order was wrong",
    "wrong_place": "{type} was left in the wrong place",
    "not_placed": "{type} was not brought to {destination}",
    "one_missing": "only one {type} was brought",
}
NAME = "rules"


def write(trajectory: Trajectory) -> Skill:
    """The skill of an episode, with those of its critical steps; raises UserError when the goal is no household task."""
    return replace(put(facts(trajectory)), steps=critical_steps(trajectory))


def write_general(trajectory: Trajectory) -> Skill:
    """The same, as far as it holds for other tasks of the kind: types of things, and no place where one was."""
    known = facts(trajectory)
    steps = general_workflow(known.goal)
    if known.success:
        return Skill(f"the {known.goal.object_type} was found, and the task was done.", steps, analyzer=NAME)
    words = _general_words(known.goal)
    mistake = known.mistake or "wrong_order"
    summary = f"the task failed: {_GENERAL_REASON[mistake].format(**words)}."
    return Skill(summary, f"{_GENERAL_AVOID[mistake].format(**words)}: {steps}", analyzer=NAME)


def general_workflow(goal: Goal) -> str:
    """The right order of what to do for a goal, by types."""
    words = _general_words(goal)
    clauses = [f"find two {goal.object_type}" if goal.family == "two" else f"find {goal.object_type} and take it"]
    if goal.family in TOOL_TYPES or goal.family == "look":
        clauses.append(words["treat"])
    if goal.family != "look":
        clauses.append(f"move {'one after the other' if goal.family == 'two' else 'it'} to {goal.target_type}")
    return _in_order(clauses)


def named(trajectory: Trajectory) -> dict[str, list[str]]:
    """What a good skill names: the `object`, the `place`s that matter (where it was and where it goes, or those searched in
    vain), and the `tool` or lamp. Raises UserError when the goal is no household task."""
    known = facts(trajectory)
    return {
        "object": [find.name for find in known.finds] or [known.goal.object_type],
        "place": _places(known),
        "tool": [known.tool.name] if known.tool else [],
    }


def advice_from_plan(goal: str, commands: Iterable[str]) -> Skill:
    """The skill of an episode in which these commands succeed; raises UserError when they do not reach the goal."""
    skill = put(plan_facts(goal, commands))
    if not skill.usable:
        raise UserError(f"plan: its commands do not show how to {goal!r}; give every command of the plan, in order.")
    return skill


def put(hindsight: Hindsight) -> Skill:
    """Put the facts of an episode into words."""
    if hindsight.success:
        if not _is_whole(hindsight):
            return Skill("", "", "error", "the episode's text does not show how the task was done", NAME)
        places = ", ".join(f"{find.name} was at {find.at.name}" for find in hindsight.finds)
        return Skill(f"{places}, and the task was done.", workflow(hindsight), analyzer=NAME)
    words = _words(hindsight)
    mistake = hindsight.mistake or "wrong_order"
    avoid = _AVOID_FIRST if mistake == "not_found" and not hindsight.searched else _AVOID[mistake]
    summary = f"the task failed: {_REASON[mistake].format(**words)}."
    return Skill(summary, f"{avoid.format(**words)}: {workflow(hindsight)}", analyzer=NAME)


def workflow(hindsight: Hindsight) -> str:
    """The right order of what to do, with every name that is known."""
    opened: set[str] = set()
    return _in_order([_clause(action, site, opened) for action, site in _actions(hindsight)])


def _in_order(clauses: Sequence[str]) -> str:
    marks = ["first", *["next"] * (len(clauses) - 2), "then"]
    return ", ".join(f"{mark} {clause}" for mark, clause in zip(marks, clauses, strict=True)) + "."


def listing(names: Sequence[str]) -> str:
    """ "a, b and c" """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _places(known: Hindsight) -> list[str]:
    if known.mistake == "not_found":
        return list(known.searched[:MOST_SEARCHED])
    sites = [find.at.name for find in known.finds] + ([known.destination.name] if known.destination else [])
    return list(dict.fromkeys(sites))


def _is_whole(hindsight: Hindsight) -> bool:
    """Where a goal was half-true from the start, nothing was brought anywhere, and a treatment is all there was to do."""
    family = hindsight.goal.family
    return bool(hindsight.finds and (hindsight.destination if family in ("pick", "two") else hindsight.tool))


def _clause(action: str, site: Site | None, opened: set[str]) -> str:
    """An action after what it needs: to stand at the neighbour that shares its place, and to open, once, what is closed."""
    before = [f"go to {site.stop}"] if site and site.stop != site.name else []
    if site and site.opened and site.name not in opened:
        before.append(f"open {site.name}")
        opened.add(site.name)
    return ", ".join(before) + " and " + action if before else action


def _actions(hindsight: Hindsight) -> list[tuple[str, Site | None]]:
    """What to do, in order, each with the site where it is done as far as that is known."""
    actions: list[tuple[str, Site | None]] = []
    for find in hindsight.finds:
        actions.append((f"take {find.name} from {find.at.name}", find.at))
        actions += _bring(hindsight, find.name)
    missing = 0 if hindsight.success else (2 if hindsight.goal.family == "two" else 1) - len(hindsight.finds)
    if missing:
        kind = hindsight.goal.object_type
        places = listing(hindsight.unsearched[:MOST_UNSEARCHED]) or "other places"
        actions.append((f"search {places} for {kind}", None))
        actions += _bring(
            hindsight, {2: f"two {kind}", 1: f"one more {kind}"}[missing] if hindsight.goal.family == "two" else kind
        )
    return actions


def _bring(hindsight: Hindsight, name: str) -> list[tuple[str, Site | None]]:
    """What to do with an object in hand."""
    goal, tool, destination = hindsight.goal, hindsight.tool, hindsight.destination
    if goal.family == "look":
        return [(f"use {_name(tool, goal.target_type)} with {name} in hand", tool)]
    actions: list[tuple[str, Site | None]] = []
    if goal.family in TOOL_TYPES:
        actions.append((f"{goal.family} {name} with {_name(tool, TOOL_TYPES[goal.family])}", tool))
    if destination or not hindsight.success:
        actions.append((f"move {name} to {_name(destination, goal.target_type)}", destination))
    return actions


def _name(site: Site | None, kind: str) -> str:
    return site.name if site else kind


def _general_words(goal: Goal) -> dict[str, str]:
    tool = goal.target_type if goal.family == "look" else TOOL_TYPES.get(goal.family, "")
    treat = f"use {tool} with it in hand" if goal.family == "look" else f"{goal.family} it with {tool}"
    return {"type": goal.object_type, "destination": goal.target_type, "treat": treat}


def _words(hindsight: Hindsight) -> dict[str, str]:
    goal = hindsight.goal
    find = hindsight.finds[0] if hindsight.finds else None
    name = find.name if find else goal.object_type
    treat, too_early = "", f"leave {name} before the task is done"
    if goal.family == "look":
        treat = f"use {_name(hindsight.tool, goal.target_type)}"
        too_early = f"{treat} before {name} is in hand"
    elif goal.family in TOOL_TYPES:
        treat = f"{goal.family} {name}"
        too_early = f"move {name} before you {treat}"
    return {
        "type": goal.object_type,
        "object": name,
        "place": find.at.name if find else "",
        "destination": _name(hindsight.destination, goal.target_type),
        "searched": listing(hindsight.searched[:MOST_SEARCHED]),
        "treat": treat,
        "too_early": too_early,
        "culprit": hindsight.culprit,
    }
