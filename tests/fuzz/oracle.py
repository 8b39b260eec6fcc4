"""What protobuf's own full parser says of a request, and whether our reading of it agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from llmlat_processor.wire import Decoded, WireSpan, encode
from llmlat_processor.wire.values import read_pairs


class Placed(NamedTuple):
    """A span with what it came in, each of them as the oracle writes it.

    Attributes:
        resource: a ResourceSpans without scopes.
        scope: a ScopeSpans without spans.
        span: the span.
    """

    resource: bytes
    scope: bytes
    span: bytes


def parsed(request: bytes) -> ExportTraceServiceRequest | None:
    """What the oracle reads; None where it refuses the request."""
    try:
        return ExportTraceServiceRequest.FromString(request)
    except DecodeError:
        return None


def placed(request: ExportTraceServiceRequest) -> Iterator[tuple[Placed, Span]]:
    """Every span of a request."""
    for resource_spans in request.resource_spans:
        scopes = resource_spans.scope_spans[:]
        resource = ResourceSpans()
        resource.CopyFrom(resource_spans)
        resource.ClearField("scope_spans")
        outer = resource.SerializeToString(deterministic=True)
        for scope_spans in scopes:
            scope = ScopeSpans()
            scope.CopyFrom(scope_spans)
            scope.ClearField("spans")
            inner = scope.SerializeToString(deterministic=True)
            for span in scope_spans.spans:
                yield Placed(outer, inner, span.SerializeToString(deterministic=True)), span


@lru_cache(maxsize=4_096)
def resource_as_written(emptied: bytes) -> bytes:
    """A ResourceSpans without scopes as the oracle writes it."""
    return ResourceSpans.FromString(emptied).SerializeToString(deterministic=True)


@lru_cache(maxsize=4_096)
def scope_as_written(emptied: bytes) -> bytes:
    """A ScopeSpans without spans as the oracle writes it."""
    return ScopeSpans.FromString(emptied).SerializeToString(deterministic=True)


def is_somebodys(span: Span) -> bool:
    """Whether its ids are such that it can be told from others."""
    return (
        len(span.trace_id) == 16
        and len(span.span_id) == 8
        and len(span.parent_span_id) in (0, 8)
        and any(span.trace_id)
        and any(span.span_id)
    )


def faults_of_kept(decoded: Decoded) -> list[str]:
    """What the oracle does not accept of what was kept; each span on its own word besides."""
    if parsed(encode(decoded.spans)) is None:
        return ["the oracle refuses what was kept"]
    faults = []
    for span in decoded.spans:
        message = Span.FromString(span.raw)
        if not is_somebodys(message):
            faults.append(f"kept with ids that are nobody's: {span.trace_id.hex()}")
        faults += _misread(span, message)
    return faults


def _misread(span: WireSpan, message: Span) -> Iterator[str]:
    """Where the model is not what the bytes say."""
    zeros = message.parent_span_id == bytes(8)
    said = (
        (span.trace_id, message.trace_id),
        (span.span_id, message.span_id),
        (span.parent_id, b"" if zeros else message.parent_span_id),
        (span.name, message.name),
        (span.kind, message.kind),
        (span.start_ns, message.start_time_unix_nano),
        (span.end_ns, message.end_time_unix_nano),
        (span.flags, message.flags),
        (span.is_error, message.status.code == 2),
        (span.attribute_count, len(message.attributes)),
    )
    yield from (f"reads {ours!r} where {theirs!r} is" for ours, theirs in said if ours != theirs)
    if not span.attributes:
        return
    theirs = repr(read_pairs(message.attributes))  # as text: a NaN is not equal to itself
    if repr(dict(span.attributes)) != theirs:
        yield f"reads {span.attributes!r} where {theirs} is"
    if len(span.events) != len(message.events):
        yield f"reads {len(span.events)} events of {len(message.events)}"
    for event, other in zip(span.events, message.events, strict=False):
        attributes = read_pairs(other.attributes)
        if (event.name, event.at_ns) != (other.name, other.time_unix_nano) or repr(
            dict(event.attributes)
        ) != repr(attributes):
            yield f"reads {event!r} where {other!r} is"


def faults_of_whole(request: ExportTraceServiceRequest, decoded: Decoded) -> list[str]:
    """What was lost or changed of a request that the oracle accepts."""
    every = [*placed(request)]
    expected = [place for place, span in every if is_somebodys(span)]
    faults = []
    if len(decoded.spans) + decoded.refused != len(every):
        faults.append(f"{len(decoded.spans)} kept and {decoded.refused} refused of {len(every)}")
    ours = [span.SerializeToString(deterministic=True) for span in map(_span, decoded.spans)]
    if ours != [place.span for place in expected]:
        faults.append("other spans were kept than those with ids, or in another order")
    sent = parsed(encode(decoded.spans))
    if sent is None or Counter(place for place, _ in placed(sent)) != Counter(expected):
        faults.append("what is sent is not what came")
    return faults


def faults_of_part(request: bytes, decoded: Decoded) -> list[str]:
    """What is wrong with what was kept of a request that the oracle refuses."""
    faults = [] if decoded.damaged else ["nothing was set aside of what the oracle refuses"]
    if not all(span.raw in request for span in decoded.spans):
        faults.append("a span was kept that never came")
    return faults


def _span(span: WireSpan) -> Span:
    return Span.FromString(span.raw)


def same_spans(decoded: Decoded, request: ExportTraceServiceRequest) -> bool:
    """Whether all of a request was read, and nothing else."""
    expected: Sequence[Placed] = [place for place, _ in placed(request)]
    sent = parsed(encode(decoded.spans))
    return sent is not None and Counter(place for place, _ in placed(sent)) == Counter(expected)
