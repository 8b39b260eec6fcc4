"""Spans and what is added to them to OTLP bytes; what was received is copied, never rewritten.

Protobuf defines the concatenation of two serialized messages as their merge, and of a repeated
field as its continuation. So an annotation is appended to the bytes of its span:

    span as received | attribute | attribute | event
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from llmlat_processor.model import Annotation, AttributeValue, Event, Span
from llmlat_processor.wire.decoded import WireSpan
from llmlat_processor.wire.slim import join_envelope, join_request
from llmlat_processor.wire.values import any_value

_NOTHING: Final[Mapping[Span, Annotation]] = {}
_SHORT: Final = 32
_double: Final = Struct("<d")


def encode(spans: Iterable[Span], annotations: Mapping[Span, Annotation] = _NOTHING) -> bytes:
    """An ExportTraceServiceRequest of these spans, each under the resource and scope it came with.

    Args:
        spans: spans that `decode` or `decode_json` has made, in the order to be sent.
        annotations: what to add to which span; a span without one is sent byte for byte.

    Raises:
        TypeError: a span never was on the wire.
    """
    resources: dict[bytes, dict[bytes, list[bytes]]] = {}
    for span in spans:
        if not isinstance(span, WireSpan):
            raise TypeError(f"{span!r} was not decoded from OTLP and has no bytes to send on")
        addition = annotations.get(span)
        raw = span.raw if addition is None else span.raw + _serialized(addition)
        scopes = resources.setdefault(span.origin.resource, {})
        scopes.setdefault(span.origin.scope, []).append(raw)
    return join_request(
        join_envelope(resource, [join_envelope(scope, raws) for scope, raws in scopes.items()])
        for resource, scopes in resources.items()
    )


def _serialized(addition: Annotation) -> bytes:
    fields = [_attribute(key, value) for key, value in addition.attributes.items()]
    fields += map(_event, addition.events)
    return b"".join(fields)


def _attribute(key: str, value: AttributeValue) -> bytes:
    """A serialized Span that has one attribute and nothing else."""
    if isinstance(value, float):
        return _up_to_double(key) + _double.pack(value)
    if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _SHORT):
        return _recurring(key, value)
    return SpanMessage(attributes=[_pair(key, value)]).SerializeToString()


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
