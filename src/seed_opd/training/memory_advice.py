"""What to change in a run that does not fit: the settings that take memory, those that cost least first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from seed_opd.config import Config, LoraConfig
from seed_opd.methods import resolve
from seed_opd.training.memory_plan import memory_plan
from seed_opd.training.plan import at_once, load_of
from seed_opd.training.shapes import Shape

MOST_PROCESSES = 64
SMALL_CHUNK = 256

Run = tuple[Config, int]
"""A config and its number of processes."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting, given as the command line takes it, or the number of GPUs."""

    field: str
    value: Any
    shown: str

    def __call__(self, run: Run) -> Run:
        config, processes = run
        section, _, name = self.field.partition(".")
        if not name:
            return config, self.value
        part = getattr(config, section).model_copy(update={name: self.value})
        return config.model_copy(update={section: part}), processes


@dataclass(frozen=True, slots=True)
class Advice:
    """A change as it is shown, and the peak in bytes with it and all those before it."""

    change: str
    peak: int


def advise(config: Config, shape: Shape, processes: int, limit: int) -> list[Advice]:
    """Changes that bring the peak down to `limit` bytes, and none in vain; where that cannot be done, all that help."""
    start = (config, processes)

    def peak(changes: Iterable[Change]) -> int:
        changed, count = reduce(lambda run, change: change(run), changes, start)
        return memory_plan(shape, load_of(changed, resolve(changed.method, changed.overrides), shape, count)).peak

    chosen: list[Change] = []
    while peak(chosen) > limit:
        run = reduce(lambda run, change: change(run), chosen, start)
        longer = ([*(old for old in chosen if old.field != new.field), new] for new in _changes(*run))
        found = next((changes for changes in longer if peak(changes) < peak(chosen)), None)
        if found is None:
            break
        chosen = found
    if peak(chosen) <= limit:
        for change in list(chosen):
            rest = [other for other in chosen if other is not change]
            chosen = rest if peak(rest) <= limit else chosen
    return [Advice(change.shown, peak(chosen[: count + 1])) for count, change in enumerate(chosen)]


def _changes(config: Config, processes: int) -> Iterator[Change]:
    """Each possible change alone: what costs some time, then what costs much of it, then what changes the training."""
    acting = config.context.max_prompt_tokens + config.context.max_response_tokens
    smaller = max(acting, config.model.micro_batch_tokens // 2)
    analyzed = at_once(config, config.rollout.tasks * config.rollout.group, processes)
    yield Change("model.recompute", True, "model.recompute=true")
    if smaller < config.model.micro_batch_tokens:
        yield Change("model.micro_batch_tokens", smaller, f"model.micro_batch_tokens={smaller}")
    for fewer in (config.rollout.concurrency // 2, analyzed // 2):
        if fewer:
            yield Change("rollout.concurrency", fewer, f"rollout.concurrency={fewer}")
    if config.model.logits_chunk > SMALL_CHUNK:
        yield Change("model.logits_chunk", SMALL_CHUNK, f"model.logits_chunk={SMALL_CHUNK}")
    if config.model.offload == "none":
        yield Change("model.offload", "reference", "model.offload=reference")
    yield Change("model.offload", "training", "model.offload=training")
    yield Change("model.lora", LoraConfig(), "model.lora={rank: 32}")
    if processes < MOST_PROCESSES:
        yield Change("processes", 2 * processes, f"--gpus {2 * processes}")
