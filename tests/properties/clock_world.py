"""What truly happened, on true time, and the spans that its hosts make of it.

    true time   ──┬──────────────┬───>     an operation starts and ends
    its host      16:20:05.1     16:20:07.3    its clock, wrong, read at these instants
    span          start          end

A world also keeps `bounds`: what the text of docs/concepts.md lets be concluded from its calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from llmlat_processor.model import (
    INTERNAL,
    PARENT_IS_REMOTE,
    Assumptions,
    AttributeValue,
    Event,
    Link,
    Resource,
    Span,
)
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.spans import phase_span_name
from llmlat_semconv.values import Evidence, LinkRelationship
from tests.cases.case_format import EPOCH_NS
from tests.properties.clock_hosts import Host, Process, domain_of, monotonic_domain, resource_of

TRACE_ID: Final = b"world of clocks!"

Told = dict[str, AttributeValue]


class PhaseOf(NamedTuple):
    """A phase of an operation, on true time."""

    phase: Phase
    start: int
    end: int
    evidence: Evidence = Evidence.MEASURED


@dataclass(slots=True, eq=False)
class Operation:
    """One span and its phases, on true time.

    Attributes:
        plain: made by a library that is not ours: it has nothing but wall stamps.
        waits: the text takes for granted that it lasts to the last byte of what it called.
        content: when its first content came, if it says so.
        lie_ns: added to all of its stamps: what no clock of its host ever showed.
    """

    span_id: bytes
    parent: Operation | None
    process: Process
    kind: int
    start: int
    end: int
    told: Told
    plain: bool = False
    waits: bool = False
    is_error: bool = False
    content: int | None = None
    lie_ns: int = 0
    phases: list[PhaseOf] = field(default_factory=list)
    events: list[tuple[str, int, Told]] = field(default_factory=list)
    links: list[tuple[Operation, LinkRelationship]] = field(default_factory=list)

    @property
    def is_remote(self) -> bool:
        """Its parent is of another process."""
        return self.parent is not None and self.parent.process is not self.process


class Bound(NamedTuple):
    """What left one operation at `left` arrived at another at `arrived`, or up to `tail_ns` before.

    `is_answer` tells what goes back to a caller from what is asked.
    """

    sender: Operation
    left: int
    receiver: Operation
    arrived: int
    tail_ns: int = 0
    is_answer: bool = False


@dataclass(slots=True)
class World:
    """A trace, and the truth about it.

    Attributes:
        bounds: what the text lets be concluded; true of every world.
        seed: makes the same world again.
    """

    seed: int
    hosts: dict[str, Host]
    assumptions: Assumptions
    operations: list[Operation] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)

    @property
    def root(self) -> Operation:
        """The operation above all others; it starts at 0."""
        return self.operations[0]

    def host_of(self, operation: Operation) -> Host:
        """Where it ran."""
        return self.hosts[operation.process.host]

    def domain(self, operation: Operation) -> str:
        """The clock domain of an operation."""
        return domain_of(operation.process, self.host_of(operation))

    def reading(self, operation: Operation, at: int) -> int:
        """What an operation's domain knows of a true instant."""
        host, process = self.host_of(operation), operation.process
        if host.monotonic_ns is None:
            return host.wall(at) + operation.lie_ns
        if operation.plain:
            return host.wall(at) - _anchored(host, process) + operation.lie_ns
        return host.monotonic(at) + operation.lie_ns

    def spans(self, ahead: Mapping[str, int] | None = None) -> list[Span]:
        """What the hosts have emitted.

        Args:
            ahead: per host, how much further on the clock is that its spans are placed by.
        """
        hosts = self.hosts
        if ahead:
            hosts = {name: host.ahead(ahead.get(name, 0)) for name, host in hosts.items()}
        scribe = _Scribe(hosts)
        return [span for operation in self.operations for span in scribe.spans(operation)]


def _anchored(host: Host, process: Process) -> int:
    """Wall minus monotonic clock, as a process has it."""
    assert host.monotonic_ns is not None
    return EPOCH_NS + host.wall_ns - host.monotonic_ns + process.anchor_error_ns


class _Scribe:
    """Writes operations as spans."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self._hosts = hosts
        self._resources: dict[str, Resource] = {}

    def spans(self, operation: Operation) -> Iterator[Span]:
        """The operation's span, then those of its phases."""
        told = dict(operation.told)
        if operation.content is not None:
            after_ns = self._stamp(operation, operation.content) - self._stamp(
                operation, operation.start
            )
            told[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] = after_ns / 1e9
        told |= self._clock(operation, operation.start, anchored=True)
        yield Span(
            TRACE_ID,
            operation.span_id,
            operation.parent.span_id if operation.parent else b"",
            "operation",
            operation.kind,
            self._stamp(operation, operation.start),
            self._stamp(operation, operation.end),
            self._resource(operation.process),
            flags=PARENT_IS_REMOTE if operation.is_remote else 0,
            is_error=operation.is_error,
            attributes=told,
            attribute_count=len(told),
            events=[
                Event(name, self._stamp(operation, at), held) for name, at, held in operation.events
            ],
            links=[
                Link(TRACE_ID, other.span_id, {names.LLMLAT_LINK_RELATIONSHIP: said.value})
                for other, said in operation.links
            ],
        )
        for number, phase in enumerate(operation.phases):
            yield self._phase(operation, number, phase)

    def _phase(self, operation: Operation, number: int, phase: PhaseOf) -> Span:
        told: Told = {
            names.LLMLAT_PHASE_NAME: phase.phase.value,
            names.LLMLAT_PHASE_EVIDENCE: phase.evidence.value,
            **self._clock(operation, phase.start, anchored=False),
        }
        return Span(
            TRACE_ID,
            operation.span_id[:6] + (number + 1).to_bytes(2, "big"),
            operation.span_id,
            phase_span_name(phase.phase.value),
            INTERNAL,
            self._stamp(operation, phase.start),
            self._stamp(operation, phase.end),
            self._resource(operation.process),
            attributes=told,
            attribute_count=len(told),
        )

    def _clock(self, operation: Operation, at: int, *, anchored: bool) -> Told:
        """What a span of ours says of its clock."""
        process = operation.process
        host = self._hosts[process.host]
        if host.monotonic_ns is None or operation.plain:
            return {}
        told: Told = {names.LLMLAT_CLOCK_MONOTONIC_START: host.monotonic(at) + operation.lie_ns}
        if not process.provider:
            told[names.LLMLAT_CLOCK_DOMAIN_ID] = monotonic_domain(host)
        if anchored:
            told[names.LLMLAT_CLOCK_ANCHOR_MONOTONIC] = host.monotonic_ns
            told[names.LLMLAT_CLOCK_ANCHOR_WALL] = host.monotonic_ns + _anchored(host, process)
            told[names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY] = process.uncertainty_ns
        return told

    def _stamp(self, operation: Operation, at: int) -> int:
        host = self._hosts[operation.process.host]
        if host.monotonic_ns is None or operation.plain:
            return host.wall(at) + operation.lie_ns
        derived = host.monotonic(at) + _anchored(host, operation.process)
        return derived + operation.lie_ns

    def _resource(self, process: Process) -> Resource:
        known = self._resources.get(process.name)
        if known is None:
            known = resource_of(process, self._hosts[process.host])
            self._resources[process.name] = known
        return known
