"""A process that dies or freezes ends the whole run with its name, instead of leaving the others waiting."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import time
from contextlib import suppress
from threading import Event, Thread

import torch.distributed as dist

INTERVAL = 2.0
"""Seconds between two signs of life."""

SILENCE = 20.0
"""Seconds without one after which a process is given up."""

FINISHED = "finished"


class Heartbeat:
    """Two threads: one says that this process lives and listens for the others, one ends it when they have fallen silent."""

    def __init__(self, rank: int, count: int, interval: float = INTERVAL, silence: float = SILENCE) -> None:
        self.rank, self.interval, self.silence = rank, interval, silence
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self._store = dist.PrefixStore("heartbeat", dist.TCPStore(*address, is_master=False, wait_for_workers=False))
        self._heard = dict.fromkeys(range(count), time.monotonic())  # of oneself: when the store answered last
        self._hosts: dict[int, str] = {}
        self._stop = Event()
        self._threads = [Thread(target=target, daemon=True) for target in (self._beat, self._watch)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        atexit.register(self._finish)

    def _beat(self) -> None:
        with suppress(RuntimeError):  # the store is gone; `_watch` will notice that it does not answer
            self._talk()

    def _talk(self) -> None:
        signs = dict.fromkeys(self._heard, "")
        number = 0
        while not self._stop.wait(self.interval):
            number += 1
            self._store.set(str(self.rank), f"{socket.gethostname()} {number}")
            for other, old in signs.items():
                sign = self._store.get(str(other)).decode() if self._store.check([str(other)]) else ""
                if sign != old or sign == FINISHED:
                    signs[other], self._heard[other] = sign, time.monotonic()
                    self._hosts[other] = sign.partition(" ")[0]

    def _watch(self) -> None:
        while not self._stop.wait(self.interval):
            for other, since in self._heard.items():
                if time.monotonic() - since > self.silence and not self._stop.is_set():
                    self._end(self._name(other))

    def _name(self, other: int) -> str:
        if other == self.rank:
            return "the machine of the main process"
        return f"process {other} on {self._hosts[other]}" if other in self._hosts else f"process {other}"

    def _end(self, name: str) -> None:
        reason = f"{name} has given no sign of life for {self.silence:.0f} seconds"
        message = f"seed-opd: the run was stopped: {reason}; the last checkpoint stands, start the run again to resume."
        print(message, file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may wait in a collective that never returns

    def _finish(self) -> None:
        self._stop.set()
        with suppress(RuntimeError):  # the others are gone already, which is where this process goes too
            self._store.set(str(self.rank), FINISHED)
