"""Spans and what is added to them to OTLP bytes; what was received is copied, never rewritten.

Protobuf defines the concatenation of two serialized messages as their merge, and of a repeated
field as its continuation. So an annotation is appended to the bytes of its span:

    span as received | attribute | attribute | event
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from llmlat_processor.model import Annotation, AttributeValue, Event, Span
from llmlat_processor.wire.decoded import Origin, WireSpan
from llmlat_processor.wire.slim import join_envelope, join_request
from llmlat_processor.wire.values import any_value

_NOTHING: Final[Mapping[Span, Annotation]] = {}
_SHORT: Final = 32
_DELIMITED: Final = 2  # the wire type of what has a size
_HEADS: Final = 11
"""Most bytes before a message in another one: its number and type, and its size."""

_double: Final = Struct("<d")

_ByOrigin: TypeAlias = defaultdict[Origin, list[bytes]]


class Request(NamedTuple):
    """A serialized ExportTraceServiceRequest; two of them joined are one request of both.

    Attributes:
        content: its bytes.
        spans: how many spans are in it.
    """

    content: bytes
    spans: int


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
        needs = len(raw) + _HEADS + (0 if sent.origin in by_origin else _envelope_size(sent.origin))
        if count and size + needs > limit_bytes:
            yield Request(_joined(by_origin), count)
            by_origin = defaultdict(list)
            size = count = 0
            needs = len(raw) + _HEADS + _envelope_size(sent.origin)
        by_origin[sent.origin].append(raw)
        size += needs
        count += 1
    if count:
        yield Request(_joined(by_origin), count)


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


def _joined(by_origin: _ByOrigin) -> bytes:
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
            pieces += _up_to_double(key), _double.pack(value)
        else:
            pieces.append(_attribute(key, value))
    pieces += map(_event, addition.events)
    return b"".join(pieces)


def _attribute(key: str, value: AttributeValue) -> bytes:
    """A serialized Span that has one attribute and nothing else."""
    if isinstance(value, str):
        return _recurring(key, value) if len(value) <= _SHORT else _text(key, value)
    if isinstance(value, bool):
        return _recurring(key, value)
    return SpanMessage(attributes=[_pair(key, value)]).SerializeToString()


def _text(key: str, value: str) -> bytes:
    """The same by hand: the summaries of the paths are long, and each is another one."""
    text = _field(AnyValue.STRING_VALUE_FIELD_NUMBER, value.encode())
    pair = _key(key) + _field(KeyValue.VALUE_FIELD_NUMBER, text)
    return _field(SpanMessage.ATTRIBUTES_FIELD_NUMBER, pair)


def _field(number: int, content: bytes) -> bytes:
    """A text or a message as a field of another message."""
    return _head(number, len(content)) + content


@lru_cache(maxsize=1_024)
def _head(number: int, size: int) -> bytes:
    """What stands before the content of a field: its number, its type, its size."""
    head = bytearray((number << 3 | _DELIMITED,))
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head)


@lru_cache(maxsize=1_024)
def _key(key: str) -> bytes:
    return KeyValue(key=key).SerializeToString()


@lru_cache(maxsize=1_024)
def _up_to_double(key: str) -> bytes:
    """All of a double attribute but its last eight bytes, which are the number."""
    pair = KeyValue(key=key, value=AnyValue(double_value=0.0))
    return SpanMessage(attributes=[pair]).SerializeToString()[: -_double.size]


@lru_cache(maxsize=4_096)
def _recurring(key: str, value: bool | str) -> bytes:
    """Flags, and short texts: mostly words of the contract."""
    return SpanMessage(attributes=[_pair(key, value)]).SerializeToString()


def _event(event: Event) -> bytes:
    """A serialized Span that has one event and nothing else."""
    message = SpanMessage.Event(
        time_unix_nano=event.at_ns,
        name=event.name,
        attributes=[_pair(key, value) for key, value in event.attributes.items()],
    )
    return SpanMessage(events=[message]).SerializeToString()


def _pair(key: str, value: AttributeValue) -> KeyValue:
    return KeyValue(key=key, value=any_value(value))
