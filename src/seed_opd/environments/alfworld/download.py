"""The original games: where they were looked for, and fetching the official archive where there is a network."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx

from seed_opd.environments.alfworld.games import PACKAGED, open_path, original_places
from seed_opd.environments.storage import DATA
from seed_opd.errors import UserError

URL = "https://github.com/alfworld/alfworld/releases/download/0.4.0/json_2.1.2_tw-pddl.zip"
"""The archive that the original's own `alfworld-download` fetches."""

SECONDS = 30.0
"""Longest wait for the server at any point."""


def report() -> Iterator[str]:
    """Sentences about the data: what is in the package, where originals were looked for, and what came of fetching them."""
    yield f"Packaged games: {_contents(PACKAGED)}"
    places = original_places()
    if not places:
        yield f"Original games: {DATA} is not set, so they were not looked for; set it to the folder to keep data in."
        return
    found = next((place for place in places if place.exists()), None)
    yield f"Original games: looked for {', '.join(map(str, places))}."
    yield f"Original games: {_contents(found or fetch(places[0].parent))}"


def fetch(folder: Path) -> Path:
    """Download the official archive into the folder, whole or not at all; raises UserError where that cannot be done."""
    target = folder / URL.rsplit("/", 1)[-1]
    temporary = target.with_suffix(f".{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with httpx.stream("GET", URL, follow_redirects=True, timeout=SECONDS) as response, temporary.open("wb") as stream:
            response.raise_for_status()
            for block in response.iter_bytes():
                stream.write(block)
        if not zipfile.is_zipfile(temporary):
            raise UserError(f"data: what {URL} sent is no zip archive; download it by hand into {folder}.")
        os.replace(temporary, target)
    except (httpx.HTTPError, OSError) as error:
        raise UserError(
            f"data: {URL} cannot be fetched into {folder} ({type(error).__name__}: {error}); download it elsewhere "
            "and put it there. Everything works without it, on the packaged games."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _contents(path: Path) -> str:
    store = open_path(path)
    splits = ", ".join(f"{len(store.names(split))} {split}" for split in store.splits)
    return f"{path} with {splits} (fingerprint {store.fingerprint})."
