"""What a host knows of itself, written to a file: what it really did, and what its clocks said.

{"request": 3, "what": "queue", "ns": 150213456}    it waited so long, on its own monotonic clock
{"request": 3, "what": "arrived", "at_ns": 9105...} an instant, on its monotonic clock
{"monotonic_ns": ..., "wall_ns": ...}               one instant, read on both of its clocks
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import time
from collections import deque
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from tests.truth.hosts.variables import RECORD

CLOCKS_EVERY_S: Final = 0.05
READINGS: Final = 5
"""Pairs read for one instant; the narrowest is kept."""

WIDEST_NS: Final = 20_000
"""A reading that took longer was interrupted, and is none."""


class Record:
    """The file of this host; what is noted is written by a thread, and the rest at the end."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._lines: deque[str] = deque()
        self._lock = Lock()
        atexit.register(self.write)

    @classmethod
    @cache
    def of_this_host(cls) -> Record:
        """The file that the environment names: one record in a process."""
        return cls(os.environ[RECORD])

    def waited(self, request: int, what: str, duration_ns: int) -> None:
        """Something of a request took so long."""
        self.note(request=request, what=what, ns=duration_ns)

    def stamped(self, request: int, what: str, at_ns: int) -> None:
        """Something of a request was so at an instant of this host's monotonic clock."""
        self.note(request=request, what=what, at_ns=at_ns)

    def note(self, **facts: object) -> None:
        """Anything else that is known."""
        self._lines.append(json.dumps(facts))

    def watch_clocks(self) -> None:
        """From now on, read both clocks again and again."""
        Thread(target=self._read_clocks, daemon=True).start()

    def _read_clocks(self) -> None:
        never = Event()
        while True:
            width_ns, monotonic_ns, wall_ns = read_clocks()
            if width_ns <= WIDEST_NS:
                self.note(monotonic_ns=monotonic_ns, wall_ns=wall_ns)
            self.write()
            never.wait(CLOCKS_EVERY_S)

    def write(self) -> None:
        """Write what has been noted so far."""
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            while self._lines:
                file.write(self._lines.popleft() + "\n")


def read_clocks() -> tuple[int, int, int]:
    """How exact in ns, and one instant on this host's monotonic and on its wall clock."""
    readings = []
    for _ in range(READINGS):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, (before + after) // 2, wall))
    return min(readings)


async def wait(milliseconds: float) -> int:
    """Let time pass; how much it was, in ns.

    By a timer of the event loop, which waits in epoll: libfaketime 0.9.10 breaks `time.sleep`.
    """
    begun_ns = time.monotonic_ns()
    if milliseconds > 0:
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        loop.call_later(milliseconds / 1e3, over.set_result, None)
        await over
    return time.monotonic_ns() - begun_ns
