"""Spans that were made here, put into the form in which received ones are held and sent.

Their scope is ours, with the contract's schema; received spans keep the envelope they came in.
"""

from __future__ import annotations

from functools import lru_cache

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from llmlat_processor.model import Annotation, Attributes, Link, Resource, Span
from llmlat_processor.wire.decoded import Origin, WireSpan
from llmlat_processor.wire.encode import extended
from llmlat_processor.wire.values import any_value
from llmlat_semconv import attributes as names
from llmlat_semconv.version import CONTRACT_VERSION, SCHEMA_URL


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
    sent.origin = Origin(_resource(span.resource), _scope(span.scope))
    return sent


def _serialized(span: Span) -> bytes:
    """What it says is appended as it is to received spans: much of it comes again and again."""
    message = SpanMessage(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        name=span.name,
        kind=span.kind,  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        flags=span.flags,
        links=map(_link, span.links),
    )
    return extended(message.SerializeToString(), Annotation(span.attributes, span.events))


def _link(link: Link) -> SpanMessage.Link:
    pairs = _pairs(link.attributes)
    return SpanMessage.Link(trace_id=link.trace_id, span_id=link.span_id, attributes=pairs)


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def _resource(resource: Resource) -> bytes:
    message = ResourceSpans()
    message.resource.attributes.extend(_pairs(resource.attributes))
    return message.SerializeToString(deterministic=True)


@lru_cache(maxsize=8)
def _scope(name: str) -> bytes:
    scope = InstrumentationScope(
        name=name, attributes=_pairs({names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION})
    )
    return ScopeSpans(scope=scope, schema_url=SCHEMA_URL).SerializeToString(deterministic=True)
