"""The values that the processor reasons about: spans, traces, paths and findings; no wire format.

Identities are the raw bytes of the span and trace ids, instants are integer nanoseconds. A
`Span` carries its own serialized bytes only so that it can be sent on unchanged; nothing in the
stages reads them except to break a tie between duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from llmlat_semconv.values import Evidence, FindingKind, SectionLabel, TtftAbsence

AttributeValue: TypeAlias = "str | bool | int | float | bytes | Sequence[AttributeValue] | None"
Attributes: TypeAlias = Mapping[str, AttributeValue]

NO_ATTRIBUTES: Final[Attributes] = {}

# Span kinds as numbered by OTLP; plain ints, since they are compared once per span.
INTERNAL: Final = 1
SERVER: Final = 2
CLIENT: Final = 3
PRODUCER: Final = 4
CONSUMER: Final = 5

PARENT_IS_REMOTE: Final = 0x200
"""Bit of `Span.flags` that says: the parent's context came over the wire (OTLP 1.1)."""


class Resource:
    """Who emitted a span: one object per distinct resource of a request, shared by its spans.

    `process` tells two emitters apart, `domain` names the clock that stamps for them; a `weak`
    domain is a hash of the resource, which no remote child ever shares.
    """

    __slots__ = ("attributes", "domain", "process", "service", "weak")

    def __init__(
        self, attributes: Attributes, *, service: str, process: str, domain: str, weak: bool
    ) -> None:
        self.attributes = attributes
        self.service = service
        self.process = process
        self.domain = domain
        self.weak = weak


class Event:
    """An instant inside a span, with its attributes."""

    __slots__ = ("at_ns", "attributes", "name")

    def __init__(self, name: str, at_ns: int, attributes: Attributes = NO_ATTRIBUTES) -> None:
        self.name = name
        self.at_ns = at_ns
        self.attributes = attributes


class Link:
    """A pointer from a span to another, possibly in another trace."""

    __slots__ = ("attributes", "span_id", "trace_id")

    def __init__(
        self, trace_id: bytes, span_id: bytes, attributes: Attributes = NO_ATTRIBUTES
    ) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.attributes = attributes


class Span:
    """One received span; treated as immutable once made (plain slots: this is the hot path).

    `attributes`, `events` and `links` are decoded only for spans that carry names of the
    contract or of GenAI; for the others they are empty, whatever `raw` holds.
    `attribute_count` counts what was received, decoded or not.
    """

    __slots__ = (
        "attribute_count",
        "attributes",
        "end_ns",
        "events",
        "flags",
        "is_error",
        "kind",
        "links",
        "name",
        "parent_id",
        "raw",
        "resource",
        "scope",
        "span_id",
        "start_ns",
        "trace_id",
    )

    def __init__(
        self,
        trace_id: bytes,
        span_id: bytes,
        parent_id: bytes,
        name: str,
        kind: int,
        start_ns: int,
        end_ns: int,
        resource: Resource,
        *,
        flags: int = 0,
        is_error: bool = False,
        scope: str = "",
        attributes: Attributes = NO_ATTRIBUTES,
        attribute_count: int = 0,
        events: Sequence[Event] = (),
        links: Sequence[Link] = (),
        raw: bytes = b"",
    ) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.parent_id = parent_id
        self.name = name
        self.kind = kind
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.resource = resource
        self.flags = flags
        self.is_error = is_error
        self.scope = scope
        self.attributes = attributes
        self.attribute_count = attribute_count
        self.events = events
        self.links = links
        self.raw = raw

    @property
    def duration_ns(self) -> int:
        """End minus start, in nanoseconds."""
        return self.end_ns - self.start_ns

    def __repr__(self) -> str:
        return f"Span({self.span_id.hex()} {self.name!r} {self.start_ns}..{self.end_ns})"


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the stages take for granted; every result states what it used.

    Attributes:
        tail_ns: how long a server's span may go on after its last output where the span's end
            is not a last-output edge.
        resolution_ns: the clocks' resolution; None detects it per domain.
        received_ns: wall time of receipt; None leaves stamps from the future unchallenged.
    """

    tail_ns: int = 5_000_000
    resolution_ns: int | None = None
    received_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with the data, said instead of being repaired.

    Attributes:
        kind: which condition holds.
        of: the span that it is about; the first witness.
        amount_ns: by how much, where the condition has an amount.
        witnesses: ids of the spans that together prove it.
        epsilon_ns: the tolerance that was granted before it was called a finding.
        note: one sentence for a person.
    """

    kind: FindingKind
    of: bytes
    amount_ns: int | None = None
    witnesses: tuple[bytes, ...] = ()
    epsilon_ns: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace as a forest of operations.

    Attributes:
        operations: every operation, in (start, span id, kind) order; set-aside ones left out.
        parents: for each operation the index of its parent, or -1 where it has none.
        phases: phase spans by the index of the operation whose time they label.
        roots: indices of the operations without a parent id, or of provisional roots.
        dropped_children: indices of operations that had a child that was set aside.
        findings: what was wrong with the data so far.
        complete: False where a parent is missing.
        spans: every span of the trace as received, duplicates removed, in a fixed order.
    """

    trace_id: bytes
    operations: tuple[Span, ...]
    parents: tuple[int, ...]
    phases: Mapping[int, Sequence[Span]]
    roots: tuple[int, ...]
    dropped_children: frozenset[int]
    findings: tuple[Finding, ...]
    complete: bool
    spans: tuple[Span, ...]
    assumptions: Assumptions = field(default_factory=Assumptions)


@dataclass(frozen=True, slots=True)
class AlignedTrace:
    """A trace with every operation placed in its own clock domain.

    Attributes:
        starts_ns: per operation, its start on its domain's clock (monotonic where known).
        phase_starts_ns: the same for the phase spans of each operation that has some.
        domains: per operation, the name of its clock domain.
        weak_domains: names that are only a hash of the resource; no remote child shares one.
        resolutions_ns: per domain, the granularity of its stamps.
    """

    trace: Trace
    starts_ns: Sequence[int]
    phase_starts_ns: Mapping[int, Sequence[int]]
    domains: Sequence[str]
    weak_domains: frozenset[str]
    resolutions_ns: Mapping[str, int]


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


@dataclass(frozen=True, slots=True)
class Path:
    """Sections in time order; their durations sum exactly to sink minus root start."""

    root: Span
    sections: tuple[Section, ...]
    edge_rows: tuple[tuple[bytes, bytes, str], ...] = ()

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
        return sum(section.duration_ns for section in self.sections)

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
        order = sorted(shares.items(), key=lambda item: (-item[1], item[0][0], item[0][1]))
        return [(label, service, size) for (label, service), size in order]

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
class CriticalPaths:
    """The paths of every root, and the findings made on the way."""

    roots: tuple[RootPaths, ...]
    findings: tuple[Finding, ...]


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
