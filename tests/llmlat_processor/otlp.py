"""OTLP requests in a few words, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from llmlat_processor.model import CLIENT, AttributeValue
from llmlat_processor.wire.slim import join_envelope, join_request
from llmlat_processor.wire.values import any_value
from llmlat_semconv import attributes as names

TRACE_ID = bytes(range(1, 17))
SPAN_ID = bytes(range(1, 9))
START_NS = 1_790_000_000_123_456_789
CHAT: Final[dict[str, AttributeValue]] = {
    names.GEN_AI_OPERATION_NAME: "chat",
    names.GEN_AI_USAGE_INPUT_TOKENS: 12,
}
PYTHON_SERVICE: Final[dict[str, AttributeValue]] = {
    names.SERVICE_NAME: "adviser",
    names.SERVICE_INSTANCE_ID: "a1",
}


def pairs(attributes: Mapping[str, AttributeValue]) -> list[KeyValue]:
    """Attributes as they stand in a message."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def span(
    number: int = 1,
    *,
    trace_id: bytes = TRACE_ID,
    parent: bytes = b"",
    kind: int = CLIENT,
    name: str = "chat gemma",
    attributes: Mapping[str, AttributeValue] = CHAT,
    **fields: object,
) -> Span:
    """A span of a second, with an id made of its number."""
    message = Span(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent,
        name=name,
        kind=kind,  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=START_NS,
        end_time_unix_nano=START_NS + 1_000_000_000,
        attributes=pairs(attributes),
    )
    for field, value in fields.items():
        setattr(message, field, value)
    return message


def request(
    spans: Iterable[Span],
    resource: Mapping[str, AttributeValue] = PYTHON_SERVICE,
    scope: str = "adviser.app",
) -> ExportTraceServiceRequest:
    """Spans of one resource and scope."""
    scope_spans = ScopeSpans(spans=spans)
    scope_spans.scope.name = scope
    resource_spans = ResourceSpans(scope_spans=[scope_spans])
    resource_spans.resource.attributes.extend(pairs(resource))
    return ExportTraceServiceRequest(resource_spans=[resource_spans])


def raw_request(spans: Iterable[bytes], resource_spans: bytes = b"") -> bytes:
    """Serialized spans, whatever is in them, under a serialized ResourceSpans without scopes."""
    return join_request([join_envelope(resource_spans, [join_envelope(b"", spans)])])
