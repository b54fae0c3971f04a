"""Atomic writes: a killed run leaves whole files or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seed_opd.processes import is_main


def write_atomically(path: Path, text: str) -> None:
    """Write text to a file beside its target, flush it to the disk, and rename it into place.

    Of several processes of one run only the main one writes.
    """
    if not is_main():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; when the block ends well it takes the place of `folder`, which is whole at any time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    yield temporary
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(temporary, folder)
    shutil.rmtree(old, ignore_errors=True)
