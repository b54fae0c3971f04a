"""What is made once: whole or not at all, by one process, and with a named error where it cannot be."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from seed_opd.environments import storage
from seed_opd.environments.storage import made_once
from seed_opd.errors import RunStopped, UserError


def test_of_many_at_once_one_makes_it_and_the_others_find_it(tmp_path: Path) -> None:
    made = []

    def make(path: Path) -> None:
        made.append(path)
        time.sleep(0.2)
        path.mkdir()
        (path / "data").write_text("whole")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: (made_once(tmp_path / "cache" / "it", "it", make) / "data").read_text(), range(4)))
    assert found == ["whole"] * 4 and len(made) == 1


def test_what_was_not_finished_leaves_nothing_and_is_made_again(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise UserError("bad data")

    with pytest.raises(UserError, match="bad data"):
        made_once(tmp_path / "it", "it", fail)
    assert [path.name for path in tmp_path.iterdir() if "it" in path.name and not path.name.endswith(".lock")] == []
    assert made_once(tmp_path / "it", "it", lambda path: path.write_text("half")).read_text() == "half"
    made_once(tmp_path / "it", "it", lambda path: path.write_text("whole"), lambda path: path.read_text() == "whole")
    assert (tmp_path / "it").read_text() == "whole"


def test_no_place_and_no_end_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"^it cannot be made ready in .*; set XDG_CACHE_HOME\.$"):
        made_once(tmp_path / "file" / "it", "it", lambda path: None)
    monkeypatch.setattr(storage, "LONGEST_WAIT", 0.05)
    with FileLock(tmp_path / ".it.lock"), pytest.raises(RunStopped, match="another process has been making"):
        made_once(tmp_path / "it", "it", lambda path: None)
