"""Spans and what is added to them to OTLP bytes; what was received is copied, never rewritten.

Protobuf defines the concatenation of two serialized messages as their merge, and of a repeated
field as its continuation. So an annotation is appended to the bytes of its span:

    span as received | attribute | attribute | event
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from llmlat_processor.model import Annotation, Event, Span
from llmlat_processor.wire.decoded import Origin, WireSpan
from llmlat_processor.wire.fields import field, instant, not_empty
from llmlat_processor.wire.key_values import DOUBLE, attribute, attributes
from llmlat_processor.wire.slim import join_envelope, join_request

_NOTHING: Final[Mapping[Span, Annotation]] = {}
_HEADS: Final = 11
"""Most bytes before a message in another one: its number and type, and its size."""

_ATTRIBUTES: Final = SpanMessage.ATTRIBUTES_FIELD_NUMBER
_EVENT_TIME: Final = SpanMessage.Event.TIME_UNIX_NANO_FIELD_NUMBER
_EVENT_NAME: Final = SpanMessage.Event.NAME_FIELD_NUMBER
_EVENT_ATTRIBUTES: Final = SpanMessage.Event.ATTRIBUTES_FIELD_NUMBER

_ByOrigin: TypeAlias = defaultdict[Origin, list[bytes]]


class Request(NamedTuple):
    """A serialized ExportTraceServiceRequest; two of them joined are one request of both.

    Attributes:
        content: its bytes.
        spans: how many spans are in it.
        unit: a handle of whoever made it, given back with what became of it.
    """

    content: bytes
    spans: int
    unit: object | None = None


def encode(spans: Iterable[Span], annotations: Mapping[Span, Annotation] = _NOTHING) -> bytes:
    """An ExportTraceServiceRequest of these spans, each under the resource and scope it came with.

    Args:
        spans: spans that `decode` or `decode_json` has made, in the order to be sent.
        annotations: what to add to which span; a span without one is sent byte for byte.

    Raises:
        TypeError: a span never was on the wire.
    """
    by_origin: _ByOrigin = defaultdict(list)
    for span in spans:
        sent = sendable(span)
        by_origin[sent.origin].append(extended(sent.raw, annotations.get(span)))
    return _joined(by_origin)


def encode_within(
    limit_bytes: int, spans: Iterable[Span], annotations: Mapping[Span, Annotation] = _NOTHING
) -> Iterator[Request]:
    """The same as one request or several, none of them larger than the limit.

    Args:
        limit_bytes: most that the peer accepts; a span that is larger than it goes alone.
        spans: as for `encode`.
        annotations: as for `encode`.

    Raises:
        TypeError: a span never was on the wire.
    """
    by_origin: _ByOrigin = defaultdict(list)
    size = count = 0
    for span in spans:
        sent = sendable(span)
        raw = extended(sent.raw, annotations.get(span))
        needs = len(raw) + _HEADS
        raws = by_origin.get(sent.origin)
        if raws is None:
            needs += _envelope_size(sent.origin)
        if count and size + needs > limit_bytes:
            yield Request(_joined(by_origin), count)
            by_origin = defaultdict(list)
            size = count = 0
            raws = None
            needs = len(raw) + _HEADS + _envelope_size(sent.origin)
        if raws is None:
            raws = by_origin[sent.origin]
        raws.append(raw)
        size += needs
        count += 1
    if count:
        yield Request(_joined(by_origin), count)


def encode_once(limit_bytes: int, spans: Iterable[Span]) -> Request | None:
    """Spans as they came, of equal ones the first; None where that would be above the limit.

    The same as `encode_within` of them, and faster.

    Args:
        limit_bytes: most that the peer accepts.
        spans: as for `encode`; equal are those with the same bytes in the same envelope.

    Raises:
        TypeError: a span never was on the wire.
    """
    by_origin: dict[Origin, dict[bytes, None]] = {}
    last: Origin | None = None
    raws: dict[bytes, None] = {}
    for span in map(sendable, spans):
        if span.origin is not last:
            last = span.origin
            raws = by_origin.setdefault(last, {})
        raws[span.raw] = None
    count = sum(map(len, by_origin.values()))
    size = sum(map(_envelope_size, by_origin)) + count * _HEADS
    size += sum(sum(map(len, raws)) for raws in by_origin.values())
    return Request(_joined(by_origin), count) if size <= limit_bytes else None


def sendable(span: Span) -> WireSpan:
    """A span with its bytes.

    Raises:
        TypeError: it never was on the wire.
    """
    if not isinstance(span, WireSpan):
        raise TypeError(f"{span!r} was not decoded from OTLP and has no bytes to send on")
    return span


def _envelope_size(origin: Origin) -> int:
    return len(origin.resource) + len(origin.scope) + 2 * _HEADS


def _joined(by_origin: Mapping[Origin, Iterable[bytes]]) -> bytes:
    by_resource: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for (resource, scope), raws in by_origin.items():
        by_resource[resource].append(join_envelope(scope, raws))
    return join_request(join_envelope(resource, scopes) for resource, scopes in by_resource.items())


def extended(raw: bytes, addition: Annotation | None) -> bytes:
    """A serialized span with everything that is added to it."""
    if addition is None:
        return raw
    pieces = [raw]
    for key, value in addition.attributes.items():
        if type(value) is float:
            pieces.append(_up_to_double(key))
            pieces.append(DOUBLE.pack(value))
        elif value is True:
            pieces.append(_flag(key))
        else:
            pieces.append(attribute(_ATTRIBUTES, key, value))
    if addition.events:
        pieces += map(_event, addition.events)
    return b"".join(pieces)


@lru_cache(maxsize=1_024)
def _up_to_double(key: str) -> bytes:
    """All of a double attribute but its last eight bytes, which are the number."""
    return attribute(_ATTRIBUTES, key, 0.0)[: -DOUBLE.size]


@lru_cache(maxsize=1_024)
def _flag(key: str) -> bytes:
    return attribute(_ATTRIBUTES, key, True)


def _event(event: Event) -> bytes:
    """A serialized Span that has one event and nothing else."""
    return field(
        SpanMessage.EVENTS_FIELD_NUMBER,
        instant(_EVENT_TIME, event.at_ns)
        + not_empty(_EVENT_NAME, event.name.encode())
        + attributes(_EVENT_ATTRIBUTES, event.attributes),
    )
