"""Which spans the journal need not keep any more: those whose requests have all had their end.

    a trace ──> request, request, request ──> taken over, or dropped for good
      Unit: 3        2        1        0  ──> journal: these positions of these batches are settled

A trace that went out in part only is sent again whole after a crash: a part of it explains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from llmlat_processor.edges.journal import Journal
from llmlat_processor.model import Span
from llmlat_processor.wire import Request, WireSpan

Marks = dict[int, list[int]]
"""Positions of spans by the journal's batch that they came in."""


class _Unit:
    """What has its end at once."""

    __slots__ = ("left", "marks")

    def __init__(self, left: int, marks: Marks) -> None:
        self.left = left
        self.marks = marks


class Settling:
    """Counts down the requests of what is on its way; used by several threads."""

    def __init__(self, journal: Journal | None) -> None:
        """Without a journal there is nothing to do."""
        self._journal = journal
        self._lock = Lock()

    def marked(
        self, requests: Sequence[Request], spans: Iterable[Span], more: Marks
    ) -> Sequence[Request]:
        """The same requests, which settle these spans when the last of them has had its end."""
        if self._journal is None:
            return requests
        marks = _marks(spans)
        _add(more, marks)
        if not requests:
            self._journal.settle(marks)
            return requests
        unit = _Unit(len(requests), marks)
        return [request._replace(unit=unit) for request in requests]

    def settle(self, marks: Marks) -> None:
        """These need not be kept, whatever becomes of any request."""
        if self._journal is not None:
            self._journal.settle(marks)

    def settled(self, requests: Sequence[Request]) -> None:
        """Requests that have had their end; called by an exporter."""
        done: Marks = {}
        with self._lock:
            for request in requests:
                unit = request.unit
                if isinstance(unit, _Unit):
                    unit.left -= 1
                    if not unit.left:
                        _add(unit.marks, done)
        if done and self._journal is not None:
            self._journal.settle(done)


def _marks(spans: Iterable[Span]) -> Marks:
    marks: Marks = {}
    for span in spans:
        if type(span) is WireSpan:  # not a skeleton, whose span has gone before
            positions = marks.get(span.batch)
            if positions is None:
                marks[span.batch] = [span.position]
            else:
                positions.append(span.position)
    return marks


def _add(marks: Marks, done: Marks) -> None:
    for batch, positions in marks.items():
        done.setdefault(batch, []).extend(positions)
