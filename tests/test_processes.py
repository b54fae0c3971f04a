"""Sharing work between processes, and what happens when one of them dies or freezes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from seed_opd import processes

SHARE = """
from seed_opd.processes import *
join("cpu")
calls = []
def double(items):
    calls.append(list(items))
    return [2 * item for item in items]
assert spread(double, range(5)) == [0, 2, 4, 6, 8]
assert calls == [[0, 2, 4] if is_main() else [1, 3]]
assert spread(double, [7]) == [14] and spread(double, []) == []
assert add_up({"both": 1.5, f"only {rank()}": 2.0}) == {"both": 3.0, "only 0": 2.0, "only 1": 2.0}
assert most(rank()) == 1
assert from_main(lambda: f"made by {rank()}") == "made by 0"
print("shared")
"""

WAIT = """
import sys, time
import torch.distributed as dist
from seed_opd.heartbeat import Heartbeat
from seed_opd.processes import rank, count
dist.init_process_group("gloo")
Heartbeat(rank(), count(), interval=0.1, silence=3.0).start()
dist.barrier()
print("together", flush=True)
if sys.argv[1] == "finish" and rank() == 1:
    sys.exit()
time.sleep(8 if sys.argv[1] == "finish" else 600)
"""


def start(script: str, *arguments: str) -> list[subprocess.Popen[str]]:
    """Two processes, as torchrun would start them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env={**shared, "RANK": str(number)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]


def test_two_processes_share_work():
    for process in start(SHARE):
        out, error = process.communicate(timeout=120)
        assert out == "shared\n", error


def test_one_process_does_all_of_it():
    assert processes.spread(lambda items: [2 * item for item in items], range(3)) == [0, 2, 4]
    assert processes.add_up({"a": 1.0}) == {"a": 1.0}
    assert processes.from_main(lambda: 5) == processes.most(5) == 5


@pytest.mark.parametrize("number", [0, 1])
def test_a_process_that_freezes_is_named_by_the_others(number):
    pair = start(WAIT, "freeze")
    assert all(process.stdout.readline() == "together\n" for process in pair)
    pair[number].send_signal(signal.SIGSTOP)
    other = 1 - number
    _, error = pair[other].communicate(timeout=60)
    pair[number].kill()
    pair[number].communicate()
    assert pair[other].returncode == 1
    if number == 1:
        assert re.search("process 1( on .*)? has given no sign of life for 3 seconds", error)
    else:
        assert re.search("(process 0.*|the machine of the main process) has given no sign of life for 3 seconds", error)


def test_a_process_that_has_finished_is_not_missed():
    pair = start(WAIT, "finish")
    for process in pair:
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
