"""Jaeger's own JSON to spans: what its query API answers and what its UI lets people download.

    {"data": [{"spans": [{..., "processID": "p1"}], "processes": {"p1": {...}}}]}

What the collector's translation has made of a span is undone: kind, status and scope are tags
there, events are logs, arrays are text. Two things are lost for good: what a link says of itself,
and all that is shorter than a microsecond; the resource of such a span declares the latter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from llmlat_processor.model import (
    CLIENT,
    CONSUMER,
    INTERNAL,
    PRODUCER,
    SERVER,
    Attributes,
)
from llmlat_processor.wire.decoded import Decoded, Origin, UndecodableError
from llmlat_processor.wire.jaeger_fields import (
    LONGEST,
    MICROSECOND_NS,
    each,
    field,
    nanoseconds,
    object_of,
    pairs,
    saying,
    span_id_of,
    tags_of,
    text,
    trace_id_of,
)
from llmlat_processor.wire.json_fields import FieldError, Json, array
from llmlat_processor.wire.protobuf import SpanReader
from llmlat_semconv import attributes as names

_KINDS: Final = {
    "internal": INTERNAL,
    "server": SERVER,
    "client": CLIENT,
    "producer": PRODUCER,
    "consumer": CONSUMER,
}
_NO_SERVICE: Final = "OTLPResourceNoServiceName"
_ERROR: Final = 2

_KIND, _ERROR_TAG, _STATUS = "span.kind", "error", "otel.status_code"
_CALLED: Final = ("scope", "library")  # now, and by OpenTelemetry of before 2022
_SCOPES: Final = tuple(f"otel.{word}.name" for word in _CALLED)
_VERSIONS: Final = tuple(f"otel.{word}.version" for word in _CALLED)
_NOT_ATTRIBUTES: Final = frozenset({_KIND, _ERROR_TAG, _STATUS, *_SCOPES, *_VERSIONS})
"""Tags that stand for fields of OTLP."""


def is_jaeger(document: Json) -> bool:
    """Tell whether a parsed document is an answer of Jaeger's, be it that it found nothing."""
    if not isinstance(document, dict) or "data" not in document:
        return False
    data = document["data"]
    found = isinstance(data, list) and any(isinstance(t, dict) and "spans" in t for t in data)
    return found or "errors" in document


def decode_jaeger(document: Json) -> Decoded:
    """The spans of a document for which `is_jaeger` holds.

    Raises:
        UndecodableError: it is the answer that nothing was found, or that something went wrong.
    """
    traces = document["data"]
    if not isinstance(traces, list) or not traces:
        raise UndecodableError(f"an answer of Jaeger's without a trace: {_said(document)}")
    reading = _Reading()
    for index, trace in enumerate(traces):
        reading.read_trace(trace, f"data[{index}]")
    return reading.spans.decoded


def _said(document: Json) -> str:
    errors = document.get("errors")
    listed = errors if isinstance(errors, list) else []
    told = [str(error.get("msg") or "") for error in listed if isinstance(error, dict)]
    return saying("; ".join(filter(None, told))) or "nothing was found"


class _Reading:
    """One document being read; each method goes one level further in."""

    def __init__(self) -> None:
        self.spans = SpanReader(trusted=False)

    def read_trace(self, node: Json, where: str) -> None:
        try:
            trace = object_of(node)
            spans = field(trace, "spans", array)
            processes = field(trace, "processes", object_of) if trace.get("processes") else {}
        except FieldError as fault:
            self._refuse(fault, where, 0)
            return
        resources = self._resources(processes, spans, where)
        for index, span in enumerate(spans):
            try:
                origin, raw = _read_span(span, resources)
            except FieldError as fault:
                self._refuse(fault, f"{where}.spans[{index}]", 1)
                continue
            if origin is not None:
                self.spans.read_spans([(index, raw)], origin, where)

    def _resources(
        self, processes: Mapping[str, Json], spans: Iterable[Json], where: str
    ) -> Mapping[str, bytes | None]:
        """Serialized resources by the id of their process; None for one that cannot be read."""
        resources: dict[str, bytes | None] = {}
        keys = (s.get("processID") for s in spans if isinstance(s, dict))
        spans_of = Counter(key for key in keys if isinstance(key, str))
        for key, process in processes.items():
            try:
                resources[key] = _resource(process)
            except FieldError as fault:
                resources[key] = None
                self._refuse(fault, f"{where}.processes.{key}", spans_of[key])
        return resources

    def _refuse(self, fault: FieldError, where: str, spans: int) -> None:
        path = fault.path and f".{fault.path}"
        self.spans.decoded.set_aside(f"{where}{path}", str(fault), spans)


def _read_span(node: Json, resources: Mapping[str, bytes | None]) -> tuple[Origin | None, bytes]:
    """A span in protobuf and what it came in; that is None where its process cannot be read."""
    span = object_of(node)
    tags = dict(tags_of(span, "tags"))
    start_ns = field(span, "startTime", nanoseconds)
    end_ns = start_ns + field(span, "duration", nanoseconds)
    if end_ns > LONGEST:
        raise FieldError("ends later than OTLP can say").under("duration")
    refers = _references(span)
    message = Span(
        trace_id=field(span, "traceID", trace_id_of),
        span_id=field(span, "spanID", span_id_of),
        parent_span_id=refers.parent_id,
        name=field(span, "operationName", text),
        kind=_KINDS.get(str(tags.get(_KIND)), 0),  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=start_ns,
        end_time_unix_nano=end_ns,
        attributes=pairs((k, v) for k, v in tags.items() if k not in _NOT_ATTRIBUTES),
        events=_events(span),
        links=refers.links,
    )
    if _failed(tags):
        message.status.code = _ERROR  # type: ignore[assignment]
    resource = _resource_of(span, resources)
    if resource is None:
        return None, b""
    return Origin(resource, _scope(tags)), message.SerializeToString()


def _failed(tags: Attributes) -> bool:
    said = tags.get(_ERROR_TAG)
    return said is True or said == "true" or tags.get(_STATUS) == "ERROR"


def _scope(tags: Attributes) -> bytes:
    name, version = (next((tags[k] for k in ks if k in tags), "") for ks in (_SCOPES, _VERSIONS))
    scope = InstrumentationScope(name=str(name), version=str(version))
    return ScopeSpans(scope=scope).SerializeToString()


# ── Processes ────────────────────────────────────────────────────────────────────────────────────


def _resource_of(span: Json, resources: Mapping[str, bytes | None]) -> bytes | None:
    """Its process is one of the trace's; in what Elasticsearch stores, it is the span's own."""
    if isinstance(span.get("process"), dict):
        return field(span, "process", _resource)
    key = field(span, "processID", text)
    if key not in resources:
        raise FieldError(f"there is no process {key!r:.40}").under("processID")
    return resources[key]


def _resource(node: Json) -> bytes:
    process = object_of(node)
    service = field(process, "serviceName", text)
    attributes = dict(tags_of(process, "tags"))
    if "hostname" in attributes:  # so do clients of Jaeger's own call it
        attributes.setdefault(names.HOST_NAME, attributes.pop("hostname"))
    if service not in ("", _NO_SERVICE):
        attributes[names.SERVICE_NAME] = service
    attributes[names.LLMLAT_CLOCK_DOMAIN_RESOLUTION] = MICROSECOND_NS
    resource = Resource(attributes=pairs(attributes.items()))
    return ResourceSpans(resource=resource).SerializeToString()


# ── References and logs ──────────────────────────────────────────────────────────────────────────


class _References(NamedTuple):
    """What a span points to."""

    parent_id: bytes
    links: list[Span.Link]


def _references(span: Json) -> _References:
    """The parent and the links of a span.

    A link to the parent takes the place of CHILD_OF, so where no reference says CHILD_OF, the first
    within the trace is the parent: so does Jaeger read them.
    """
    trace_id = field(span, "traceID", trace_id_of)
    read = list(each(span, "references", _reference))
    near = [ref for ref in read if ref.trace_id == trace_id]
    parent = next((ref for ref in near if ref.is_parent), near[0] if near else None)
    links = [
        Span.Link(trace_id=ref.trace_id, span_id=ref.span_id) for ref in read if ref is not parent
    ]
    if parent is not None:
        return _References(parent.span_id, links)
    old = span.get("parentSpanID")
    return _References(field(span, "parentSpanID", span_id_of) if old else b"", links)


class _Reference(NamedTuple):
    is_parent: bool
    trace_id: bytes
    span_id: bytes


def _reference(node: Json) -> _Reference:
    reference = object_of(node)
    return _Reference(
        reference.get("refType") == "CHILD_OF",
        field(reference, "traceID", trace_id_of),
        field(reference, "spanID", span_id_of),
    )


def _events(span: Json) -> list[Span.Event]:
    return list(each(span, "logs", _event))


def _event(node: Json) -> Span.Event:
    log = object_of(node)
    fields = dict(tags_of(log, "fields"))
    return Span.Event(
        time_unix_nano=field(log, "timestamp", nanoseconds),
        name=str(fields.pop("event", "")),
        attributes=pairs(fields.items()),
    )
