"""When an answer counts, by hand and by properties."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.searchqa.answers import is_correct, normalise

TEXT = st.text(st.sampled_from(" aAnthe.,-'\"x1é\n\tThe"), max_size=40)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Beatles", "beatles"),
        ("  An  apple,\na day. ", "apple day"),
        ("U.S.A.", "usa"),
        ("Rock 'n' Roll", "rock n roll"),
        ("theatre another", "theatre another"),
        ("14 December 1972", "14 december 1972"),
        ("Émile Zola!", "émile zola"),
        ("the", ""),
        ("a-the", "athe"),
        ("", ""),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(TEXT)
def test_normalising_drops_what_does_not_count_and_nothing_else(text: str) -> None:
    normal = normalise(text)
    words = normal.split(" ") if normal else []
    assert not {"a", "an", "the", ""} & set(words) and not set(normal) & set(string.punctuation)
    assert normalise(normal) == normal == normal.lower()
    kept = [character for character in text.lower() if not character.isspace() and character not in string.punctuation]
    dropped = len(kept) - len(normal.replace(" ", ""))
    assert dropped == sum(len(word) for word in plain_words(text) if word in ("a", "an", "the"))


def plain_words(text: str) -> list[str]:
    return "".join(character for character in text.lower() if character not in string.punctuation).split()


@given(TEXT, st.sampled_from(["The {}", "{}.", " {} ", "a {}", '"{}"', "{}\n"]))
def test_articles_marks_spaces_and_case_do_not_matter(text: str, form: str) -> None:
    assert is_correct(form.format(text.upper()).lower(), ["other", text])


def test_an_answer_must_be_a_whole_target() -> None:
    assert is_correct("Paris", ["London", "paris"])
    assert not is_correct("Paris, France", ["Paris"]) and not is_correct("", ["Paris"]) and not is_correct("x", [])
