"""What was received: spans, their resources, events and links; no wire format.

Identities are the raw bytes of the span and trace ids, instants are integer nanoseconds. A
`Span` carries its own serialized bytes only so that it can be sent on unchanged; nothing in the
stages reads them except to break a tie between duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

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
