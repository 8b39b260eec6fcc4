"""What is said of a trace: its critical paths, section by section, and what is written back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from llmlat_processor.model.spans import Attributes, Event, Span
from llmlat_processor.model.trace import AlignedTrace, Finding, Trace
from llmlat_semconv.values import Evidence, SectionLabel, TtftAbsence


class Section:
    """A stretch of a critical path that one operation answers for (plain slots: hot path).

    `start_ns` is on the root's clock and follows from the durations before it, so a section of
    another clock domain stands where the durations put it, never at its raw stamp.
    """

    __slots__ = ("duration_ns", "evidence", "label", "span", "start_ns")

    def __init__(
        self, span: Span, label: SectionLabel, duration_ns: int, evidence: Evidence, start_ns: int
    ) -> None:
        self.span = span
        self.label = label
        self.duration_ns = duration_ns
        self.evidence = evidence
        self.start_ns = start_ns

    def __repr__(self) -> str:
        return f"Section({self.label.value} {self.span.span_id.hex()} {self.duration_ns})"


class Edge(NamedTuple):
    """Why the path went from one operation to the one before it.

    `evidence` is `explicit` (somebody said so) or `inferred` (one had ended when the other
    began).
    """

    before: bytes
    after: bytes
    evidence: str


_ORDER_OF_LABELS: Final = {label: position for position, label in enumerate(SectionLabel)}


def _largest_first(total: tuple[SectionLabel, int]) -> tuple[int, int]:
    return (-total[1], _ORDER_OF_LABELS[total[0]])


class Alternative(NamedTuple):
    """The path entered one operation; within the interval of the clocks it could be another."""

    entered: bytes
    other: bytes


@dataclass(frozen=True, slots=True)
class Path:
    """Sections in time order; their durations sum exactly to sink minus root start.

    Attributes:
        alternatives: where the offsets of the clocks allow another order; then it is ambiguous.
    """

    root: Span
    sections: tuple[Section, ...]
    edge_rows: tuple[tuple[bytes, bytes, str], ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Between which siblings the path went; made on demand, since few ask.

        From the last child to its parent there is one only where that says that it waited for
        it, or where the child outlived its own parent.
        """
        return tuple(map(Edge._make, self.edge_rows))

    @property
    def duration_ns(self) -> int:
        """Length of the path in nanoseconds."""
        return sum([section.duration_ns for section in self.sections])

    @property
    def totals_ns(self) -> dict[SectionLabel, int]:
        """Nanoseconds per label, the largest first; ties in the contract's order of labels."""
        totals: dict[SectionLabel, int] = {}
        for section in self.sections:
            totals[section.label] = totals.get(section.label, 0) + section.duration_ns
        return dict(sorted(totals.items(), key=_largest_first))

    def largest(self) -> list[tuple[SectionLabel, str, int]]:
        """(label, service, nanoseconds) of what the path consists of, the largest first."""
        shares: dict[tuple[SectionLabel, str], int] = {}
        for section in self.sections:
            key = (section.label, section.span.resource.service)
            shares[key] = shares.get(key, 0) + section.duration_ns
        order = sorted([(-size, label, service) for (label, service), size in shares.items()])
        return [(label, service, -negative) for negative, label, service in order]

    @property
    def dominant(self) -> SectionLabel | None:
        """The label with the largest total; None for an empty path."""
        return next(iter(self.totals_ns), None)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Kept apart from the path and never added to it.

    Attributes:
        work_ns: sum of the durations of the leaves in the root's clock domain.
        busy_ns: length of their union.
        retry_waste_ns: time of failed attempts on the path; None where attempts are invisible.
        hidden_ns: per operation that has some, how much of it (and of what it called) is not on
            the path.
        trailing_ns: per operation that has some, how long it went on after the path's end on
            the root's clock, or after its own last output where it answered a call.
    """

    work_ns: int
    busy_ns: int
    retry_waste_ns: int | None
    hidden_ns: Mapping[Span, int] = field(default_factory=dict)
    trailing_ns: Mapping[Span, int] = field(default_factory=dict)

    @property
    def overlapped_ns(self) -> int:
        """Work that ran while other work ran."""
        return self.work_ns - self.busy_ns


@dataclass(frozen=True, slots=True)
class RootPaths:
    """Both critical paths of one root, and what stands beside them.

    Attributes:
        ttft: the path to the first useful content; None where `ttft_absence` says why.
        self_times_ns: per operation that the end-to-end path passes through, the time that it
            answers for itself (0 where others answer for all of it).
        ttft_self_times_ns: the same on the path to the first useful content.
        slacks_ns: per operation off the end-to-end path, how much longer it could have been
            without moving the end: a lower bound.
    """

    root: Span
    e2e: Path
    ttft: Path | None
    ttft_absence: TtftAbsence | None
    ledger: Ledger
    self_times_ns: Mapping[Span, int]
    ttft_self_times_ns: Mapping[Span, int]
    slacks_ns: Mapping[Span, int]


@dataclass(frozen=True, slots=True)
class FirstContent:
    """The first content of one call, as its callee and its caller saw it, each by its own clock.

    Attributes:
        call: the caller's span.
        callee: the span that has the first output.
        server_ns: from the callee's start to its first output (time to first token).
        client_ns: from when the caller sent the request to its first content.
        transit_ns: what is left of the second: both ways together, so each is between 0 and it.
    """

    call: Span
    callee: Span
    server_ns: int
    client_ns: int
    transit_ns: int


@dataclass(frozen=True, slots=True)
class CriticalPaths:
    """The paths of every root, and the findings made on the way.

    Attributes:
        first_contents: of the calls of which both sides tell when it was there.
        unread: by instrumentation scope, operations with latencies that nobody knows how to read.
    """

    roots: tuple[RootPaths, ...]
    findings: tuple[Finding, ...]
    first_contents: tuple[FirstContent, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)


class Annotation:
    """What the processor adds to one span; nothing is ever changed (plain slots: hot path)."""

    __slots__ = ("attributes", "events")

    def __init__(self, attributes: Attributes, events: Sequence[Event] = ()) -> None:
        self.attributes = attributes
        self.events = events


@dataclass(frozen=True, slots=True)
class ExplainedTrace:
    """A finished trace: what was received, what was found, and what is added to which span."""

    aligned: AlignedTrace
    paths: CriticalPaths
    findings: tuple[Finding, ...]
    annotations: Mapping[Span, Annotation]

    @property
    def trace(self) -> Trace:
        """The assembled trace."""
        return self.aligned.trace
