"""The static library: something for every category, in words that a prompt has room for."""

from __future__ import annotations

import pytest

from seed_opd.environments import make
from seed_opd.errors import UserError
from seed_opd.hindsight.library import Library


def test_every_category_has_its_text():
    library = Library.of("alfworld")
    texts = [library.skill(category) for category in make("alfworld").categories]
    assert len(set(texts)) == 6
    assert all(len(text) < 400 for text in texts)


def test_an_environment_without_a_library_gives_a_sentence():
    with pytest.raises(UserError, match="no skill library for the environment 'chess'"):
        Library.of("chess")


def test_an_unknown_category_gives_a_sentence():
    with pytest.raises(UserError, match="it has nothing for 'sing', only for pick"):
        Library.of("alfworld").skill("sing")
