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

SILENCE = 40.0
"""Seconds without one after which a process is given up."""

FINISHED = "finished"


class Heartbeat:
    """A thread that says that this process lives, and ends it when another one has fallen silent."""

    def __init__(self, rank: int, count: int, interval: float = INTERVAL, silence: float = SILENCE) -> None:
        self.rank, self.count = rank, count
        self.interval, self.silence = interval, silence
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self._store = dist.PrefixStore("heartbeat", dist.TCPStore(*address, is_master=False, wait_for_workers=False))
        self._store.set(f"host/{rank}", socket.gethostname())
        self._stop = Event()
        self._thread = Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        self._thread.start()
        atexit.register(self._finish)

    def _beat(self) -> None:
        heard = {other: ("", time.monotonic()) for other in range(self.count) if other != self.rank}
        number = 0
        while not self._stop.wait(self.interval):
            number += 1
            try:
                self._store.set(str(self.rank), str(number))
                for other, (sign, since) in heard.items():
                    new = self._store.get(str(other)).decode() if self._store.check([str(other)]) else ""
                    heard[other] = (new, time.monotonic()) if new != sign or new == FINISHED else (sign, since)
            except RuntimeError:
                self._end("the machine of the main process has not answered")
            for other, (_, since) in heard.items():
                if time.monotonic() - since > self.silence:
                    self._end(f"process {other}{self._host(other)} has given no sign of life for {self.silence:.0f} seconds")

    def _host(self, other: int) -> str:
        name = f"host/{other}"
        return f" on {self._store.get(name).decode()}" if self._store.check([name]) else ""

    def _end(self, reason: str) -> None:
        if self._stop.is_set():
            return
        message = f"seed-opd: the run was stopped: {reason}; the last checkpoint stands, start the run again to resume."
        print(message, file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may wait in a collective that never returns

    def _finish(self) -> None:
        self._stop.set()
        self._thread.join()
        with suppress(RuntimeError):  # the others are gone already, which is where this process goes too
            self._store.set(str(self.rank), FINISHED)
