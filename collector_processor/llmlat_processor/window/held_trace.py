"""A trace that is being held, or whose root is still awaited after what came of it has gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from llmlat_processor.model import Span
from llmlat_processor.window.callees import Calls, calls_of
from llmlat_processor.window.tombstones import Stone

SPAN_OVERHEAD: Final = 1_000
"""Bytes that a held span takes beyond its serialized form: the objects made of it."""


def bare_size(span: Span) -> int:
    """Bytes that a held span takes by itself."""
    return len(span.raw) + SPAN_OVERHEAD


class HeldTrace:
    """What is held of a trace (plain slots: several stores a span).

    Attributes:
        trace_id: its id, one object for all of its spans: each has come with 64 bytes of its own.
        spans: what is held.
        room: how many spans that may be; what was let go before counts too.
        bytes: what they take.
        missing: spans that were let go without a trace of them being kept.
        has_root: whether one of the spans has no parent.
        is_full: whether no more fan-outs are sought in it.
        first_ns: when the first of the spans came.
        last_ns: when the last of them came.
        look_ns: when it is to be seen whether the trace is complete.
        counted: the calls among so many of the spans.
        before: what was let go of it before: spans without their root, or hidden ones.
        skeletons: of how many of these skeletons were kept.
        until_ns: how long its root is awaited while nothing is held of it.
    """

    __slots__ = (
        "before",
        "bytes",
        "counted",
        "first_ns",
        "has_root",
        "is_full",
        "last_ns",
        "look_ns",
        "missing",
        "room",
        "skeletons",
        "spans",
        "trace_id",
        "until_ns",
    )

    def __init__(self) -> None:
        self.trace_id = b""
        self.before: Stone | None = None
        self.missing = self.skeletons = 0
        self.begin(0, 0)

    def begin(self, now_ns: int, most_spans: int) -> None:
        """Hold nothing, from now on."""
        self.spans: list[Span] = []
        self.room = max(1, most_spans - self.skeletons)
        self.bytes = 0
        self.has_root = False
        self.is_full = False
        self.first_ns = self.last_ns = now_ns
        self.look_ns = self.until_ns = 0
        self.counted: tuple[int, Calls] = (0, ())

    def add(self, span: Span, size: int) -> None:
        """Hold one more."""
        self.spans.append(span)
        self.bytes += size
        if not span.parent_id:
            self.has_root = True

    def let_go(self, gone: Collection[Span], size: int) -> Sequence[Span]:
        """Hold these no more, but know them: they are returned in the order in which they came."""
        leaving = [span for span in self.spans if span in gone]
        self.spans = [span for span in self.spans if span not in gone]
        self.bytes -= size
        self.counted = (0, ())
        self.remember(leaving)
        return leaving

    def remember(self, spans: Sequence[Span]) -> None:
        """Know these when they come again."""
        if self.before is None:
            self.before = Stone(spans)
        else:
            self.before.remember(spans)

    def has_seen(self, span: Span) -> bool:
        """Whether a span was let go before, byte for byte."""
        return self.before is not None and self.before.has(span)

    def calls(self) -> Calls:
        """The calls among what is held; found once for so many spans."""
        if self.counted[0] != len(self.spans):
            self.counted = (len(self.spans), calls_of(self.spans))
        return self.counted[1]
