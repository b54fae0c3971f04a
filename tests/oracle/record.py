"""Record the answers of the original engine; runs in an environment of its own (see README.md), without seed_opd.

python record.py GAMES --recordings progress.jsonl   play the games under a folder, resume where it was stopped
python record.py --pack progress.jsonl OUT.jsonl.xz  sort and compress what was recorded
python record.py --walkthroughs GAMES                play the walkthroughs only, and count the games won
python record.py GAMES --check 3                     compare the sped-up engine with the untouched one
"""

from __future__ import annotations

import argparse
import atexit
import copy
import functools
import json
import lzma
import multiprocessing
import os
import shutil
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("ALFWORLD_DATA", tempfile.gettempdir())  # else it writes into the home folder

import fast_downward
import textworld.envs.pddl.textgen as textgen
import textworld.logic
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from script import Script, digest, record
from textworld import EnvInfos
from textworld.envs.pddl import PddlEnv

GAMES_PER_PROCESS = 15  # the original's memory grows with every game and is only given back by ending the process
State = dict[str, Any]


def speed_up() -> None:
    """Remember translations and parsed expressions, and leave out planning, which no recorded answer depends on."""
    translate = functools.lru_cache(maxsize=1)(fast_downward.pddl2sas)

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        return (None, "") if optimize else translate(domain, problem)

    parse_text = functools.lru_cache(maxsize=None)(textgen._parse_and_convert)

    def parse_fresh(text: str, rule_name: str, **_: Any) -> Any:
        return copy.deepcopy(parse_text(text, rule_name=rule_name))  # a context is attached to the symbols later

    def copy_context(context: State) -> State:
        return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}

    fast_downward.pddl2sas = pddl2sas
    textgen._parse_and_convert = parse_fresh
    textgen.copy_context = copy_context
    textworld.logic.Rule.parse_conjunctive_query = functools.lru_cache(maxsize=None)(
        textworld.logic.Rule.parse_conjunctive_query
    )


class Original:
    """The original engine, one game at a time."""

    def __init__(self, fast: bool = True) -> None:
        engine = PddlEnv(EnvInfos(won=True, admissible_commands=True, moves=True))
        if fast:
            engine.downward_lib.load_sas_replan = lambda sas: None
        self._env = AlfredDemangler(engine, shuffle=False)

    def load(self, path: Path) -> None:
        self._env.load(str(path))

    def reset(self) -> State:
        return self._state(None, self._env.reset())

    def step(self, command: str) -> State:
        return self._state(command, self._env.step(command)[0])

    def _state(self, command: str | None, answer: Any) -> State:
        admissible = list(answer["admissible_commands"])
        assert admissible == sorted(set(admissible)), "the original sorts its admissible commands"
        return {
            "command": command,
            "feedback": answer.feedback,
            "admissible": admissible,
            "score": answer.get("score") or 0,  # there is none after the reset
            "won": answer["won"],
            "moves": answer["moves"],
        }


def play(engine: Original, name: str, path: Path) -> list[State]:
    """Play one game by its script and return all states, the first after the reset."""
    script = Script(name, json.loads(path.read_text())["walkthrough"])
    engine.load(path)
    states = [engine.reset()]
    for _ in range(len(script)):
        states.append(engine.step(script.next(states[-1]["feedback"], states[-1]["admissible"])))
    return states


def games_under(source: Path) -> dict[str, Path]:
    """All games of a folder or of a tar archive, by their name: split/task/trial, the folders that they stand in."""
    if source.is_file():
        folder = Path(tempfile.mkdtemp(prefix="games-"))
        atexit.register(shutil.rmtree, folder)
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        source = folder
    files = ((path.resolve(), path.resolve().parts[-4:-1]) for path in source.rglob("game.tw-pddl"))
    return dict(sorted(("/".join(name), path) for path, name in files))


def evenly(names: Sequence[str], count: int) -> list[str]:
    return [names[i * len(names) // count] for i in range(count)] if count < len(names) else list(names)


def selection(names: Sequence[str], train: int) -> tuple[list[str], list[str]]:
    """The games to record: a small mixed sample, and the rest: both validation splits, and some of the training games."""
    chosen = [n for n in names if not n.startswith(("train/", "valid_train/"))]
    groups = defaultdict(list)
    for name in chosen:
        split, task, _ = name.split("/")
        groups[split, task.split("-")[0]].append(name)
    sample = [name for group in groups.values() for name in evenly(group, 2)]
    rest = [n for n in chosen if n not in set(sample)] + evenly([n for n in names if n.startswith("train/")], train)
    return sample, rest


@functools.lru_cache(maxsize=1)
def engine_of_this_process() -> Original:
    speed_up()
    return Original()


def play_in_worker(job: tuple[str, Path]) -> tuple[str, list[State]]:
    return job[0], play(engine_of_this_process(), *job)


def win_in_worker(job: tuple[str, Path]) -> tuple[str, bool]:
    engine = engine_of_this_process()
    engine.load(job[1])
    state = engine.reset()
    for command in json.loads(job[1].read_text())["walkthrough"]:
        state = engine.step(command)
    return job[0], state["won"]


def in_processes(function: Any, jobs: Sequence[Any], processes: int) -> Iterator[Any]:
    with multiprocessing.Pool(processes, maxtasksperchild=GAMES_PER_PROCESS) as pool:
        for i, result in enumerate(pool.imap_unordered(function, jobs), 1):
            print(f"{i}/{len(jobs)} {result[0]}", file=sys.stderr, flush=True)
            yield result


def write_transcript(folder: Path, name: str, states: list[State]) -> None:
    """Write a whole game as JSON, one state a line."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(state) for state in states)
    text = f'{{"game": {json.dumps(name)}, "states": [\n{lines}\n]}}\n'
    (folder / (name.replace("/", "__") + ".json")).write_text(text)


def run_record(games: dict[str, Path], args: argparse.Namespace) -> None:
    sample, rest = selection(list(games), args.train)
    rest = [] if args.sample else rest
    done = {json.loads(line)["game"] for line in args.recordings.open()} if args.recordings.exists() else set()
    jobs = [(name, games[name]) for name in sample + rest if name not in done]
    with args.recordings.open("a") as stream:
        for name, states in in_processes(play_in_worker, jobs, args.processes):
            stream.write(json.dumps(record(name, [digest(**state) for state in states])) + "\n")
            stream.flush()
            if args.transcripts and name in sample:
                write_transcript(args.transcripts, name, states)


def run_check(games: dict[str, Path], count: int) -> None:
    names = evenly(selection(list(games), 0)[0], count)
    slow = [play(Original(fast=False), name, games[name]) for name in names]
    speed_up()
    differences = sum(play(Original(), name, games[name]) != states for name, states in zip(names, slow, strict=True))
    print(f"{len(names)} games, {sum(map(len, slow))} states, {differences} games differ: {', '.join(names)}")


def run_walkthroughs(games: dict[str, Path], processes: int) -> None:
    won = 0
    for name, is_won in in_processes(win_in_worker, list(games.items()), processes):
        won += is_won
        if not is_won:
            print(f"not won: {name}", flush=True)
    print(f"{won} of {len(games)} games won by their walkthroughs")


def run_pack(source: Path, target: Path) -> None:
    lines = sorted(source.read_text().splitlines(), key=lambda line: json.loads(line)["game"])
    target.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    print(f"{len(lines)} games, {sum(json.loads(line)['steps'] for line in lines)} steps, {target.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "games", type=Path, nargs="?", help="folder or archive that holds the splits (train/, valid_seen/, ...)"
    )
    parser.add_argument("--recordings", type=Path, help="file of recordings, one game a line, appended to")
    parser.add_argument("--transcripts", type=Path, help="folder for readable transcripts of the mixed sample")
    parser.add_argument("--sample", action="store_true", help="record the mixed sample only")
    parser.add_argument("--train", type=int, default=300, help="how many of the training games")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--check", type=int, metavar="GAMES")
    parser.add_argument("--walkthroughs", type=Path, metavar="GAMES")
    parser.add_argument("--pack", type=Path, nargs=2, metavar=("RECORDINGS", "OUT"))
    args = parser.parse_args()
    if args.pack:
        run_pack(*args.pack)
    elif args.walkthroughs:
        run_walkthroughs(games_under(args.walkthroughs), args.processes)
    elif args.games and args.check:
        run_check(games_under(args.games), args.check)
    elif args.games and args.recordings:
        run_record(games_under(args.games), args)
    else:
        parser.error("nothing to do: give GAMES with --recordings or --check, or --walkthroughs, or --pack")


if __name__ == "__main__":
    main()
