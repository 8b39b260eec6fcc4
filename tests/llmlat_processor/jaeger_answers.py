"""Spans as Jaeger answers with them, after two translations whose rules are written down here.

OTLP -> Jaeger's model: the Collector's `pkg/translator/jaeger`, `traces_to_jaegerproto.go` (v0.140)
Jaeger's model -> JSON: Jaeger's `internal/uimodel/converter/v1/json/from_domain.go` (v1.76)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from llmlat_processor.model import (
    CLIENT,
    CONSUMER,
    INTERNAL,
    PRODUCER,
    SERVER,
    Annotation,
    Attributes,
    AttributeValue,
    Event,
    Resource,
    Span,
)
from llmlat_semconv import attributes as names

KINDS: Final = {
    INTERNAL: "internal",
    SERVER: "server",
    CLIENT: "client",
    PRODUCER: "producer",
    CONSUMER: "consumer",
}
SAFE_IN_JAVASCRIPT: Final = 2**53 - 1

NOTHING_ADDED: Final = Annotation({})


def jaeger_answer(spans: Iterable[Span], added: Mapping[Span, Annotation] = {}) -> str:
    """The answer of `/api/traces/ID` to a trace of these spans, with all that was added to them."""
    processes: dict[Resource, str] = {}
    written = []
    for span in spans:
        key = processes.setdefault(span.resource, f"p{len(processes) + 1}")
        written.append({**_span(span, added.get(span, NOTHING_ADDED)), "processID": key})
    trace = {
        "traceID": written[0]["traceID"],
        "spans": written,
        "processes": {key: _process(resource) for resource, key in processes.items()},
        "warnings": None,
    }
    return json.dumps({"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None})


def _span(span: Span, added: Annotation) -> dict[str, Any]:
    start_us, duration_us = span.start_ns // 1000, span.duration_ns // 1000
    return {
        "traceID": span.trace_id.hex(),
        "spanID": span.span_id.hex(),
        "operationName": span.name,
        "references": list(_references(span)),
        "startTime": start_us,
        "duration": duration_us,
        "tags": [
            *([tag("otel.scope.name", span.scope)] if span.scope else []),
            *_tags({**span.attributes, **added.attributes}),
            *([tag("span.kind", KINDS[span.kind])] if span.kind in KINDS else []),
            *([tag("otel.status_code", "ERROR"), tag("error", True)] if span.is_error else []),
        ],
        "logs": [_log(event) for event in (*span.events, *added.events)],
        "warnings": None,
    }


def _references(span: Span) -> Iterator[dict[str, str]]:
    """What a link says of itself is lost, and a link to the parent takes the parent's place."""
    linked = [(link.trace_id, link.span_id) for link in span.links]
    parent = (span.trace_id, span.parent_id)
    if span.parent_id:
        yield _reference("FOLLOWS_FROM" if parent in linked else "CHILD_OF", *parent)
    for one in linked:
        if one != parent:
            yield _reference("FOLLOWS_FROM", *one)


def _reference(kind: str, trace_id: bytes, span_id: bytes) -> dict[str, str]:
    return {"refType": kind, "traceID": trace_id.hex(), "spanID": span_id.hex()}


def _log(event: Event) -> dict[str, Any]:
    fields = [tag("event", event.name), *_tags(event.attributes)]
    return {"timestamp": event.at_ns // 1000, "fields": fields}


def _process(resource: Resource) -> dict[str, Any]:
    others = {k: v for k, v in resource.attributes.items() if k != names.SERVICE_NAME}
    return {"serviceName": resource.attributes.get(names.SERVICE_NAME, ""), "tags": _tags(others)}


def _tags(attributes: Attributes) -> list[dict[str, Any]]:
    return [tag(key, value) for key, value in attributes.items()]


def tag(key: str, value: AttributeValue) -> dict[str, Any]:
    """One attribute as Jaeger writes it."""
    if isinstance(value, bool):
        return {"key": key, "type": "bool", "value": value}
    if isinstance(value, int):
        written = value if abs(value) <= SAFE_IN_JAVASCRIPT else str(value)
        return {"key": key, "type": "int64", "value": written}
    if isinstance(value, float):
        return {"key": key, "type": "float64", "value": value}
    if isinstance(value, bytes):
        return {"key": key, "type": "binary", "value": base64.b64encode(value).decode()}
    text = (
        json.dumps(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
    )
    return {"key": key, "type": "string", "value": text}
