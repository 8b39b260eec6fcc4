"""Remembers the traces that were let go: a span of one of them is late, or it has come before.

Of each span eight bytes are kept, so that a batch that is sent again after its traces have gone is
known for what it is. Bounded by traces, by spans and by time. Of a trace that is forgotten so, its
id is remembered for long: its spans are late still, but what comes again is no longer told.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from llmlat_processor.model import Span
from llmlat_processor.window.marks import Generations, Marks


class Stone(Marks):
    """What is remembered of a trace of which something was let go: the marks of these spans.

    Attributes:
        until_ns: when it is forgotten.
        late: spans that came since the last account was published.
        last_ns: when the latest of them came.
        look_ns: when it is to be seen whether more came; 0 where none is awaited.
        revision: accounts that were published.
        looks: revisions that were made, published or not.
    """

    __slots__ = ("last_ns", "late", "look_ns", "looks", "revision", "until_ns")

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        super().__init__(hash(span.raw) for span in spans)
        self.until_ns = 0
        self.late = self.last_ns = self.look_ns = self.looks = 0
        self.revision = 1

    def remember(self, spans: Sequence[Span]) -> None:
        """Remember more spans."""
        if spans:
            self.add(*[hash(span.raw) for span in spans])

    def has(self, span: Span) -> bool:
        """Whether a span has come before, byte for byte."""
        return hash(span.raw) in self


class Tombstones:
    """The traces that were let go, the oldest first."""

    def __init__(self, traces: int, spans: int, remembered: int = 0) -> None:
        """Remember at most so many traces, so many spans in all, and so many ids beyond these."""
        self._most_traces = traces
        self._most_spans = spans
        self._stones: OrderedDict[bytes, Stone] = OrderedDict()
        self._spans = 0
        self._past = Generations(remembered)

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._stones

    @property
    def spans(self) -> int:
        """How many spans are remembered."""
        return self._spans

    def stone_of(self, trace_id: bytes) -> Stone | None:
        """What is remembered of a trace."""
        return self._stones.get(trace_id)

    def remembers(self, trace_id: bytes) -> bool:
        """Whether a trace was let go of which no more is known than that."""
        return hash(trace_id) in self._past

    def bury(
        self, trace_id: bytes, spans: Sequence[Span], until_ns: int, before: Stone | None = None
    ) -> None:
        """Remember a trace until an instant; of a trace once more it is the later one.

        Args:
            trace_id: its id.
            spans: spans of it.
            until_ns: how long; no earlier than of any trace before.
            before: what is remembered of it already.
        """
        self._remove(self._stones.pop(trace_id, None))
        if before is None:
            stone = Stone(spans)
        else:
            stone = before
            stone.remember(spans)
        stone.until_ns = until_ns
        self._stones[trace_id] = stone
        self._spans += len(stone)

    def is_repeat(self, span: Span) -> bool:
        """Whether a span of a remembered trace has come before, byte for byte; it has by now."""
        stone = self._stones[span.trace_id]
        if stone.has(span):
            return True
        stone.add(hash(span.raw))
        self._spans += 1
        return False

    def forget(self, now_ns: int) -> Sequence[bytes]:
        """Let go of those that have had their time, or are too many: their ids."""
        forgotten = []
        while self._stones and (self._is_too_many() or self._oldest().until_ns <= now_ns):
            trace_id, stone = self._stones.popitem(last=False)
            self._remove(stone)
            self._past.add(hash(trace_id))
            forgotten.append(trace_id)
        return forgotten

    def _is_too_many(self) -> bool:
        return len(self._stones) > self._most_traces or self._spans > self._most_spans

    def _oldest(self) -> Stone:
        return next(iter(self._stones.values()))

    def _remove(self, stone: Stone | None) -> None:
        self._spans -= 0 if stone is None else len(stone)
