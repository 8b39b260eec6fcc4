"""Holds spans until their trace is complete: no clock, no thread, no I/O, and bounded.

    first span                 root                 last span
    |--------------------------|--------------------|··· idle ···> released: complete
    |                                               |······· grace ·······> the same, where a call
    |                                                            still misses its callee's spans
    |························ hold_max ·····························> released: as far as it came

A trace without its root lets go of what it holds after `hold_max`, keeps a skeleton of each span,
and goes on: when the root comes, all of it can be explained, hours later too.

    a, b ···· hold_max ····> a, b    c ···· hold_max ····> c    root ·· idle ··> (a b c) root

A span that arrives after its trace was released is handed on at once, never held a second time;
so is one that there is no room for. What comes again, byte for byte, is told from what is late.
When no more late ones come, the trace is released once more: its skeletons, to be explained anew.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from llmlat_processor.model import Span
from llmlat_processor.window.callees import Callees
from llmlat_processor.window.fan_outs import surplus
from llmlat_processor.window.held_trace import HeldTrace, bare_size
from llmlat_processor.window.limits import Limits
from llmlat_processor.window.looks import Looks
from llmlat_processor.window.past_traces import Keeps, PastTraces
from llmlat_processor.window.releases import Books, Released, Why
from llmlat_processor.wire.skeletons import pack

WORTH_IT: Final = 4
"""A collapse frees at least one of so many spans, or no other one is tried: it takes a moment."""


def speaks(spans: Sequence[Span]) -> bool:
    """Whether something in a trace says anything of GenAI or of phases."""
    return any(span.attributes for span in spans)


class Window:
    """The traces that are not complete yet."""

    def __init__(
        self,
        limits: Limits | None = None,
        size_of: Callable[[Span], int] = bare_size,
        keeps: Keeps = speaks,
    ) -> None:
        """Hold nothing yet.

        Args:
            limits: when traces go, and how much is held.
            size_of: bytes that a held span takes, the same whenever it is asked.
            keeps: whether late spans of a released trace are worth another account of it.
        """
        self._size_of = size_of
        self._limits = limits or Limits()
        self._held: dict[bytes, HeldTrace] = {}  # in the order of their first spans
        self._past = PastTraces(self._limits, keeps)
        self._bytes = 0
        self._looks = Looks(self._held.get)
        self._callees = Callees(self._limits.hopeless_calls, self._limits.targets)
        self._received = 0
        self._let_go = 0
        self._released: Counter[Why] = Counter()

    @property
    def books(self) -> Books:
        """What became of every span so far."""
        held = self._received - self._let_go
        return Books(self._received, dict(self._released), held, self._past.forgotten)

    @property
    def held_traces(self) -> int:
        """How many traces are held."""
        return len(self._held)

    @property
    def held_bytes(self) -> int:
        """Bytes held now; never above the limit."""
        return self._bytes

    @property
    def skeleton_bytes(self) -> int:
        """Bytes of skeletons now; never above the limit."""
        return self._past.skeleton_bytes

    def awaits_root_of(self, trace_id: bytes) -> bool:
        """Whether skeletons of a trace are kept until its root comes."""
        return self._past.awaits_root_of(trace_id, self._held.get(trace_id))

    def feed_all(self, spans: Iterable[Span], now_ns: int) -> Sequence[Released]:
        """Take several spans in: the same as `feed` of each, and faster."""
        released: list[Released] = []
        limits, size_of, held_of = self._limits, self._size_of, self._held.get
        soon_ns = now_ns + limits.idle_ns
        for span in spans:
            held = held_of(span.trace_id)
            if held is not None and held.before is None and held.look_ns <= soon_ns:
                size = size_of(span)
                total = self._bytes + size
                if (
                    len(held.spans) < held.room
                    and total <= limits.held_bytes
                    and held.bytes + size <= limits.trace_bytes
                ):
                    self._received += 1
                    self._bytes = total
                    held.last_ns = now_ns
                    held.bytes += size
                    span.trace_id = held.trace_id
                    held.spans.append(span)
                    if not span.parent_id:
                        held.has_root = True
                    continue
            released += self.feed(span, now_ns)
        return released

    def feed(self, span: Span, now_ns: int) -> Sequence[Released]:
        """Take a span in; what has to go because of it comes out, mostly nothing.

        Args:
            span: one received span.
            now_ns: reading of a clock that never runs backwards, the same as in `expire`.
        """
        self._received += 1
        size = self._size_of(span)
        held = self._held.get(span.trace_id)
        if held is None or self._bytes + size > self._limits.held_bytes:
            return self._admit(span, size, now_ns)
        return self._hold(span, size, held, now_ns)

    def _admit(self, span: Span, size: int, now_ns: int) -> Sequence[Released]:
        """Find a place for a span of a trace that is not held, or for which there is no room."""
        why = self._why_not(span, size, now_ns)
        if why is not None:
            return (self._let_pass(span, why),)
        released = self._make_room(size, now_ns)
        held = self._held.get(span.trace_id)
        if held is None:
            why = self._why_not(span, size, now_ns)  # its own trace may have made room for it
            if why is not None:
                return (*released, self._let_pass(span, why))
            held = self._begin(span.trace_id, now_ns)
        return (*released, *self._hold(span, size, held, now_ns))

    def _why_not(self, span: Span, size: int, now_ns: int) -> Why | None:
        """Why a span is not held."""
        if size > self._limits.held_bytes:
            return Why.TOO_LARGE
        return None if span.trace_id in self._held else self._past.why_not(span, now_ns)

    def _begin(self, trace_id: bytes, now_ns: int) -> HeldTrace:
        limits = self._limits
        held = self._past.pick_up(trace_id) or HeldTrace()
        held.begin(now_ns, limits.trace_spans)
        held.trace_id = trace_id
        self._held[trace_id] = held
        self._looks.at(now_ns + min(limits.idle_ns, limits.hold_max_ns), trace_id, held)
        return held

    def _hold(self, span: Span, size: int, held: HeldTrace, now_ns: int) -> Sequence[Released]:
        if held.has_seen(span):
            return (self._let_pass(span, Why.REPEATED),)
        if held.look_ns > now_ns + self._limits.idle_ns:
            self._looks.at(now_ns + self._limits.idle_ns, span.trace_id, held)
        held.last_ns = now_ns
        released: Sequence[Released] = ()
        if self._has_no_place(held, size):
            released = self._collapsed(span.trace_id, held)
            if self._has_no_place(held, size):
                return (
                    *released,
                    self._let_pass(self._left_over(span, size, held), Why.TRACE_FULL),
                )
        held.add(span, size)
        self._bytes += size
        return released

    def _has_no_place(self, held: HeldTrace, size: int) -> bool:
        if not held.spans:
            return False  # one has a place wherever there is room for it
        return len(held.spans) >= held.room or held.bytes + size > self._limits.trace_bytes

    def _collapsed(self, trace_id: bytes, held: HeldTrace) -> Sequence[Released]:
        """Let those of its fan-outs go that nothing depends on, if that is worth it."""
        if held.is_full:
            return ()
        parents = {span.parent_id for span in self._past.skeletons(trace_id)}
        gone = surplus(held.spans, parents)
        if len(gone) * WORTH_IT < len(held.spans):
            gone = surplus(held.spans, parents, foresees=False)
        if len(gone) * WORTH_IT < len(held.spans):
            held.is_full = True
            return ()
        size = sum(map(self._size_of, gone))
        self._bytes -= size
        spans = held.let_go(gone, size)
        self._count(Why.COLLAPSED, spans)
        return (Released(spans, Why.COLLAPSED),)

    def _left_over(self, span: Span, size: int, held: HeldTrace) -> Span:
        """Of a trace that is full the span that is not held: any but its root."""
        held.missing += 1
        if span.parent_id or held.has_root or not held.spans:
            return span
        last = held.spans.pop()  # without its root a trace explains nothing
        last_size = self._size_of(last)
        held.bytes -= last_size
        held.add(span, size)
        self._bytes += size - last_size
        return last

    def _let_pass(self, span: Span, why: Why) -> Released:
        self._count(why, (span,))
        return Released((span,), why)

    def _count(self, why: Why, spans: Sequence[Span]) -> None:
        self._released[why] += len(spans)
        self._let_go += len(spans)

    def restore(self, packed: bytes, now_ns: int) -> None:
        """Take back what a window before this one has let go of a trace without its root.

        Args:
            packed: skeletons of one trace, as a release had them.
            now_ns: as for `feed`.
        """
        self._past.restore(packed, self._held.get, now_ns)

    def expire(self, now_ns: int, enough: int = sys.maxsize) -> Sequence[Released]:
        """What is complete by now, was held for too long, or is due for another account.

        Args:
            now_ns: as for `feed`.
            enough: held spans, after which other traces are left to the next call.
        """
        released = []
        enough += self._let_go
        for trace_id in self._looks.due(now_ns):
            held = self._held[trace_id]
            why, due_ns = self._due(held, now_ns)
            if due_ns <= now_ns:
                released.append(self._release(trace_id, why, now_ns))
                if self._let_go >= enough:
                    break
            else:
                self._looks.at(due_ns, trace_id, held)
        released += self._past.due(now_ns)
        self._past.forget(now_ns)
        self._looks.sweep()
        return released

    def flush(self, now_ns: int) -> Sequence[Released]:
        """Everything that is held, because the process ends."""
        released = [self._release(trace_id, Why.SHUTDOWN, now_ns) for trace_id in [*self._held]]
        return [*released, *self._past.flush()]

    def published(self, trace_id: bytes) -> None:
        """Another account of a trace was published: what was late is told by it."""
        self._past.published(trace_id)

    def _due(self, held: HeldTrace, now_ns: int) -> tuple[Why, int]:
        """Why and when a trace goes if nothing more comes."""
        limits = self._limits
        latest_ns = held.first_ns + limits.hold_max_ns
        if not held.has_root:
            return Why.HELD_LONGEST, latest_ns
        quiet_ns = now_ns - held.last_ns
        wait_ns = limits.idle_ns
        if limits.idle_ns <= quiet_ns < limits.grace_ns and self._callees.are_missing(held.calls()):
            wait_ns = limits.grace_ns
        complete_ns = held.last_ns + wait_ns
        if complete_ns <= latest_ns:
            return Why.COMPLETE, complete_ns
        return Why.HELD_LONGEST, latest_ns

    def _make_room(self, size: int, now_ns: int) -> Sequence[Released]:
        """Let the oldest traces go early rather than drop what comes."""
        released = []
        limits = self._limits
        while self._bytes + size > limits.held_bytes or len(self._held) >= limits.traces:
            released.append(self._release(next(iter(self._held)), Why.NO_ROOM, now_ns))
        return released

    def _release(self, trace_id: bytes, why: Why, now_ns: int) -> Released:
        held = self._held.pop(trace_id)
        self._bytes -= held.bytes
        spans, last_ns = held.spans, held.last_ns
        self._count(why, spans)
        if why is Why.COMPLETE:
            self._callees.learn(held.calls())
        if not held.has_root:
            if why is Why.SHUTDOWN:
                return Released(spans, why, held.missing, packed=pack(spans, tight=True))
            packed = self._past.put_by(trace_id, held, now_ns)
            return Released(spans, why, held.missing, packed=packed, last_ns=last_ns)
        already = self._past.bury(trace_id, held, now_ns)
        whole = [*already, *spans] if already else spans
        return Released(whole, why, held.missing, len(already), last_ns=last_ns)
