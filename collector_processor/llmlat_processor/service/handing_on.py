"""What becomes of what the window lets go: explained, sent as it came, revised, or not sent again.

    window ──> worker ──┬── explain, lane, encode ─────────────────┬──> destinations
                        ├── a large trace: the same, beside ───────┤
                        └── too late, no root, nothing to explain ─┘

A large trace takes seconds; it is explained in a thread of its own, and the small ones go on.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Final, Protocol, TypeVar

from llmlat_processor.breaks import Breaks
from llmlat_processor.edges.exporter import Counts
from llmlat_processor.edges.journal import Journal
from llmlat_processor.edges.journal_file import JournalError
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.service.destinations import Destinations
from llmlat_processor.service.explaining import (
    UNEXPLAINED,
    Explain,
    attempted,
    explain_now,
    explain_together,
)
from llmlat_processor.service.outgoing import Outgoing, Preparation
from llmlat_processor.service.releasing import why_not
from llmlat_processor.service.revising import CHANGED, change
from llmlat_processor.service.settling import Marks, Settling
from llmlat_processor.settings import Explained
from llmlat_processor.window import Released, Why, bare_size
from llmlat_processor.wire.skeletons import unpack

NO_DESTINATION: Final = "no destination"

LARGE: Final = 2_000
"""Spans from which on a trace is explained beside the others."""

TOGETHER: Final = 32
"""Traces that are explained together; all of them are held until the last one is done."""

PRUNED_EVERY: Final = 256
"""Rounds of the worker after which it is seen which skeletons are still waited with."""

_NOTHING: Final[Marks] = {}
_Answer = TypeVar("_Answer")

Observe = Callable[[ExplainedTrace], None]


class Waiting(Protocol):
    """What is asked of the window."""

    def published(self, trace_id: bytes) -> None:
        """Another account of a trace goes out."""

    def awaits_root_of(self, trace_id: bytes) -> bool:
        """Whether skeletons of a trace are kept until its root comes."""


@dataclass(frozen=True, slots=True)
class HandedOn:
    """What was handed on so far.

    Attributes:
        traces: how many were explained.
        revisions: how many were explained again, and got another lane.
        added: spans that were made here.
        repeated: spans that were not sent, since their like was.
        consumed: spans that were not sent, since they were a copy.
        as_they_came: spans that went on without an explanation, by reason.
    """

    traces: int
    revisions: int
    added: int
    repeated: int
    consumed: int
    as_they_came: Mapping[str, int]


class HandingOn:
    """Called by the worker with all that a round has let go."""

    def __init__(
        self,
        explain: Explain,
        explained: Explained,
        preparation: Preparation,
        destinations: Destinations,
        observe: Observe,
        delayed: Callable[[float], None],
        journal: Journal | None,
        settling: Settling,
    ) -> None:
        """Hand nothing on yet.

        Args:
            explain: the pipeline.
            explained: which traces are.
            preparation: makes requests.
            destinations: take them.
            observe: is told of each trace that was explained; by one thread at a time.
            delayed: is told how long after its last span a trace was handed on, in seconds; the
                same way.
            journal: keeps the skeletons of what goes before its trace is complete.
            settling: tells it what need not be kept.
        """
        self._explain = explain
        self._which = explained
        self._preparation = preparation
        self._destinations = destinations
        self._observe = observe
        self._delayed = delayed
        self._journal = journal
        self._settling = settling
        self._lock = Lock()
        self._added = self._repeated = self._consumed = self._traces = self._revised = 0
        self._as_they_came: Counter[str] = Counter()
        self._rounds = 0
        self._skeletons: dict[bytes, Marks] = {}
        self._observing = Lock()
        self._breaks = Breaks()
        self._large = ThreadPoolExecutor(1, thread_name_prefix="llmlat-large")
        self._large_bytes = 0
        self._pending: deque[Future[None]] = deque()
        self._revisions: dict[bytes, Future[Outgoing | None]] = {}

    def __call__(self, released: Sequence[Released], window: Waiting) -> None:
        """One round of the worker: traces each by itself, all that needs no look together."""
        self._look_at_large(window)
        plain: list[Span] = []
        small: list[Released] = []
        for one in released:
            if one.why is Why.REPEATED:
                self._put(Outgoing((), repeated=len(one.spans)), one.spans)
            elif one.why is Why.REVISED:
                self._revise(one, window)
            else:
                why = why_not(one, self._which)
                if why or self._destinations.has_ended:
                    self._count(why, one)
                    plain += one.fresh
                elif len(one.spans) > LARGE:
                    self._explain_beside(one)
                else:
                    small.append(one)
        for start in range(0, len(small), TOGETHER):
            self._explain_now(small[start : start + TOGETHER])
        if plain:
            self._put(self._preparation.as_they_came(plain), plain)
        self._rounds += 1
        is_end = any(one.why is Why.SHUTDOWN for one in released)  # the next run waits on
        if self._skeletons and not is_end and not self._rounds % PRUNED_EVERY:
            self._prune(window)

    @property
    def large_bytes(self) -> int:
        """Bytes of the large traces that are waiting, or being explained."""
        return self._large_bytes

    def keep(self, batch: int, packed: bytes) -> None:
        """The journal has skeletons of a trace in one of its batches."""
        spans = unpack(packed)
        if spans:
            marks = self._skeletons.setdefault(spans[0].trace_id, {})
            marks[batch] = [*range(len(spans))]

    def finish(self) -> None:
        """Wait for the large traces; raises what went wrong with one."""
        self._large.shutdown()
        self._look_at_large(None)

    def snapshot(self) -> tuple[HandedOn, Mapping[str, Counts]]:
        """What was handed on, and what became of it by destination, at once."""
        with self._lock:
            counts = self._destinations.counts
            handed = HandedOn(
                self._traces,
                self._revised,
                self._added,
                self._repeated,
                self._consumed,
                dict(self._as_they_came),
            )
        return handed, counts

    # ── One trace ────────────────────────────────────────────────────────────────────────────────

    def _explain_now(self, several: Sequence[Released]) -> None:
        explained = explain_together(self._explain, [one.spans for one in several])
        for one, found in zip(several, explained, strict=True):
            self._explain_with(one, self._skeletons.pop(one.spans[0].trace_id, {}), found)

    def _explain_with(
        self, one: Released, marks: Marks, explained: ExplainedTrace | None = None
    ) -> None:
        """Explain a trace, unless it is; these marks of its skeletons go with its spans."""
        fresh = one.fresh
        outgoing = attempted(lambda spans: self._outgoing(spans, fresh, explained), one.spans)
        if outgoing is None:
            self._count(UNEXPLAINED, one)
            self._put(self._preparation.as_they_came(fresh), fresh, marks)
        else:
            self._put(outgoing, fresh, marks, explained=1)
            self._note_delay(one)

    def _note_delay(self, one: Released) -> None:
        if one.last_ns and one.why is not Why.SHUTDOWN:
            with self._observing:
                self._delayed((time.monotonic_ns() - one.last_ns) / 1e9)

    def _outgoing(
        self, spans: Sequence[Span], fresh: Sequence[Span], known: ExplainedTrace | None
    ) -> Outgoing:
        explained = known or explain_now(self._explain, spans)
        with self._observing:
            explained = self._breaks.told(explained)
        outgoing = self._preparation.explained(fresh, explained)
        attempted(lambda _spans: self._observed(explained), spans, "counted")
        return outgoing

    def _observed(self, explained: ExplainedTrace) -> None:
        with self._observing:
            self._observe(explained)

    def _revise(self, one: Released, window: Waiting) -> None:
        """Another lane, where late spans have changed the path by enough."""
        if why_not(one, self._which):
            return
        if len(one.spans) > LARGE:
            revised = self._beside(one, lambda: self._revision_of(one))
            self._revisions[one.spans[0].trace_id] = revised  # in place of one that knew less
        else:
            self._publish(one.spans[0].trace_id, self._revision_of(one), window)

    def _publish(self, trace_id: bytes, outgoing: Outgoing | None, window: Waiting | None) -> None:
        if outgoing is not None:
            if window is not None:
                window.published(trace_id)
            self._put(outgoing, (), revised=1)

    def _revision_of(self, one: Released) -> Outgoing | None:
        if self._destinations.has_ended:
            return None
        return attempted(lambda spans: self._revision(spans, one), one.spans)

    def _revision(self, spans: Sequence[Span], one: Released) -> Outgoing | None:
        old = explain_now(self._explain, spans[: -one.late])
        new = explain_now(self._explain, spans)
        if change(old, new) < CHANGED:
            return None
        return self._preparation.revised(new, one.revision)

    # ── A large trace ────────────────────────────────────────────────────────────────────────────

    def _explain_beside(self, one: Released) -> None:
        marks = self._skeletons.pop(one.spans[0].trace_id, {})  # only the worker touches these
        self._pending.append(self._beside(one, lambda: self._explain_large(one, marks)))

    def _explain_large(self, one: Released, marks: Marks) -> None:
        if self._destinations.has_ended:  # nobody waits for it any more
            self._count(NO_DESTINATION, one)
            self._put(self._preparation.as_they_came(one.fresh), one.fresh, marks)
        else:
            self._explain_with(one, marks)

    def _beside(self, one: Released, work: Callable[[], _Answer]) -> Future[_Answer]:
        size = sum(map(bare_size, one.spans))
        with self._lock:
            self._large_bytes += size

        def worked() -> _Answer:
            try:
                return work()
            finally:
                with self._lock:
                    self._large_bytes -= size

        return self._large.submit(worked)

    def _look_at_large(self, window: Waiting | None) -> None:
        """Be done with those that are; what went wrong with one ends the work."""
        while self._pending and self._pending[0].done():  # they end in the order of their begin
            self._pending[0].result()
            self._pending.popleft()
        for trace_id in [*self._revisions]:
            if self._revisions[trace_id].done():
                self._publish(trace_id, self._revisions.pop(trace_id).result(), window)

    # ── Books ────────────────────────────────────────────────────────────────────────────────────

    def _count(self, why: str, one: Released) -> None:
        with self._lock:
            self._as_they_came[why or NO_DESTINATION] += len(one.fresh)
        if one.packed and self._journal is not None:
            self._keep_skeletons(one.packed, len(one.fresh), self._journal)

    def _keep_skeletons(self, packed: bytes, spans: int, journal: Journal) -> None:
        """The trace is not over: after a crash its root has to find what went before it."""
        try:
            batch = journal.append(packed, spans, sent=True)
        except JournalError:
            return  # without them a crash costs this trace its explanation, and nothing else
        self.keep(batch, packed)

    def _prune(self, window: Waiting) -> None:
        """Traces whose root nobody waits for any more: their skeletons are of no use."""
        for trace_id in [*self._skeletons]:
            if not window.awaits_root_of(trace_id):
                self._settling.settle(self._skeletons.pop(trace_id))

    def _put(
        self,
        outgoing: Outgoing,
        spans: Sequence[Span],
        marks: Marks = _NOTHING,
        *,
        explained: int = 0,
        revised: int = 0,
    ) -> None:
        requests = self._settling.marked(outgoing.requests, spans, marks)
        with self._lock:  # what is put into an exporter is in both books at the same instant
            self._added += outgoing.added
            self._repeated += outgoing.repeated
            self._consumed += outgoing.consumed
            self._traces += explained
            self._revised += revised
            self._destinations.put(requests)
            self._destinations.put_derived(outgoing.derived)
