"""Cases as an exporter sends them, every field of OTLP in use, each time with ids of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from llmlat_processor.model import Resource, Span
from llmlat_semconv import attributes as names
from tests.cases.case_format import Case, read_case
from tests.cases.case_spans import name_of, spans_of
from tests.llmlat_processor.otlp import pairs, request

CASES: Final = Path(__file__).parents[2] / "cases" / "paths"
TOOL: Final = "get_orders"

_SAMPLED_AND_LOCAL: Final = 0x101
_SCOPE: Final = "app.tracer"


@dataclass(frozen=True)
class Sent:
    """A case on its way.

    Attributes:
        case: as written.
        trace_id: of this time that it is sent.
        request: as exported; spans in the order of the case.
        names: what the case calls a span, by its id.
    """

    case: Case
    trace_id: bytes
    request: ExportTraceServiceRequest
    names: dict[bytes, str]

    @property
    def span_ids(self) -> dict[str, bytes]:
        """The ids of its spans, by what the case calls them."""
        return {name: span_id for span_id, name in self.names.items()}


def sent_as(case_name: str) -> Sent:
    """A case of tests/cases/paths as a request."""
    case = read_case(CASES / f"{case_name}.json")
    trace_id = os.urandom(16)
    spans = spans_of(case)
    by_place: dict[int, list[Span]] = {}
    for span in spans:
        by_place.setdefault(id(span.resource), []).append(span)
    merged = ExportTraceServiceRequest()
    for of_one in by_place.values():
        merged.MergeFrom(_of_one_resource(trace_id, of_one[0].resource, of_one))
    known = {_id(trace_id, span.span_id): name_of(span.span_id) for span in spans}
    return Sent(case, trace_id, merged, known)


def _of_one_resource(
    trace_id: bytes, resource: Resource, spans: Sequence[Span]
) -> ExportTraceServiceRequest:
    made = request((_message(trace_id, span) for span in spans), resource.attributes, _SCOPE)
    (of_resource,) = made.resource_spans
    (of_scope,) = of_resource.scope_spans
    of_resource.schema_url = of_scope.schema_url = "https://opentelemetry.io/schemas/1.37.0"
    of_scope.scope.version = "4.2"
    of_scope.scope.attributes.extend(pairs({"app.team": "advice"}))
    return made


def _message(trace_id: bytes, span: Span) -> SpanMessage:
    message = SpanMessage(
        trace_id=trace_id,
        span_id=_id(trace_id, span.span_id),
        parent_span_id=_id(trace_id, span.parent_id),
        name=span.name,
        kind=span.kind,  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        trace_state="vendor=t61rcWkgMzE",
        flags=_SAMPLED_AND_LOCAL,
        dropped_attributes_count=3,
        dropped_events_count=2,
        dropped_links_count=1,
        status=Status(code=Status.STATUS_CODE_OK),
        attributes=pairs({**span.attributes, "app.tags": ("north", "ä"), "app.cost": 0.25}),
    )
    if message.name == "t":
        message.attributes.extend(pairs({names.GEN_AI_TOOL_NAME: TOOL}))
    for event in span.events:
        message.events.add(
            name=event.name, time_unix_nano=event.at_ns, attributes=pairs(event.attributes)
        )
    if span.parent_id:  # what a link to another trace does to a root is another matter
        message.links.add(trace_id=b"\7" * 16, span_id=b"\7" * 8, attributes=pairs({"app.why": 1}))
    return message


def _id(trace_id: bytes, name: bytes) -> bytes:
    """The same name in another trace has another id; no name has none."""
    return sha256(trace_id + name).digest()[:8] if name else b""
