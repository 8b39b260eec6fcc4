"""Spans that were made here, put into the form in which received ones are held and sent.

Their scope is ours, with the contract's schema; received spans keep the envelope they came in.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from llmlat_processor.model import Annotation, Attributes, Link, Resource, Span
from llmlat_processor.wire.decoded import Origin, WireSpan
from llmlat_processor.wire.encode import extended
from llmlat_processor.wire.fields import field, instant, not_empty, varint
from llmlat_processor.wire.key_values import attributes
from llmlat_processor.wire.values import any_value
from llmlat_semconv import attributes as names
from llmlat_semconv.version import CONTRACT_VERSION, SCHEMA_URL

_TRACE_ID: Final = SpanMessage.TRACE_ID_FIELD_NUMBER
_SPAN_ID: Final = SpanMessage.SPAN_ID_FIELD_NUMBER
_PARENT_ID: Final = SpanMessage.PARENT_SPAN_ID_FIELD_NUMBER
_NAME: Final = SpanMessage.NAME_FIELD_NUMBER
_START: Final = SpanMessage.START_TIME_UNIX_NANO_FIELD_NUMBER
_END: Final = SpanMessage.END_TIME_UNIX_NANO_FIELD_NUMBER
_LINKS: Final = SpanMessage.LINKS_FIELD_NUMBER
_LINK_TRACE_ID: Final = SpanMessage.Link.TRACE_ID_FIELD_NUMBER
_LINK_SPAN_ID: Final = SpanMessage.Link.SPAN_ID_FIELD_NUMBER
_LINK_ATTRIBUTES: Final = SpanMessage.Link.ATTRIBUTES_FIELD_NUMBER
_KIND: Final = bytes((SpanMessage.KIND_FIELD_NUMBER << 3,))
_FLAGS: Final = Struct("<BBI")
_FLAGS_HEAD: Final = (0x85, 0x01)  # field 16 of 32 bits: its number takes two bytes


def as_sent(span: Span) -> WireSpan:
    """A span of ours as if it had been received: with its bytes, and an envelope of our scope.

    Raises:
        ValueError: an integer of it is beyond 64 bits.
    """
    sent = WireSpan(
        span.trace_id,
        span.span_id,
        span.parent_id,
        span.name,
        span.kind,
        span.start_ns,
        span.end_ns,
        span.resource,
        flags=span.flags,
        is_error=span.is_error,
        scope=span.scope,
        attributes=span.attributes,
        attribute_count=len(span.attributes),
        events=span.events,
        links=span.links,
        raw=_serialized(span),
    )
    sent.borne = 0
    sent.origin = _origin(span.resource, span.scope)
    return sent


def _serialized(span: Span) -> bytes:
    """What it says is appended as it is to received spans: much of it comes again and again."""
    written = [
        not_empty(_TRACE_ID, span.trace_id),
        not_empty(_SPAN_ID, span.span_id),
        not_empty(_PARENT_ID, span.parent_id),
        not_empty(_NAME, span.name.encode()),
        _kind(span.kind),
        instant(_START, span.start_ns),
        instant(_END, span.end_ns),
        *map(_link, span.links),
        _flags(span.flags),
    ]
    return extended(b"".join(written), Annotation(span.attributes, span.events))


@lru_cache(maxsize=16)
def _kind(kind: int) -> bytes:
    return _KIND + varint(kind) if kind else b""


@lru_cache(maxsize=256)
def _flags(flags: int) -> bytes:
    return _FLAGS.pack(*_FLAGS_HEAD, flags) if flags else b""


def _link(link: Link) -> bytes:
    """A serialized Span that has one link and nothing else."""
    return field(
        _LINKS,
        not_empty(_LINK_TRACE_ID, link.trace_id)
        + not_empty(_LINK_SPAN_ID, link.span_id)
        + attributes(_LINK_ATTRIBUTES, link.attributes),
    )


@lru_cache(maxsize=64)
def _origin(resource: Resource, scope: str) -> Origin:
    """The envelope of all spans of one resource: it is never changed once made."""
    return Origin(_resource(resource), _scope(scope))


def _resource(resource: Resource) -> bytes:
    message = ResourceSpans()
    message.resource.attributes.extend(_pairs(resource.attributes))
    return message.SerializeToString(deterministic=True)


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


@lru_cache(maxsize=8)
def _scope(name: str) -> bytes:
    scope = InstrumentationScope(
        name=name, attributes=_pairs({names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION})
    )
    return ScopeSpans(scope=scope, schema_url=SCHEMA_URL).SerializeToString(deterministic=True)
