"""Our engine against what the original engine answered, state by state; how the recordings were made is in README.md."""

from __future__ import annotations

import json
import lzma
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from script import SHORT, Script, digest, record

from seed_opd.environments.alfworld.engine import Play, load
from seed_opd.environments.alfworld.games import PACKAGED, GameStore, open_games, open_path, original_places

HERE = Path(__file__).parent
ORIGINALS = {"valid_seen": 140, "valid_unseen": 134, "train": 300}
WALKTHROUGHS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 200}
GENERATED = 24
needs_originals = pytest.mark.skipif(
    not any(place.exists() for place in original_places()),
    reason="the original games are not there: set SEED_OPD_DATA to the folder that holds alfworld/",
)


def recordings(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lzma.decompress((HERE / name).read_bytes()).decode().splitlines()]


def state_of(play: Play, command: str | None, feedback: str) -> dict[str, Any]:
    return {
        "command": command,
        "feedback": feedback,
        "admissible": list(play.admissible),
        "score": play.score,
        "won": play.won,
        "moves": play.moves,
    }


def difference(store: GameStore, recorded: dict[str, Any]) -> str | None:
    """Replay a recorded game and describe the first state that differs; None if there is none."""
    name = recorded["game"]
    script = Script(name, store.read(name)["walkthrough"])
    play = store.game(name).new()
    state = state_of(play, None, play.reset())
    digests: list[str] = []
    for step in range(recorded["steps"] + 1):
        digests.append(digest(**state))
        expected = recorded["states"][step * SHORT : (step + 1) * SHORT]
        if not digests[-1].startswith(expected):
            return f"{name}, step {step}: expected a state with the hash {expected}, got {digests[-1][:SHORT]}: {state}"
        if step < recorded["steps"]:
            command = script.next(state["feedback"], state["admissible"])
            state = state_of(play, command, play.step(command))
    if record(name, digests) != recorded:
        return f"{name}: the short hashes agree and the one over the whole episode does not"
    return None


def show(differences: list[str]) -> str:
    return f"{len(differences)} games differ, the first of them:\n" + "\n".join(differences[:3])


@needs_originals
@pytest.mark.parametrize("split", ORIGINALS)
def test_original_games_answer_as_recorded(split: str) -> None:
    store = open_games("original")
    recorded = [r for r in recordings("recordings.jsonl.xz") if r["game"].startswith(split + "/")]
    assert len(recorded) == ORIGINALS[split]
    differences = [text for r in recorded if (text := difference(store, r))]
    assert not differences, show(differences)


def test_generated_games_answer_as_recorded() -> None:
    store = open_path(PACKAGED)
    recorded = recordings("recordings_generated.jsonl.xz")
    assert len(recorded) == GENERATED
    differences = [text for r in recorded if (text := difference(store, r))]
    assert not differences, show(differences)


@pytest.mark.parametrize("file", sorted(HERE.glob("sample_*.json")), ids=lambda file: file.stem)
def test_generated_games_answer_as_in_the_readable_samples(file: Path) -> None:
    sample = json.loads(file.read_text())
    play = open_path(PACKAGED).game(sample["game"]).new()
    for expected in sample["states"]:
        command = expected["command"]
        assert state_of(play, command, play.reset() if command is None else play.step(command)) == expected


def is_won(name: str) -> bool:
    """Play a game of the originals by its walkthrough; the goal holds at the end, and not before."""
    data = open_games("original").read(name)
    play = load(data).new()
    before = False
    for command in data["walkthrough"]:
        before = play.won
        play.step(command)
    return play.won and not before


@needs_originals
@pytest.mark.parametrize("split", WALKTHROUGHS)
def test_every_original_game_is_won_by_its_walkthrough(split: str) -> None:
    names = open_games("original").names(split)
    with multiprocessing.Pool(2) as pool:
        won = pool.map(is_won, names, chunksize=20)
    assert [name for name, reached in zip(names, won, strict=True) if not reached] == []
    assert sum(won) == WALKTHROUGHS[split]
