"""Play in the terminal: how tasks and actions are read."""

from __future__ import annotations

import pytest

from seed_opd.environments import make
from seed_opd.environments.play import parse_task
from seed_opd.errors import UserError


@pytest.mark.parametrize("text", ["valid", "valid:", ":1", "valid:-1", "valid:²", "valid:1.0"])
def test_a_task_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"is not split:index; write for example valid:0"):
        parse_task(make("sokoban"), text)
