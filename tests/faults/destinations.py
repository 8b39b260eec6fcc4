"""Destinations that are slow, or not there, or say no: as long as a test wants them to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import Any

from llmlat_processor.written import OWN_SCOPE
from tests.llmlat_processor.sink import Answer, Arrivals, Sink


class Moody(Sink):
    """Over gRPC; while it has a mood, that is how it answers."""

    mood: Answer | None = None
    delay_s = 0.0

    def _export(self, content: bytes, context: Any) -> bytes:
        if self.delay_s:
            Event().wait(self.delay_s)
        if self.mood is not None:
            self.has_come(content, {})
            return self.mood(context)
        return super()._export(content, context)


class Timed(Sink):
    """Notes when each lane has come."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes_s: dict[bytes, float] = {}

    def take(self, content: bytes) -> None:
        now_s, before = time.monotonic(), len(self.spans)
        super().take(content)
        for _, scope, span in self.spans[before:]:  # one exporter sends one request at a time
            if scope.scope.name == OWN_SCOPE:
                self.lanes_s.setdefault(span.trace_id, now_s)

    def delays_s(self, sent_s: Mapping[bytes, float]) -> list[float]:
        """From the last span of a trace to its lane, in order of size; every trace has one."""
        return sorted(self.lanes_s[trace_id] - at_s for trace_id, at_s in sent_s.items())


class Place:
    """Where a destination is, whether or not it is there; what has come, to all that ever were."""

    def __init__(self) -> None:
        """It is there."""
        self._now: Moody | None = Moody()
        self.address = self._now.address
        self.all: list[Arrivals] = [self._now]

    @property
    def spans(self) -> int:
        """How many have come."""
        return sum(len(one.spans) for one in self.all)

    @property
    def now(self) -> Moody:
        """The one that is there."""
        assert self._now is not None
        return self._now

    def down(self) -> None:
        """Nobody listens there any more."""
        if self._now is not None:
            self._now.stop()
            self._now = None

    def up(self) -> None:
        """Somebody listens there again."""
        if self._now is None:
            self._now = Moody(self.address)
            self.all.append(self._now)


@contextmanager
def place() -> Iterator[Place]:
    one = Place()
    try:
        yield one
    finally:
        one.down()


@contextmanager
def timed() -> Iterator[Timed]:
    one = Timed()
    try:
        yield one
    finally:
        one.stop()
