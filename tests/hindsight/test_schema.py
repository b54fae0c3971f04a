import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.hindsight.schema import SKELETON, SKILL, SUMMARY, Limits, json_schema, parse, render
from seed_opd.trajectory import Skill

GOOD = '{"episode_summary": "the mug was found.", "episode_skill": "open cabinet 3 first."}'

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(
    st.one_of(
        st.text(), st.text(alphabet='{}[]",:\\`eE episode_skill0123456789\n'), st.from_regex(r'\{"episode_skill": ".*')
    )
)
def test_any_text_gives_a_skill(text: str) -> None:
    skill = parse(text)
    json.dumps(skill.to_json(), ensure_ascii=False).encode("utf-8")
    assert skill.status in ("ok", "unparsed", "empty", "placeholder", "too_long")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([SUMMARY, SKILL, "other"]), inner),
    )
)
def test_any_json_gives_a_skill(value: object) -> None:
    assert parse(json.dumps(value)).status in ("ok", "unparsed", "empty", "placeholder")


@given(words, words)
def test_what_is_rendered_is_read_back(summary: str, skill: str) -> None:
    read = parse(render(Skill(summary, skill)))
    white = " \t\n\r\v\f"
    assert (read.summary, read.skill) == (summary.strip(white), skill.strip(white))
    assert read.status != "unparsed"


@given(words)
def test_prose_around_does_not_matter(prose: str) -> None:
    prose = prose.replace("{", "(").replace("`", "'")
    assert parse(prose + GOOD + prose).skill == "open cabinet 3 first."


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        GOOD.replace('"}', '",}'),
        f"```json\n{GOOD.replace('}', ',}')}\n```\nDone.",
        'I think {this} is it: {"note": 1} ' + GOOD,
        '{"answer": ' + GOOD + "}",
    ],
)
def test_tolerated_forms(text: str) -> None:
    assert parse(text) == Skill("the mug was found.", "open cabinet 3 first.", "ok", text)


def test_first_object_with_a_skill_wins() -> None:
    second = '{"episode_skill": "second rule."}'
    assert parse('{"episode_summary": "no skill here"} {"episode_skill": "first rule."} ' + second).skill == "first rule."
    assert parse('{"episode_skill": ["not", "text"]} ' + second).skill == "second rule."


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "unparsed"),
        ("no json at all", "unparsed"),
        ('{"episode_summary": "only a summary"}', "unparsed"),
        ("{'episode_skill': 'a Python literal'}", "unparsed"),
        ('__import__("os").system("true")', "unparsed"),
        ('{"episode_skill": "cut off', "unparsed"),
        ('{"episode_skill": ""}', "empty"),
        ('{"episode_skill": " ... "}', "empty"),
        (json.dumps(SKELETON), "placeholder"),
        ('{"episode_skill": "<String>"}', "placeholder"),
        ('{"episode_skill": "eleven long"}', "too_long"),
        ('{"episode_summary": "eleven long", "episode_skill": "short"}', "too_long"),
        ('{"episode_skill": "ten chars."}', "ok"),
        ('{"a":' * 100_000, "unparsed"),
        ('{"episode_skill": ' + "9" * 10_000 + "}", "unparsed"),
    ],
)
def test_status(text: str, status: str) -> None:
    skill = parse(text, Limits(summary=10, skill=10), analyzer="test")
    assert (skill.status, skill.raw, skill.analyzer) == (status, text, "test")


def test_lone_surrogates_can_be_stored() -> None:
    assert parse('{"episode_skill": "go \\ud800 on"}').skill == "go ? on"


def test_schema_states_the_limits() -> None:
    schema = json_schema(Limits(summary=7, skill=9))
    assert [schema["properties"][name]["maxLength"] for name in schema["required"]] == [7, 9]
