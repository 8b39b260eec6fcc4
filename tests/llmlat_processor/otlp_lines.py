"""Built spans as a line of OTLP JSON, as the collector's file exporter writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from llmlat_processor.model import AttributeValue, Resource, Span


def otlp_line(spans: Iterable[Span]) -> str:
    """One export with every span, without a line end."""
    by_resource: dict[Resource, list[Any]] = {}
    for span in spans:
        by_resource.setdefault(span.resource, []).append(_span(span))
    return json.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": _attributes(resource.attributes)},
                    "scopeSpans": [{"scope": {"name": "test"}, "spans": written}],
                }
                for resource, written in by_resource.items()
            ]
        }
    )


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
    }


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[Any]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: AttributeValue) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
