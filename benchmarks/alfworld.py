"""Speed and memory of our ALFWorld engine, interleaved with the original's where that is installed.

    python benchmarks/alfworld.py [--games SOURCE] [--original PYTHON]

PYTHON is the interpreter of an environment with the original engine (tests/oracle/README.md says how to make one). Each
engine runs in a process of its own; game by game, both load the same file and take the same random admissible commands, and
what is admissible at the end is compared. Times are CPU seconds. Memory is the resident set, read from /proc (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

FIELDS = ("load + reset, first", "load + reset, median", "steps/s", "memory per live environment", "growth by resets")
TARGETS = ("", "<= 10 ms", ">= 5,000", "<= 1 MB", "none")


# ---- inside an engine's process: what is measured, in the terms of that engine


class Ours:
    """Our engine."""

    def __init__(self) -> None:
        from seed_opd.environments.alfworld import engine

        self._engine = engine

    def open(self, path: str) -> Any:
        return self._engine.load(json.loads(Path(path).read_text(encoding="utf-8"))).new()

    def reset(self, environment: Any) -> list[str]:
        environment.reset()
        return list(environment.admissible)

    def step(self, environment: Any, command: str) -> tuple[list[str], bool]:
        environment.step(command)
        return environment.admissible, environment.won


class Original:
    """The original engine, as alfworld sets it up."""

    def open(self, path: str) -> Any:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
        from textworld.envs.pddl import PddlEnv

        infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
        environment = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
        environment.load(path)
        return environment

    def reset(self, environment: Any) -> list[str]:
        return environment.reset()["admissible_commands"]

    def step(self, environment: Any, command: str) -> tuple[list[str], bool]:
        state = environment.step(command)[0]
        return state["admissible_commands"], state["won"]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_speed(engine: Any, path: str, commands: list[str]) -> dict[str, Any]:
    """CPU seconds of load and reset, and of all commands, with what is admissible at the end."""
    start = time.process_time()
    environment = engine.open(path)
    engine.reset(environment)
    ready = time.process_time()
    for command in commands:
        admissible, _ = engine.step(environment, command)
    return {"load": ready - start, "steps": time.process_time() - ready, "admissible": list(admissible)}


def measure_memory(engine: Any, paths: list[str]) -> dict[str, Any]:
    """Resident bytes per live environment, each with a game of its own; one is opened before, for what is shared."""
    first = engine.open(paths[0])
    engine.reset(first)
    before = resident_bytes()
    environments = [engine.open(path) for path in paths[1:]]
    for environment in environments:
        engine.step(environment, engine.reset(environment)[0])
    return {"bytes": (resident_bytes() - before) / len(environments), "environments": len(environments)}


def measure_growth(engine: Any, path: str, resets: int) -> dict[str, Any]:
    """By how many bytes the process grows in many resets, after as many as a tenth of them to warm up."""
    environment = engine.open(path)

    def play(times: int) -> None:
        for _ in range(times):
            admissible = engine.reset(environment)
            for command in admissible[:5]:
                engine.step(environment, command)

    play(resets // 10)
    before = resident_bytes()
    play(resets)
    return {"bytes": resident_bytes() - before, "resets": resets}


def serve(engine: Any) -> None:
    """Answer requests, one a line; the engine's own output must not mix with the answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    measures: dict[str, Any] = {"speed": measure_speed, "memory": measure_memory, "growth": measure_growth}
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(json.dumps(measures[request.pop("measure")](engine, **request)) + "\n")
        answers.flush()


# ---- outside: which games and commands, and the table


class Process:
    """An engine in a process of its own, started by the interpreter that has it."""

    def __init__(self, python: str, engine: str) -> None:
        self._process = subprocess.Popen(
            [python, "-P", __file__, "--serve", engine],  # -P: this file must not hide the package of the same name
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"ALFWORLD_DATA": tempfile.gettempdir(), **os.environ},
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, measure: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"measure": measure, **request}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("the engine's process ended; its last words are above")
        return json.loads(answer)


def write_games(folder: Path, source: str | None, count: int) -> list[str]:
    """Write games as files, spread over all splits of the source."""
    from seed_opd.environments.alfworld.games import open_games

    store = open_games(source)
    names = [name for split in store.splits for name in store.names(split)]
    paths = []
    for i in range(min(count, len(names))):
        paths.append(folder / f"{i}.tw-pddl")
        paths[-1].write_text(json.dumps(store.read(names[i * len(names) // min(count, len(names))])), encoding="utf-8")
    return [str(path) for path in paths]


def random_walk(path: str, steps: int) -> list[tuple[str, list[str]]]:
    """Random admissible commands, each with what is admissible after it, chosen with the help of our engine."""
    engine, rng = Ours(), random.Random(0)
    environment = engine.open(path)
    admissible = engine.reset(environment)
    walk = []
    for _ in range(steps):
        command = rng.choice(admissible)
        admissible = list(engine.step(environment, command)[0])
        walk.append((command, admissible))
    return walk


def compare_speed(engines: dict[str, str], paths: list[str], steps: dict[str, int]) -> dict[str, list[str]]:
    """The first three fields of the table for each engine, measured game by game, one engine after the other."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in engines}
    with ExitStack() as stack:
        processes = {name: stack.enter_context(Process(python, name)) for name, python in engines.items()}
        for path in paths:
            walk = random_walk(path, max(steps.values()))
            for name, process in processes.items():
                commands = [command for command, _ in walk[: steps[name]]]
                answers[name].append(process.ask("speed", path=path, commands=commands))
                if answers[name][-1]["admissible"] != walk[steps[name] - 1][1]:
                    raise SystemExit(f"{name}: other commands are admissible than expected after {commands} in {path}")
    return {name: _speed_fields(found, steps[name]) for name, found in answers.items()}


def _speed_fields(answers: list[dict[str, Any]], steps: int) -> list[str]:
    loads = [1000 * answer["load"] for answer in answers]
    rate = steps * len(answers) / sum(answer["steps"] for answer in answers)
    return [f"{loads[0]:,.1f} ms", f"{statistics.median(loads[1:]):,.1f} ms", f"{rate:,.0f}"]


def memory_fields(python: str, name: str, paths: list[str], resets: int) -> list[str]:
    """The last two fields, each measured in a fresh process."""
    with Process(python, name) as process:
        memory = process.ask("memory", paths=paths)
    with Process(python, name) as process:
        growth = process.ask("growth", path=paths[0], resets=resets)
    return [
        f"{memory['bytes'] / 1e6:.2f} MB (of {memory['environments']:,})",
        f"{growth['bytes'] / 1e6:.1f} MB ({growth['resets']:,})",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", help="original, generated, or a path; by default the originals where they are there")
    parser.add_argument("--original", metavar="PYTHON", help="interpreter of an environment with the original engine")
    parser.add_argument("--count", type=int, default=20, help="games in the comparison of speed")
    parser.add_argument("--serve", choices=("ours", "original"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(Ours() if args.serve == "ours" else Original())
    engines = {"ours": sys.executable, **({"original": args.original} if args.original else {})}
    steps = {"ours": 500, "original": 20}
    environments, resets = {"ours": 1001, "original": 11}, {"ours": 10_000, "original": 20}
    with tempfile.TemporaryDirectory() as folder:
        paths = write_games(Path(folder), args.games, max(environments.values()))
        every = max(1, len(paths) // args.count)
        columns = compare_speed(engines, paths[::every][: args.count], steps)
        for name, python in engines.items():
            columns[name] += memory_fields(python, name, paths[: environments[name]], resets[name])
    print(f"{'':30}" + "".join(f"{name:>26}" for name in columns) + f"{'target':>12}")
    for i, (field, target) in enumerate(zip(FIELDS, TARGETS, strict=True)):
        print(f"{field:30}" + "".join(f"{column[i]:>26}" for column in columns.values()) + f"{target:>12}")


if __name__ == "__main__":
    main()
