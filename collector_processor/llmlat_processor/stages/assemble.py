"""Spans of one trace in, a forest of operations out: duplicates, orphans and damage sorted out.

    spans ─> one per (id, kind) ─> damaged ones set aside ─> phases apart ─> parents ─> roots

Nothing is dropped silently: whatever does not fit becomes a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, Assumptions, Finding, Span, Trace
from llmlat_processor.producers import natives
from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind

YEAR_2000_NS: Final = 946_684_800 * 10**9
HOUR_NS: Final = 3_600 * 10**9
MAX_WITNESSES: Final = 16
"""A circle of any length is proved by naming some of it; each witness carries the whole list."""

ABSENT_NAME: Final = "(missing parent)"


def assemble(spans: Iterable[Span], assumptions: Assumptions) -> Trace:
    """Build the forest of operations of one trace.

    Args:
        spans: every span of the trace, in any order, duplicates included.
        assumptions: `received_ns` bounds stamps from the future.

    Returns:
        The trace; the same for any order and duplication of the same spans.
    """
    return _Assembly(spans, assumptions).trace()


class _Assembly:
    """The state of one assembly; each method settles one question."""

    def __init__(self, spans: Iterable[Span], assumptions: Assumptions) -> None:
        self.assumptions = assumptions
        self.findings: list[Finding] = []
        self.complete = True
        received = list(spans)
        own = [span for span in received if span.scope == OWN_SCOPE]
        others = [span for span in received if span.scope != OWN_SCOPE] if own else received
        self.others = self._in_order(self._without_duplicates(others))
        self.spans = self._in_order([*self.others, *own]) if own else self.others
        self.set_aside: dict[bytes, Span] = {}
        self.sound = self._without_damaged()
        self.natives = natives(self.sound)
        self.phase_spans: dict[bytes, Span] = {}  # and what else labels or groups time
        self.operations: list[Span] = []
        self.index: dict[bytes, int] = {}
        self.clients_of_shared_ids: dict[bytes, int] = {}
        self.stand_ins: set[int] = set()
        self.above: dict[bytes, tuple[int, bytes]] = {}  # what was found on the way up

    def trace(self) -> Trace:
        """Run the questions in order."""
        self._tell_phases_from_operations()
        parents = [self._parent_of(span) for span in self.operations]
        roots = self._roots(parents)
        self._report_cycles(parents)
        return Trace(
            trace_id=self.spans[0].trace_id if self.spans else b"",
            operations=tuple(self.operations),
            parents=tuple(parents),
            phases=self._phases_by_operation(),
            roots=tuple(roots),
            dropped_children=self._parents_of_the_set_aside(),
            findings=tuple(self.findings),
            complete=self.complete,
            spans=tuple(self.spans),
            assumptions=self.assumptions,
            stand_ins=frozenset(self.stand_ins),
        )

    def _find(
        self, kind: FindingKind, span: Span, amount_ns: int | None = None, note: str = ""
    ) -> None:
        self.findings.append(Finding(kind, span.span_id, amount_ns, (span.span_id,), None, note))

    def _without_duplicates(self, spans: Iterable[Span]) -> list[Span]:
        """Of spans with one id and kind, the one with more attributes, then the greater bytes."""
        kept: dict[tuple[bytes, int], Span] = {}
        conflicting: dict[tuple[bytes, int], Span] = {}
        for span in spans:
            key = (span.span_id, span.kind)
            other = kept.setdefault(key, span)
            if other is not span:
                kept[key] = _richer(other, span)
                if _differs(other, span):
                    conflicting[key] = span
        for key in sorted(conflicting):
            self._find(FindingKind.DUPLICATE_SPAN, kept[key])
        return list(kept.values())

    @staticmethod
    def _in_order(spans: list[Span]) -> list[Span]:
        """By start, then id, then kind: three stable sorts beat one with a tuple key."""
        for key in ("kind", "span_id", "start_ns"):
            spans.sort(key=attrgetter(key))
        return spans

    def _without_damaged(self) -> list[Span]:
        """Spans whose stamps can be times; the others are left out of bounds and paths."""
        limit = self.assumptions.received_ns
        latest = limit + HOUR_NS if limit is not None else None
        sound = []
        for span in self.others:
            start, end = span.start_ns, span.end_ns
            is_future = latest is not None and max(start, end) > latest
            if YEAR_2000_NS <= start <= end and not is_future:
                sound.append(span)
                continue
            self.set_aside[span.span_id] = span
            if start == 0 or end == 0:
                self._find(FindingKind.UNSET_MILESTONE, span, note="a stamp was never set")
            elif min(start, end) < YEAR_2000_NS or (
                latest is not None and max(start, end) > latest
            ):
                self._find(FindingKind.EPOCH_GARBAGE, span, note="a stamp is no time of day")
            else:
                self._find(FindingKind.NEGATIVE_DURATION, span, end - start)
        return sound

    def _tell_phases_from_operations(self) -> None:
        parts = self.natives.parts
        for span in self.sound:
            is_phase = span.attributes and names.LLMLAT_PHASE_NAME in span.attributes
            if is_phase or span.span_id in parts:
                self.phase_spans[span.span_id] = span
            else:
                self._register(span)

    def _register(self, span: Span) -> None:
        """Children of an id that CLIENT and SERVER share go under the SERVER."""
        position = len(self.operations)
        self.operations.append(span)
        taken = self.index.get(span.span_id)
        if taken is None:
            self.index[span.span_id] = position
        elif span.kind == SERVER and self.operations[taken].kind == CLIENT:
            self.index[span.span_id] = position
            self.clients_of_shared_ids[span.span_id] = taken
        elif span.kind == CLIENT and self.operations[taken].kind == SERVER:
            self.clients_of_shared_ids[span.span_id] = position

    def _parent_of(self, span: Span) -> int:
        """Index of the parent operation; -1 for a root or an orphan."""
        if span.kind == SERVER and span.span_id in self.clients_of_shared_ids:
            return self.clients_of_shared_ids[span.span_id]
        return -1 if not span.parent_id else self._operation_above(span.parent_id)[0]

    def _operation_above(self, parent_id: bytes) -> tuple[int, bytes]:
        """The operation that an id stands for, and the last id asked for on the way.

        A phase span labels its parent's time, and a damaged span cannot hold anything: what
        hangs under either hangs under the operation above it.
        """
        passed: dict[bytes, None] = {}
        found = self.above.get(parent_id)
        while found is None:
            position = self.index.get(parent_id)
            between = self.phase_spans.get(parent_id) or self.set_aside.get(parent_id)
            if position is not None:
                found = (position, parent_id)
            elif between is None or not between.parent_id or between.parent_id in passed:
                found = (-1, parent_id)
            else:
                passed[parent_id] = None
                parent_id = between.parent_id
                found = self.above.get(parent_id)
        for below in passed:
            self.above[below] = found
        return found

    def _roots(self, parents: list[int]) -> list[int]:
        roots: list[int] = []
        orphans: dict[bytes, list[int]] = {}
        for position, span in enumerate(self.operations):
            if parents[position] >= 0:
                continue
            if not span.parent_id:
                roots.append(position)
                continue
            orphans.setdefault(self._operation_above(span.parent_id)[1], []).append(position)
            self._find(FindingKind.MISSING_PARENT, span)
            self.complete = False
        return roots or self._provisional_roots(parents, orphans)

    def _provisional_roots(self, parents: list[int], orphans: dict[bytes, list[int]]) -> list[int]:
        """Where no root came, orphans hang under a stand-in with the absent id.

        It lasts as long as those of them that the first one's clock can see.
        """
        roots = []
        self.above.clear()
        for absent_id, positions in sorted(orphans.items()):
            children = [self.operations[position] for position in positions]
            clock = children[0].resource.domain
            stand_in = Span(
                trace_id=children[0].trace_id,
                span_id=absent_id,
                parent_id=b"",
                name=ABSENT_NAME,
                kind=INTERNAL,
                start_ns=children[0].start_ns,
                end_ns=max(c.end_ns for c in children if c.resource.domain == clock),
                resource=children[0].resource,
            )
            root = len(self.operations)
            self._register(stand_in)
            parents.append(-1)
            roots.append(root)
            self.stand_ins.add(root)
            for position in positions:
                parents[position] = root
        return roots

    def _report_cycles(self, parents: list[int]) -> None:
        """Operations that are their own ancestors hang nowhere; the good roots still answer."""
        settled = [False] * len(parents)
        for start in range(len(parents)):
            trail: dict[int, None] = {}
            position = start
            while position >= 0 and not settled[position] and position not in trail:
                trail[position] = None
                position = parents[position]
            if position in trail:
                self._report_cycle(list(trail)[list(trail).index(position) :])
            for passed in trail:
                settled[passed] = True

    def _report_cycle(self, members: list[int]) -> None:
        ids = tuple(sorted(self.operations[member].span_id for member in members))[:MAX_WITNESSES]
        note = "each of these spans is an ancestor of itself"
        self.findings.append(Finding(FindingKind.DEPENDENCY_CYCLE, ids[0], None, ids, None, note))
        self.complete = False

    def _phases_by_operation(self) -> dict[int, list[Span]]:
        phases: dict[int, list[Span]] = {}
        parts = self.natives.parts
        for span in self.phase_spans.values():
            if span.span_id in parts:
                continue
            if span.parent_id in self.set_aside and span.parent_id not in self.index:
                continue  # it labels the time of an operation whose time nobody knows
            position = self._operation_above(span.parent_id)[0]
            if position >= 0:
                phases.setdefault(position, []).append(span)
            else:
                self._find(FindingKind.MISSING_PARENT, span)
                self.complete = False
        for operation, told in self.natives.told:
            phases.setdefault(self.index[operation.span_id], list(told))  # what we measured stays
        return phases

    def _parents_of_the_set_aside(self) -> frozenset[int]:
        parents = (
            self._operation_above(span.parent_id)[0]
            for span in self.set_aside.values()
            if names.LLMLAT_PHASE_NAME not in span.attributes
        )
        return frozenset(parent for parent in parents if parent >= 0)


def _richer(one: Span, other: Span) -> Span:
    """Which of two duplicates stays; told apart by whatever differs, so that order never does."""
    return max(one, other, key=_richness)


def _richness(span: Span) -> tuple[int, bytes, str, str, str]:
    resource = span.resource
    return (span.attribute_count, span.raw, resource.process, resource.domain, resource.service)


def _differs(one: Span, other: Span) -> bool:
    if one.raw or other.raw:
        return _richness(one) != _richness(other)
    facts = attrgetter("parent_id", "name", "start_ns", "end_ns", "attributes", "is_error")
    return bool(facts(one) != facts(other))
