"""Where games lie and how they are read.

A store is a folder tree, a zip, or a tar archive, each with `.../<split>/<task>/<trial>/game.tw-pddl` in it. A tar has to be
unpacked from its start, so it is once rewritten as a zip, which can be read anywhere, in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from seed_opd.environments.alfworld.engine import Game, load
from seed_opd.environments.base import fingerprint_of
from seed_opd.environments.storage import DATA, cache_folder, made_once, original_folder
from seed_opd.errors import UserError

PACKAGED = Path(__file__).with_name("games.tar.xz")
GAME = "game.tw-pddl"
TARS = (".tar", ".tar.xz", ".tar.gz", ".tgz")
ALIASES = {"seen": "valid_seen", "unseen": "valid_unseen"}
CATEGORIES = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "look",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "two",
}
ONLY_SOLVABLE = b"seed-opd: only solvable games"  # the comment of a zip whose games need no check
GAMES_KEPT = 32  # parsed games that a store keeps, so that a group of episodes shares one

log = logging.getLogger(__name__)


def category_of(name: str) -> str:
    """The category of a game, by its name "[split/]task-Object-Mrecep-Recep-Scene[/trial]"."""
    family = next((part for part in name.split("/") if "-" in part), name).split("-")[0]
    if family not in CATEGORIES:
        raise UserError(f"games: {name!r} starts with no known task; there are {', '.join(CATEGORIES)}.")
    return CATEGORIES[family]


class GameStore(ABC):
    """The games of one source. A game's name is "<split>/<task>/<trial>", and games are in the order of their names."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._listed: dict[str, tuple[str, ...]] = {}
        self.game = lru_cache(maxsize=GAMES_KEPT)(self._game)

    @cached_property
    def splits(self) -> tuple[str, ...]:
        return tuple(sorted({name.split("/")[0] for name in self._files}))

    def names(self, split: str) -> tuple[str, ...]:
        """The solvable games of a split; raises UserError, naming the splits, for an unknown one."""
        split = ALIASES.get(split, split)
        if split not in self.splits:
            raise UserError(f"split: {split!r} is not in {self.source}; choose one of {', '.join(self.splits)}.")
        if split not in self._listed:
            found = sorted(name for name in self._files if name.startswith(split + "/"))
            solvable = tuple(name for name in found if self._all_solvable or self.read(name).get("solvable"))
            if not solvable:
                raise UserError(f"split: no game of {split!r} in {self.source} is marked as solvable.")
            if len(solvable) < len(found):
                log.warning("%s: %d games that are not marked as solvable are left out", split, len(found) - len(solvable))
            self._listed[split] = solvable
        return self._listed[split]

    def read(self, name: str) -> dict[str, Any]:
        """What a game's file holds."""
        return json.loads(self._bytes(self._files[name]))

    def _game(self, name: str) -> Game:
        return load(self.read(name))

    @cached_property
    def fingerprint(self) -> str:
        """A hash over the names and contents of all games, 16 hex digits, the same for a folder and an archive of it."""
        lines = (f"{name} {self._checksum(path):08x}\n" for name, path in sorted(self._files.items()))
        return fingerprint_of("".join(lines))

    @cached_property
    def _files(self) -> dict[str, str]:
        files = {}
        for path in self._paths():
            parts = PurePosixPath(path).parts
            if parts[-1] == GAME and len(parts) >= 4:
                files["/".join(parts[-4:-1])] = path
        if not files:
            raise UserError(f"games: there is no <split>/<task>/<trial>/{GAME} in {self.source}.")
        return files

    @property
    def _all_solvable(self) -> bool:
        return False

    @abstractmethod
    def _paths(self) -> Iterator[str]: ...

    @abstractmethod
    def _bytes(self, path: str) -> bytes: ...

    @abstractmethod
    def _checksum(self, path: str) -> int: ...


class FolderStore(GameStore):
    """Games as files under a folder."""

    def _paths(self) -> Iterator[str]:
        return (path.relative_to(self.source).as_posix() for path in self.source.rglob(GAME))

    def _bytes(self, path: str) -> bytes:
        return (self.source / path).read_bytes()

    def _checksum(self, path: str) -> int:
        return zlib.crc32(self._bytes(path))


class ZipStore(GameStore):
    """Games in a zip, which is `source` itself or is made of it when a game is first asked for."""

    @cached_property
    def _path(self) -> Path:
        return _as_zip(self.source) if self.source.name.endswith(TARS) else self.source

    @property
    def _all_solvable(self) -> bool:
        return self._zip.comment == ONLY_SOLVABLE

    @property
    def _zip(self) -> zipfile.ZipFile:
        return _open_zip(self._path, os.getpid())  # a handle must not be shared with a forked process

    def _paths(self) -> Iterator[str]:
        return iter(self._zip.namelist())

    def _bytes(self, path: str) -> bytes:
        return self._zip.read(path)

    def _checksum(self, path: str) -> int:
        return self._zip.getinfo(path).CRC


def open_games(games: str | None = None) -> GameStore:
    """The store for an option `games`: "original", "generated", a path, or None for the originals where they are there.

    Raises UserError, with where it looked, if there is nothing.
    """
    if games == "generated":
        return open_path(PACKAGED)
    if games not in (None, "original"):
        path = Path(games).expanduser()
        if not path.exists():
            raise UserError(
                f"environment.options.games: {games!r} does not exist; give a folder, a .zip or a .tar.xz with games in it."
            )
        return open_path(path)
    for place in original_places():
        if place.exists():
            return open_path(place)
    if games is None:
        return open_path(PACKAGED)
    looked = ", ".join(map(str, original_places())) or f"nowhere, as {DATA} is not set"
    raise UserError(
        f"environment.options.games: there are no original games (looked: {looked}); set {DATA} to the folder with "
        "alfworld/ in it, or use games: generated."
    )


def original_places() -> list[Path]:
    """Where the original games may lie, the preferred place first; empty if SEED_OPD_DATA is not set."""
    folder = original_folder("alfworld")
    if folder is None:
        return []
    return [folder / "json_2.1.1", folder / "json_2.1.1.tar.xz", *sorted(folder.glob("json_*.zip"))]


def open_path(path: Path) -> GameStore:
    """The store at a path that exists; the same one again for the same path."""
    return _open(path.resolve())


@cache
def _open(path: Path) -> GameStore:
    if path.is_dir():
        return FolderStore(path)
    if path.name.endswith(TARS) or zipfile.is_zipfile(path):
        return ZipStore(path)
    raise UserError(f"games: {path} is neither a folder nor a .zip nor a tar archive.")


@lru_cache(maxsize=16)
def _open_zip(path: Path, process: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _as_zip(path: Path) -> Path:
    """The solvable games of a tar as a zip in the cache folder, made now if it is not there."""
    target = cache_folder() / f"alfworld-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.zip"
    return made_once(target, f"games: {path}", partial(_write_solvable, path))


def _write_solvable(path: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.comment = ONLY_SOLVABLE
        for name, content in _members(path):
            if json.loads(content).get("solvable"):
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            stream = archive.extractfile(member) if PurePosixPath(member.name).name == GAME else None
            if stream:
                yield member.name, stream.read()
