"""Where data lies on this machine: originals under SEED_OPD_DATA, and what is made of data once in the user's cache."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from seed_opd.errors import RunStopped, UserError

DATA = "SEED_OPD_DATA"
LONGEST_WAIT = 6 * 3600.0
"""Seconds to wait for another process that makes the same; a large corpus is embedded for hours."""

log = logging.getLogger(__name__)


def original_folder(name: str) -> Path | None:
    """Where an environment's original data may lie; None if SEED_OPD_DATA is not set."""
    return Path(os.environ[DATA]).expanduser() / name if os.environ.get(DATA) else None


def cache_folder() -> Path:
    """Where what is made once is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seed-opd"


def made_once(
    target: Path, what: str, make: Callable[[Path], object], is_whole: Callable[[Path], bool] = Path.exists
) -> Path:
    """The file or folder `target`, which `make` writes to the path that it is given, unless it is there and whole.

    One process makes it, whole or not at all, and others wait. Raises UserError, beginning with `what`, where nothing can be
    written, and RunStopped where another process does not come to an end.
    """
    if is_whole(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{target.name}.lock"), timeout=LONGEST_WAIT):
            if not is_whole(target):
                log.warning("%s is made ready in %s; this is done once", what, target)
                _make(target, make)
    except Timeout as error:
        raise RunStopped(
            f"{what}: another process has been making {target} for {LONGEST_WAIT:,.0f} s; end it and start again."
        ) from error
    except OSError as error:
        raise UserError(f"{what} cannot be made ready in {target.parent} ({error}); set XDG_CACHE_HOME.") from error
    return target


def _make(target: Path, make: Callable[[Path], object]) -> None:
    temporary = target.with_name(f".{os.getpid()}.{target.name}")
    _remove(temporary)  # a process of this number may have been killed
    try:
        make(temporary)
        os.replace(temporary, target)
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
