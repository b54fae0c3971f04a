"""Speed of Sokoban and EZPoints on one core: pictures, steps without them, and how fast tasks are made.

    python benchmarks/vision.py [--rounds 5]

Every number is over episodes of random actions on many tasks; times are CPU seconds of this process, the median of rounds
that take turns, with the slowest and the fastest. Pictures are timed alone, each of another state.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

from measuring import table

from seed_opd.environments.base import Environment
from seed_opd.environments.ezpoints import EzpointsEnvironment
from seed_opd.environments.ezpoints.cards import deal
from seed_opd.environments.sokoban import SokobanEnvironment
from seed_opd.environments.sokoban.generator import generate
from seed_opd.environments.sokoban.solver import distance

EPISODES = 200


def step_rate(environment: Environment) -> float:
    """Steps per CPU second, resets not counted."""
    rng, steps, seconds = random.Random(0), 0, 0.0
    for task in environment.tasks("train")[:EPISODES]:
        actions = rng.choices(environment.reset(task).actions or (), k=50)
        start = time.process_time()
        for action in actions:
            environment.step(action)
        seconds += time.process_time() - start
        steps += len(actions)
    return steps / seconds


def picture_rate(environment: Environment) -> float:
    """Pictures per CPU second, one of each state of random episodes."""
    rng, pictures, seconds = random.Random(0), 0, 0.0
    for task in environment.tasks("train")[:EPISODES]:
        for action in rng.choices(environment.reset(task).actions or (), k=5):
            environment.step(action)
            start = time.process_time()
            environment.picture()
            seconds += time.process_time() - start
            pictures += 1
    return pictures / seconds


def making_rate(make: Callable[[int], object]) -> float:
    """Tasks made per CPU second, each of a seed that was not seen before."""
    start = time.process_time()
    for _ in range(EPISODES):
        make(_next_seed())
    return EPISODES / (time.process_time() - start)


_seeds = iter(range(2**32, 2**40))


def _next_seed() -> int:
    return next(_seeds)


WORKS: dict[str, tuple[str, Callable[[], float]]] = {
    "Sokoban, steps/s without pictures": (">= 50,000", lambda: step_rate(SokobanEnvironment())),
    "EZPoints, steps/s without pictures": ("", lambda: step_rate(EzpointsEnvironment())),
    "Sokoban, pictures/s, 96 x 96": (">= 2,000", lambda: picture_rate(SokobanEnvironment(tile=16))),
    "Sokoban, pictures/s, 222 x 222": (">= 2,000", lambda: picture_rate(SokobanEnvironment(tile=37))),
    "EZPoints, pictures/s, 96 x 96": (">= 2,000", lambda: picture_rate(EzpointsEnvironment(size=96))),
    "EZPoints, pictures/s, 300 x 300": (">= 2,000", lambda: picture_rate(EzpointsEnvironment(size=300))),
    "Sokoban, rooms made and solved/s": ("", lambda: making_rate(lambda seed: distance(generate(seed)))),
    "EZPoints, hands dealt/s": ("", lambda: making_rate(deal)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    rates: dict[str, list[float]] = {name: [] for name in WORKS}
    for number in range(rounds + 1):
        for name, (_, work) in WORKS.items():
            rate = work()
            if number:  # the first round warms up
                rates[name].append(rate)
    rows = [
        [name, f"{statistics.median(rates[name]):,.0f}", f"{min(rates[name]):,.0f} to {max(rates[name]):,.0f}", target]
        for name, (target, _) in WORKS.items()
    ]
    table(["on one core", "median", "range", "target"], rows)


if __name__ == "__main__":
    main()
