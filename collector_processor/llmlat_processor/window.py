"""Holds spans until their trace is complete: no clock, no thread, no I/O, and bounded.

    first span                 root                 last span
    |--------------------------|--------------------|··· idle ···> released: complete
    |                                               |······· grace ·······> the same, where a call
    |                                                            still misses its callee's spans
    |························ hold_max ·····························> released: as far as it came

A span that arrives after its trace was released is handed on at once, never held a second time;
so is one that there is no room for. What comes again, byte for byte, is told from what is late.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from llmlat_processor.callees import Callees
from llmlat_processor.model import Span
from llmlat_processor.tombstones import Tombstones

SECOND_NS: Final = 1_000_000_000
MIB: Final = 1 << 20

SPAN_OVERHEAD: Final = 1_000
"""Bytes that a held span takes beyond its serialized form: the objects made of it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a trace is let go, and how much is held at most.

    Attributes:
        idle_ns: a complete trace is released when nothing came for so long.
        grace_ns: the same while a call misses its callee, whose exporter flushes by itself.
        hold_max_ns: longest that any trace is held, from its first span.
        tombstone_ns: how long a released trace is remembered, so that late spans are told.
        trace_spans: most spans of one trace.
        held_bytes: most bytes held; above it the oldest traces are released early.
        tombstones: most released traces that are remembered.
        tombstone_spans: most spans of them, so that repeats are told from late ones.
        hopeless_calls: calls without a callee after which a target is no longer waited for.
        targets: most targets that are remembered.
    """

    idle_ns: int = 2 * SECOND_NS
    grace_ns: int = 6 * SECOND_NS
    hold_max_ns: int = 60 * SECOND_NS
    tombstone_ns: int = 600 * SECOND_NS
    trace_spans: int = 50_000
    held_bytes: int = 256 * MIB
    tombstones: int = 100_000
    tombstone_spans: int = 2_000_000
    hopeless_calls: int = 100
    targets: int = 1_000


def bare_size(span: Span) -> int:
    """Bytes that a held span takes by itself."""
    return len(span.raw) + SPAN_OVERHEAD


class Why(Enum):
    """Why spans were let go."""

    COMPLETE = "complete"
    HELD_LONGEST = "held_longest"
    NO_ROOM = "no_room"
    SHUTDOWN = "shutdown"
    LATE = "late"
    REPEATED = "repeated"
    TRACE_FULL = "trace_full"
    TOO_LARGE = "too_large"


NEVER_HELD: Final = frozenset({Why.LATE, Why.REPEATED, Why.TRACE_FULL, Why.TOO_LARGE})
"""Of these spans each is let go by itself: it came too late, or there was no room for it."""

WITHOUT_ROOM: Final = (Why.TRACE_FULL, Why.TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Released:
    """Spans of one trace, in the order in which they came.

    Attributes:
        spans: mostly the whole trace; one span where it was never held.
        why: what ended their stay.
        missing: how many more of this trace did not fit and were let go before.
    """

    spans: Sequence[Span]
    why: Why
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Books:
    """Every span that was fed, accounted for: received = released + held."""

    received: int
    released: Mapping[Why, int]
    held: int


class _Held:
    """A trace that is being held (plain slots: several stores a span)."""

    __slots__ = ("bytes", "first_ns", "has_root", "last_ns", "look_ns", "missing", "spans")

    def __init__(self, now_ns: int) -> None:
        self.spans: list[Span] = []
        self.bytes = 0
        self.missing = 0
        self.has_root = False
        self.first_ns = now_ns
        self.last_ns = now_ns
        self.look_ns = 0


class Window:
    """The traces that are not complete yet."""

    def __init__(
        self, limits: Limits | None = None, size_of: Callable[[Span], int] = bare_size
    ) -> None:
        """Hold nothing yet.

        Args:
            limits: when traces go, and how much is held.
            size_of: bytes that a held span takes, the same whenever it is asked.
        """
        self._size_of = size_of
        self._limits = limits or Limits()
        self._held: dict[bytes, _Held] = {}  # in the order of their first spans
        self._bytes = 0
        self._looks: list[tuple[int, bytes]] = []  # heap: when to look at which trace again
        self._graves = Tombstones(self._limits.tombstones, self._limits.tombstone_spans)
        self._callees = Callees(self._limits.hopeless_calls, self._limits.targets)
        self._received = 0
        self._released: Counter[Why] = Counter()

    def feed(self, span: Span, now_ns: int) -> Sequence[Released]:
        """Take a span in; what has to go because of it comes out, mostly nothing.

        Args:
            span: one received span.
            now_ns: reading of a clock that never runs backwards, the same as in `expire`.
        """
        self._received += 1
        limits = self._limits
        size = self._size_of(span)
        released: Sequence[Released] = ()
        if self._bytes + size > limits.held_bytes:
            if size > limits.held_bytes:
                return (self._let_pass(span, Why.TOO_LARGE),)
            released = self._make_room(size, now_ns)
        held = self._held.get(span.trace_id)
        if held is None:
            if span.trace_id in self._graves:
                why = Why.REPEATED if self._graves.is_repeat(span) else Why.LATE
                return (*released, self._let_pass(span, why))
            held = self._held[span.trace_id] = _Held(now_ns)
            first_look_ns = now_ns + min(limits.idle_ns, limits.hold_max_ns)
            self._look_again(span.trace_id, held, first_look_ns)
        elif held.look_ns > now_ns + limits.idle_ns:
            self._look_again(span.trace_id, held, now_ns + limits.idle_ns)
        held.last_ns = now_ns
        if len(held.spans) < limits.trace_spans:
            self._add(span, size, held)
            return released
        held.missing += 1
        if not span.parent_id and not held.has_root:
            last = self._take_out(held)
            self._add(span, size, held)
            span = last  # without its root a trace explains nothing
        return (*released, self._let_pass(span, Why.TRACE_FULL))

    def _add(self, span: Span, size: int, held: _Held) -> None:
        held.spans.append(span)
        held.has_root |= not span.parent_id
        held.bytes += size
        self._bytes += size

    def _take_out(self, held: _Held) -> Span:
        span = held.spans.pop()
        size = self._size_of(span)
        held.bytes -= size
        self._bytes -= size
        return span

    def _let_pass(self, span: Span, why: Why) -> Released:
        self._released[why] += 1
        return Released((span,), why)

    def expire(self, now_ns: int) -> Sequence[Released]:
        """The traces that are complete by now, or were held for too long, in that order."""
        released = []
        while self._looks and self._looks[0][0] <= now_ns:
            look_ns, trace_id = heapq.heappop(self._looks)
            held = self._held.get(trace_id)
            if held is None or held.look_ns != look_ns:
                continue  # looked at, or released, in the meantime
            why, due_ns = self._due(held, now_ns)
            if due_ns <= now_ns:
                released.append(self._release(trace_id, why, now_ns))
            else:
                self._look_again(trace_id, held, due_ns)
        self._graves.forget(now_ns)
        return released

    def flush(self, now_ns: int) -> Sequence[Released]:
        """Everything that is held, because the process ends."""
        return [self._release(trace_id, Why.SHUTDOWN, now_ns) for trace_id in list(self._held)]

    @property
    def books(self) -> Books:
        """What became of every span so far."""
        held = sum(len(trace.spans) for trace in self._held.values())
        return Books(self._received, dict(self._released), held)

    @property
    def held_bytes(self) -> int:
        """Bytes held now; never above the limit."""
        return self._bytes

    def _due(self, held: _Held, now_ns: int) -> tuple[Why, int]:
        """Why and when a trace goes if nothing more comes."""
        limits = self._limits
        latest_ns = held.first_ns + limits.hold_max_ns
        if not held.has_root:
            return Why.HELD_LONGEST, latest_ns
        quiet_ns = now_ns - held.last_ns
        wait_ns = limits.idle_ns
        if limits.idle_ns <= quiet_ns < limits.grace_ns and self._callees.are_missing(held.spans):
            wait_ns = limits.grace_ns
        complete_ns = held.last_ns + wait_ns
        if complete_ns <= latest_ns:
            return Why.COMPLETE, complete_ns
        return Why.HELD_LONGEST, latest_ns

    def _look_again(self, trace_id: bytes, held: _Held, look_ns: int) -> None:
        held.look_ns = look_ns
        heapq.heappush(self._looks, (look_ns, trace_id))

    def _make_room(self, size: int, now_ns: int) -> Sequence[Released]:
        """Let the oldest traces go early rather than drop what comes."""
        released = []
        while self._bytes + size > self._limits.held_bytes:
            released.append(self._release(next(iter(self._held)), Why.NO_ROOM, now_ns))
        return released

    def _release(self, trace_id: bytes, why: Why, now_ns: int) -> Released:
        held = self._held.pop(trace_id)
        self._bytes -= held.bytes
        self._released[why] += len(held.spans)
        self._graves.bury(trace_id, held.spans, now_ns + self._limits.tombstone_ns)
        if why is Why.COMPLETE:
            self._callees.learn(held.spans)
        return Released(held.spans, why, held.missing)
