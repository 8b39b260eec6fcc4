"""Spans of producers that are known: which are operations, and which label or group their time.

    Req 1a2b            ├─────────────────────────────┤   an operation
      Scheduler           ├─────────────────────────┤     a container: no operation
        prefill_waiting     ├─────┤                       a label: queue
        prefill_forward           ├──────┤                a label: prefill
        retract                          ·                an event: preempted, until the next batch

What a name means is the producer's business (`aliases.yaml`): the scope says whose it is. A name
whose producer is not known means nothing here, whoever else uses it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from llmlat_processor.model import INTERNAL, Event, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.aliases import PRODUCERS, Alias, Pattern, Producer, Surface
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence, SectionLabel


class Duration(NamedTuple):
    """What an attribute says: a phase's duration in a unit of so many nanoseconds.

    Attributes:
        minus: the attribute of which the value is taken away first; empty for none.
    """

    label: SectionLabel
    unit_ns: int
    evidence: Evidence
    minus: str


class Reading:
    """How the spans of one producer are read."""

    def __init__(self, producer: Producer, resource: str) -> None:
        """Of one of its scopes: where a resource attribute is named, it has to be there."""
        self.name = producer.name
        self._resource = resource
        self._operations = producer.operations
        self._containers = producer.containers
        of_spans = producer.on(Surface.SPAN_ATTRIBUTE)
        self.durations = {
            alias.key: Duration(
                SectionLabel(alias.phase.value), alias.unit_ns, alias.evidence, alias.minus
            )
            for alias in of_spans
            if alias.phase is not None
        }
        self.first_outputs = {
            alias.key: alias.unit_ns for alias in of_spans if alias.instant == "first_output"
        }
        self.request_ids = tuple(
            alias.key for alias in of_spans if alias.attribute == names.LLMLAT_REQUEST_ID
        )
        self._labels = _by_key(producer.on(Surface.SPAN_NAME))
        self._events = _by_key(producer.on(Surface.SPAN_EVENT))

    def is_operation(self, span: Span) -> bool:
        """Whether the producer's names tell about this span of its scope."""
        if self._resource and self._resource not in span.resource.attributes:
            return False
        return _matches(span, self._operations)

    def is_part(self, span: Span) -> bool:
        """Whether it only labels or groups the time of an operation above it."""
        return span.name in self._labels or _matches(span, self._containers)

    def label(self, span: Span, operation: Span) -> Phase | None:
        """The phase of such a part; None where it is none."""
        alias = _said_in(self._labels.get(span.name, ()), operation)
        return None if alias is None else alias.phase

    def edge(self, event: Event, operation: Span) -> Alias | None:
        """What an event starts or ends; None where it does neither."""
        alias = _said_in(self._events.get(event.name, ()), operation)
        return alias if alias is not None and alias.edge else None


def _by_key(aliases: Iterable[Alias]) -> Mapping[str, Sequence[Alias]]:
    by_key: dict[str, list[Alias]] = {}
    for alias in aliases:
        by_key.setdefault(alias.key, []).append(alias)
    return by_key


def _said_in(aliases: Iterable[Alias], operation: Span) -> Alias | None:
    return next((each for each in aliases if operation.name.startswith(each.operation)), None)


def _matches(span: Span, patterns: Iterable[Pattern]) -> bool:
    for name, name_starts, has in patterns:
        if name and name != span.name:
            continue
        if span.name.startswith(name_starts) and (not has or has in span.attributes):
            return True
    return False


def _readings() -> Mapping[str, Sequence[Reading]]:
    by_scope: dict[str, list[Reading]] = {}
    for producer in PRODUCERS:
        for scope in producer.scopes:
            by_scope.setdefault(scope.name, []).append(Reading(producer, scope.resource))
    return by_scope


READINGS: Final = _readings()
"""How spans are read, by the scope that they came in."""

_OF_SPANS: Final = [alias for each in PRODUCERS for alias in each.on(Surface.SPAN_ATTRIBUTE)]
LATENCIES: Final = frozenset(alias.key for alias in _OF_SPANS if alias.unit_ns)
"""Keys under which somebody tells a latency: what it is between depends on who says it."""

KEYS: Final = frozenset(
    {alias.key for alias in _OF_SPANS}
    | {
        pattern.has
        for each in PRODUCERS
        for pattern in (*each.operations, *each.containers)
        if pattern.has
    }
)
"""All keys of spans that are read here."""

EVENTS: Final = frozenset(
    alias.key for each in PRODUCERS for alias in each.on(Surface.SPAN_EVENT) if alias.edge
)
"""All names of events that are read here."""


def reading_of(span: Span) -> Reading | None:
    """How an operation is read; None for a span of whoever else, or that is none."""
    for reading in READINGS.get(span.scope, ()):
        if reading.is_operation(span):
            return reading
    return None


class Native(NamedTuple):
    """The parts of one operation of a known producer.

    Attributes:
        operation: the span whose time they tell about.
        phases: those that are phases of the contract, as spans that say so; evidence `reported`.
    """

    operation: Span
    phases: Sequence[Span]


class Natives:
    """What the spans of known producers in one trace are.

    Attributes:
        parts: ids of spans that are no operations, since they label or group one's time.
        told: each operation that has phases, with these.
    """

    __slots__ = ("parts", "told")

    def __init__(self, parts: frozenset[bytes] = frozenset(), told: Sequence[Native] = ()) -> None:
        self.parts = parts
        self.told = told


_NONE: Final = Natives()


def natives(spans: Sequence[Span]) -> Natives:
    """Tell the spans of known producers apart; of most traces, that none of them is there."""
    if READINGS.keys().isdisjoint({span.scope for span in spans}):
        return _NONE
    known = {span.span_id: span for span in spans if span.scope in READINGS}
    owners: dict[bytes, _Owner | None] = {}
    parts: dict[bytes, list[Span]] = {}
    for span in known.values():
        owner = _owner(span, known, owners)
        if owner is not None:
            told = parts.setdefault(owner[0].span_id, [])
            if owner[0] is not span:
                told.append(span)
    operations = [owner for owner in map(owners.get, parts) if owner is not None]
    return Natives(
        frozenset(part.span_id for each in parts.values() for part in each),
        [
            Native(operation, phases)
            for operation, reading in operations
            if (phases := [*_phases(operation, reading, parts[operation.span_id])])
        ],
    )


_Owner: TypeAlias = "tuple[Span, Reading]"


def _owner(
    span: Span,
    known: Mapping[bytes, Span],
    owners: dict[bytes, _Owner | None],
) -> _Owner | None:
    """The operation whose time a span tells about, and how it is read; itself, for an operation.

    Only parts of the same producer lie between the two.
    """
    trail: dict[bytes, Span] = {}
    found: _Owner | None = None
    at: Span | None = span
    while at is not None and at.span_id not in trail:
        if at.span_id in owners:
            found = owners[at.span_id]
            break
        reading = reading_of(at)
        if reading is not None:
            found = owners[at.span_id] = (at, reading)
            break
        trail[at.span_id] = at
        at = known.get(at.parent_id)
    for part in reversed(trail.values()):
        if found is not None and not found[1].is_part(part):
            found = None
        owners[part.span_id] = found
    return found


def _phases(operation: Span, reading: Reading, parts: Sequence[Span]) -> Iterator[Span]:
    for part in parts:
        phase = reading.label(part, operation)
        if phase is not None:
            yield _phase(phase, operation, part, part.start_ns, part.end_ns)
    edges = [
        (event.at_ns, alias, holder)
        for holder in (operation, *parts)
        for event in holder.events
        for alias in filter(None, [reading.edge(event, operation)])
    ]
    if edges:
        yield from _between_events(operation, parts, edges)


def _between_events(
    operation: Span, parts: Sequence[Span], edges: Sequence[tuple[int, Alias, Span]]
) -> Iterator[Span]:
    """Phases that an event starts; where nothing is seen to end one, it is not known."""
    for at_ns, start, holder in edges:
        if start.edge != "start" or start.phase is None:
            continue
        ends = [part.start_ns for part in parts if part.name in start.until] or [
            end_ns for end_ns, end, _ in edges if end.edge == "end" and end.phase is start.phase
        ]
        ends.sort()
        place = bisect_left(ends, at_ns)
        if place < len(ends):
            yield _phase(start.phase, operation, holder, at_ns, ends[place])


def _phase(phase: Phase, operation: Span, of: Span, start_ns: int, end_ns: int) -> Span:
    attributes = {
        names.LLMLAT_PHASE_NAME: phase.value,
        names.LLMLAT_PHASE_EVIDENCE: Evidence.REPORTED.value,
    }
    return Span(
        trace_id=operation.trace_id,
        span_id=of.span_id,
        parent_id=operation.span_id,
        name=of.name,
        kind=INTERNAL,
        start_ns=start_ns,
        end_ns=end_ns,
        resource=of.resource,
        attributes=attributes,
        attribute_count=len(attributes),
    )
