"""The traces of which something was let go, and what is kept of them for what is still to come.

    without its root ── skeletons ──> the root comes: all of it can be explained
    released         ── skeletons ──> late spans come: it can be explained anew
                     ── marks ──────> a span comes again: it is known, and not sent twice

All of it is bounded by time, by traces and by bytes. What is forgotten while it was needed is
counted; a span of a trace that is forgotten so is late, whatever else is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from llmlat_processor.model import Span
from llmlat_processor.window.held_trace import HeldTrace
from llmlat_processor.window.limits import Limits
from llmlat_processor.window.looks import Looks
from llmlat_processor.window.releases import Released, Why
from llmlat_processor.window.skeleton_store import SkeletonStore
from llmlat_processor.window.tombstones import Stone, Tombstones
from llmlat_processor.wire.skeletons import unpack

Keeps = Callable[[Sequence[Span]], bool]

LONGEST_WAIT: Final = 6
"""A trace that is revised again and again waits twice as long each time, so many times."""


class PastTraces:
    """What is remembered; nothing of it is held any more."""

    def __init__(self, limits: Limits, keeps: Keeps) -> None:
        """Remember nothing yet.

        Args:
            limits: how much, and how long.
            keeps: whether late spans of a released trace are worth another account of it.
        """
        self._limits = limits
        self._keeps = keeps
        self._graves = Tombstones(
            limits.tombstones, limits.tombstone_spans, limits.remembered_traces
        )
        self._rootless: dict[bytes, HeldTrace] = {}  # the one that was added to last at the end
        self._skeletons = SkeletonStore(limits.revision_bytes)
        self._looks = Looks(self._graves.stone_of)
        self.forgotten = 0

    @property
    def skeleton_bytes(self) -> int:
        """Bytes of skeletons; never above the limit."""
        return self._skeletons.held_bytes

    def skeletons(self, trace_id: bytes) -> Sequence[Span]:
        """The skeletons of a trace; none where there never were, or where they were forgotten."""
        return self._skeletons.skeletons(trace_id)

    def awaits_root_of(self, trace_id: bytes, held: HeldTrace | None) -> bool:
        """Whether there are any, and the root is still to come; more of it may be held."""
        held = self._rootless.get(trace_id, held)
        return held is not None and held.skeletons > 0 and trace_id in self._skeletons

    def why_not(self, span: Span, now_ns: int) -> Why | None:
        """Why a span of a trace of which nothing is held is not held either."""
        trace_id = span.trace_id
        stone = self._graves.stone_of(trace_id)
        if stone is not None:
            if self._graves.is_repeat(span):
                return Why.REPEATED
            self._note_late(span, stone, now_ns)
            return Why.LATE
        rootless = self._rootless.get(trace_id)
        if rootless is not None:
            return Why.REPEATED if rootless.has_seen(span) else None
        return Why.LATE if self._graves.remembers(trace_id) else None

    def _note_late(self, span: Span, stone: Stone, now_ns: int) -> None:
        """A late span may change what was said of its trace; wait for more of its kind."""
        trace_id = span.trace_id
        if trace_id not in self._skeletons:
            return
        if self._skeletons.count(trace_id) >= self._limits.trace_spans:
            self.forgotten += self._skeletons.forget(trace_id)
            return
        self._skeletons.keep(trace_id, (span,))
        self._forget_overflow(now_ns)
        stone.late += 1
        stone.last_ns = now_ns
        if not stone.look_ns:
            self._looks.at(now_ns + self._limits.idle_ns, trace_id, stone)

    def pick_up(self, trace_id: bytes) -> HeldTrace | None:
        """The trace whose root is awaited, because more of it has come."""
        return self._rootless.pop(trace_id, None)

    def put_by(self, trace_id: bytes, held: HeldTrace, now_ns: int) -> bytes:
        """Await the root of a trace with skeletons of what was held: they are returned packed."""
        packed = self._skeletons.keep(trace_id, held.spans, tight=True)
        held.remember(held.spans)
        held.skeletons += len(held.spans)
        held.begin(now_ns, 0)
        self._await_root(trace_id, held, now_ns)
        return packed

    def restore(
        self, packed: bytes, held_of: Callable[[bytes], HeldTrace | None], now_ns: int
    ) -> None:
        """The same with skeletons that are packed already, of a trace that may be held."""
        spans = unpack(packed)
        if not spans:
            return
        trace_id = spans[0].trace_id
        held = held_of(trace_id)
        awaiting = held or self.pick_up(trace_id) or HeldTrace()
        awaiting.remember(spans)
        awaiting.skeletons += len(spans)
        self._skeletons.keep_packed(trace_id, packed, len(spans))
        if held is None:
            self._await_root(trace_id, awaiting, now_ns)
        else:
            self._forget_overflow(now_ns)

    def _await_root(self, trace_id: bytes, held: HeldTrace, now_ns: int) -> None:
        held.until_ns = now_ns + self._limits.skeleton_ns
        self._rootless[trace_id] = held
        self._forget_overflow(now_ns)

    def bury(self, trace_id: bytes, held: HeldTrace, now_ns: int) -> Sequence[Span]:
        """Remember a trace that is released with its root: its skeletons from before."""
        already: Sequence[Span] = ()
        if held.skeletons:
            already = self._skeletons.skeletons(trace_id)
            held.missing += held.skeletons - len(already)
        until_ns = now_ns + self._limits.tombstone_ns
        self._graves.bury(trace_id, held.spans, until_ns, held.before)
        if (
            self._limits.revision_bytes
            and not held.missing
            and (self._keeps(held.spans) or self._keeps(already))
        ):
            self._skeletons.keep(trace_id, held.spans)
            self._forget_overflow(now_ns)
        else:
            self._skeletons.forget(trace_id)
        return already

    def due(self, now_ns: int) -> list[Released]:
        """The traces of which no more late spans come, for another account."""
        released: list[Released] = []
        for trace_id in self._looks.due(now_ns):
            stone = self._graves.stone_of(trace_id)
            if stone is None:
                continue
            due_ns = stone.last_ns + (self._limits.idle_ns << min(stone.looks, LONGEST_WAIT))
            if due_ns > now_ns:
                self._looks.at(due_ns, trace_id, stone)
            else:
                released += self._revised(trace_id, stone)
        return released

    def flush(self) -> list[Released]:
        """All of them that more could come of, because the process ends."""
        stones = [(trace_id, self._graves.stone_of(trace_id)) for trace_id in self._looks.all()]
        return [r for trace_id, stone in stones if stone for r in self._revised(trace_id, stone)]

    def _revised(self, trace_id: bytes, stone: Stone) -> Sequence[Released]:
        stone.look_ns = 0
        stone.looks += 1
        spans = self._skeletons.skeletons(trace_id)
        if not spans:
            return ()
        account = stone.revision + 1
        return (Released(spans, Why.REVISED, 0, len(spans), late=stone.late, revision=account),)

    def published(self, trace_id: bytes) -> None:
        """Another account of a trace was published: what was late is told by it."""
        stone = self._graves.stone_of(trace_id)
        if stone is not None:
            stone.revision += 1
            stone.late = 0

    def forget(self, now_ns: int) -> None:
        """Let go of what has had its time."""
        for trace_id in self._graves.forget(now_ns):
            self._skeletons.forget(trace_id)
        while self._rootless:
            trace_id, oldest = next(iter(self._rootless.items()))
            if oldest.until_ns > now_ns:
                break
            self.forgotten += self._skeletons.forget(trace_id)
            self._give_up(trace_id, now_ns)
        self._looks.sweep()

    def _forget_overflow(self, now_ns: int) -> None:
        for trace_id, count in self._skeletons.overflow():
            self.forgotten += count
            if trace_id in self._rootless:
                self._give_up(trace_id, now_ns)

    def _give_up(self, trace_id: bytes, now_ns: int) -> None:
        """Await the root of a trace no more."""
        before = self._rootless.pop(trace_id).before
        self._graves.bury(trace_id, (), now_ns + self._limits.tombstone_ns, before)
