"""The loop that gives each scheduled step its time and tells every request how it stands."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from scheduler import Progress, Request, Scheduler

__all__ = ["BatchLoop", "Clock", "SystemClock", "Tick"]


class Clock(Protocol):
    """Where time comes from; a test passes one that does not wait."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""

    async def sleep_ns(self, duration_ns: int) -> None:
        """Let that much time pass."""


class SystemClock:
    """The machine's own monotonic clock."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        return time.monotonic_ns()

    async def sleep_ns(self, duration_ns: int) -> None:
        """Let that much time pass; the loop serves others meanwhile."""
        await asyncio.sleep(duration_ns / 1e9)


@dataclass(frozen=True, slots=True)
class Tick:
    """A request has moved on: it was admitted (both counts 0), or tokens were computed for it."""

    at_ns: int
    prefilled: int
    sampled: int
    finished: bool


class BatchLoop:
    """Runs a scheduler's steps for as long as there is work, and sleeps otherwise."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._ids = itertools.count(1)
        self._followers: dict[int, asyncio.Queue[Tick]] = {}
        self._work = asyncio.Event()

    @property
    def now_ns(self) -> int:
        """The loop's clock."""
        return self._clock.now_ns()

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            await self._work.wait()
            await self._step()

    async def follow(self, prompt_tokens: int, output_tokens: int) -> AsyncGenerator[Tick, None]:
        """Queue a request and report on it until it has finished; closing early cancels it."""
        request = Request(next(self._ids), prompt_tokens, output_tokens)
        ticks = self._followers[request.id] = asyncio.Queue()
        self._scheduler.submit(request)
        self._work.set()
        try:
            finished = False
            while not finished:
                tick = await ticks.get()
                finished = tick.finished
                yield tick
        finally:
            del self._followers[request.id]
            self._scheduler.cancel(request.id)

    async def _step(self) -> None:
        step = self._scheduler.plan()
        if step is None:
            self._work.clear()
            return
        for request_id in step.admitted:
            self._tell(Progress(request_id, prefilled=0, sampled=0, finished=False))
        await self._clock.sleep_ns(step.duration_ns)
        for progress in self._scheduler.commit(step):
            self._tell(progress)

    def _tell(self, progress: Progress) -> None:
        if progress.id in self._followers:
            tick = Tick(self.now_ns, progress.prefilled, progress.sampled, progress.finished)
            self._followers[progress.id].put_nowait(tick)
