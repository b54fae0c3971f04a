"""One run on several processes, which `torchrun` starts: who this one is, and how they share work.

Every process runs the same loop and sees the same numbers. `spread` divides a list of work among them and gives all of them
all results; only the main process writes files. With one process, nothing here does anything.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from seed_opd.errors import RunStopped

Work = TypeVar("Work")
Result = TypeVar("Result")

PATIENCE = timedelta(hours=1)
"""The longest that a process waits for the slowest one; a dead one is noticed much sooner, by `seed_opd.heartbeat`."""


def rank() -> int:
    """The number of this process, 0 for the main one."""
    return int(os.environ.get("RANK", 0))


def count() -> int:
    return int(os.environ.get("WORLD_SIZE", 1))


def is_main() -> bool:
    return rank() == 0


def join(device: str) -> str:
    """Meet the other processes, once; returns the device of this one. `device` is cpu, or cuda for one GPU each.

    A process alone makes a group of one, which sharding needs too.
    """
    import torch
    import torch.distributed as dist

    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
        if count() > 1:
            from seed_opd.heartbeat import Heartbeat

            signal.signal(signal.SIGTERM, _told_to_end)
            dist.init_process_group(backend, timeout=PATIENCE)
            Heartbeat(rank(), count()).start()
        else:
            dist.init_process_group(backend, timeout=PATIENCE, store=dist.HashStore(), rank=0, world_size=1)
        atexit.register(_leave)
    return device


def spread(work: Callable[[Sequence[Work]], Sequence[Result]], items: Sequence[Work]) -> list[Result]:
    """Every process works on its share, every n-th of the items; all get all results, in the order of the items."""
    if count() == 1:
        return list(work(items))
    results: list[Any] = [None] * len(items)
    for number, part in enumerate(gather(list(work(items[rank() :: count()])))):
        results[number :: count()] = part
    return results


def from_main(make: Callable[[], Result]) -> Result:
    """What the main process makes, for all of them; the others do not call it."""
    if count() == 1:
        return make()
    return gather(make() if is_main() else None)[0]  # type: ignore[return-value]


def add_up(values: Mapping[str, float]) -> dict[str, float]:
    """Sums over the processes by name; a process may lack a name."""
    if count() == 1:
        return dict(values)
    sums: dict[str, float] = {}
    for part in gather(dict(values)):
        for name, value in part.items():
            sums[name] = sums.get(name, 0.0) + value
    return sums


def most(value: int) -> int:
    """The largest value of all processes."""
    return value if count() == 1 else max(gather(value))


def gather(value: Result) -> list[Result]:
    """The values of all processes, by their numbers. Raises RunStopped when one of them does not answer."""
    import torch.distributed as dist

    values: list[Any] = [None] * count()
    try:
        dist.all_gather_object(values, value)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise RunStopped(
            f"another process of this run has died or hangs ({reason}); start the run again to resume."
        ) from error
    return values


def _leave() -> None:
    """Leave the others before this process ends; gloo's threads abort one that does not, now and then."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _told_to_end(*_: object) -> None:
    """What torchrun asks of the others when one process has ended."""
    raise RunStopped(f"process {rank()} was told to end, since another one has died; start the run again to resume.")
