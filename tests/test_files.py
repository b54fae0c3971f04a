"""Atomic writes: whoever is killed half-way leaves the old file, whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.files import replace_folder, write_atomically

KILLED_BEFORE_THE_RENAME = """
import os, signal, sys
from pathlib import Path
from seed_opd.files import write_atomically
os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path(sys.argv[1]), "new" * 100000)
"""

KILLED_WHILE_FILLING = """
import os, signal, sys
from pathlib import Path
from seed_opd.files import replace_folder
with replace_folder(Path(sys.argv[1])) as folder:
    (folder / "first").write_text("new")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill(script: str, path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", script, str(path)], timeout=120)
    assert done.returncode == -signal.SIGKILL


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("files") / "new folder" / "file"
    write_atomically(path, text)
    assert path.read_text(encoding="utf-8") == text
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_writer_killed_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", "old")
    kill(KILLED_BEFORE_THE_RENAME, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    write_atomically(tmp_path / "file", "newer")
    assert (tmp_path / "file").read_text() == "newer"


def test_text_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "file", "x" * 100000 + "\ud800")
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with replace_folder(tmp_path / "folder") as folder:
            (folder / content).write_text(content)
    assert [entry.name for entry in (tmp_path / "folder").iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_is_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    with replace_folder(tmp_path / "folder") as folder:
        (folder / "old").write_text("old")
    kill(KILLED_WHILE_FILLING, tmp_path / "folder")
    with pytest.raises(ZeroDivisionError), replace_folder(tmp_path / "folder") as folder:
        (folder / "new").write_text("new")
        raise ZeroDivisionError
    assert [entry.name for entry in (tmp_path / "folder").iterdir()] == ["old"]
