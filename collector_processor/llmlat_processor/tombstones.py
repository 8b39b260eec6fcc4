"""Remembers the traces that were let go: a span of one of them is late, or it has come before.

Of each span eight bytes are kept, so that a batch that is sent again after its traces have gone is
known for what it is. Bounded by traces, by spans and by time; what is forgotten is late no longer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from llmlat_processor.model import Span


@dataclass(slots=True)
class _Stone:
    """The marks of a trace's spans in sorted runs, each longer than the next one.

    So a trace that goes on for ever does not have all its marks moved for each of its spans.
    """

    until_ns: int
    runs: list[array[int]]

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __contains__(self, mark: int) -> bool:
        return any(_is_in(run, mark) for run in self.runs)

    def add(self, mark: int) -> None:
        run = array("q", (mark,))
        while self.runs and len(self.runs[-1]) <= len(run):
            run = array("q", sorted([*self.runs.pop(), *run]))
        self.runs.append(run)


def _is_in(run: array[int], mark: int) -> bool:
    place = bisect_left(run, mark)
    return place < len(run) and run[place] == mark


class Tombstones:
    """The traces that were let go, the oldest first."""

    def __init__(self, traces: int, spans: int) -> None:
        """Remember at most so many traces, and so many spans in all."""
        self._most_traces = traces
        self._most_spans = spans
        self._stones: OrderedDict[bytes, _Stone] = OrderedDict()
        self._spans = 0

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._stones

    @property
    def spans(self) -> int:
        """How many spans are remembered."""
        return self._spans

    def bury(self, trace_id: bytes, spans: Sequence[Span], until_ns: int) -> None:
        """Remember a trace until an instant; of a trace once more it is the later one."""
        self._remove(self._stones.pop(trace_id, None))
        marks = array("q", sorted(hash(span.raw) for span in spans))
        self._stones[trace_id] = _Stone(until_ns, [marks])
        self._spans += len(marks)

    def is_repeat(self, span: Span) -> bool:
        """Whether a span of a remembered trace has come before, byte for byte; it has by now."""
        stone = self._stones[span.trace_id]
        mark = hash(span.raw)
        if mark in stone:
            return True
        stone.add(mark)
        self._spans += 1
        return False

    def forget(self, now_ns: int) -> None:
        """Let go of those that have had their time, or are too many."""
        while self._stones and (self._is_too_many() or self._oldest().until_ns <= now_ns):
            self._remove(self._stones.popitem(last=False)[1])

    def _is_too_many(self) -> bool:
        return len(self._stones) > self._most_traces or self._spans > self._most_spans

    def _oldest(self) -> _Stone:
        return next(iter(self._stones.values()))

    def _remove(self, stone: _Stone | None) -> None:
        self._spans -= 0 if stone is None else len(stone)
