"""Spans that were made here, beside received ones, in requests that no peer finds too large."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.model import (
    INTERNAL,
    Annotation,
    AttributeValue,
    Event,
    Link,
    Resource,
    Span,
)
from llmlat_processor.wire import Request, WireSpan, as_sent, decode, encode, encode_within
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.version import CONTRACT_VERSION, SCHEMA_URL
from tests.llmlat_processor.otlp import SPAN_ID, START_NS, TRACE_ID, pairs, request, span

SAID: dict[str, AttributeValue] = {
    names.LLMLAT_CRITICAL_PATH_DURATION: 0.25,
    names.LLMLAT_CRITICAL_PATH_TOTAL_SECTIONS: 3,
    names.LLMLAT_CRITICAL_PATH_COMPLETE: False,
    names.LLMLAT_CRITICAL_PATH_SECTIONS: ("queue 00f0 1 2", "decode 00f0 3 4"),
    names.LLMLAT_CRITICAL_PATH_SUMMARY: "decode vllm 3.4 s",
}
OURS = Resource({names.SERVICE_NAME: "~path"}, service="~path", process="p", domain="d", weak=False)
INSTANT = Event(events.LLMLAT_FIRST_CONTENT, START_NS + 5, {names.LLMLAT_SECTION_SHARE: 0.5})
POINTER = Link(TRACE_ID, SPAN_ID, {names.LLMLAT_LINK_RELATIONSHIP: "section_of"})


def made(number: int = 7) -> Span:
    return Span(
        TRACE_ID,
        number.to_bytes(8, "big"),
        SPAN_ID,
        "critical path",
        INTERNAL,
        START_NS,
        START_NS + 1,
        OURS,
        flags=1,
        scope="our_scope",
        attributes=SAID,
        events=[INSTANT],
        links=[POINTER],
    )


def only(content: bytes) -> tuple[ResourceSpans, Message]:
    (resource_spans,) = ExportTraceServiceRequest.FromString(content).resource_spans
    (scope_spans,) = resource_spans.scope_spans
    (message,) = scope_spans.spans
    return resource_spans, message


def test_a_made_span_is_sent_with_all_that_it_says() -> None:
    _, message = only(encode([as_sent(made())]))

    assert message == Message(
        trace_id=TRACE_ID,
        span_id=(7).to_bytes(8, "big"),
        parent_span_id=SPAN_ID,
        name="critical path",
        kind=Message.SPAN_KIND_INTERNAL,
        start_time_unix_nano=START_NS,
        end_time_unix_nano=START_NS + 1,
        flags=1,
        attributes=pairs(SAID),
        events=[
            Message.Event(
                name=INSTANT.name,
                time_unix_nano=INSTANT.at_ns,
                attributes=pairs(INSTANT.attributes),
            )
        ],
        links=[
            Message.Link(trace_id=TRACE_ID, span_id=SPAN_ID, attributes=pairs(POINTER.attributes))
        ],
    )


def test_it_stands_under_its_resource_and_a_scope_with_the_schema_of_the_contract() -> None:
    resource_spans, _ = only(encode([as_sent(made())]))

    assert list(resource_spans.resource.attributes) == pairs(OURS.attributes)
    (scope_spans,) = resource_spans.scope_spans
    assert scope_spans.schema_url == SCHEMA_URL
    assert scope_spans.scope.name == "our_scope"
    assert list(scope_spans.scope.attributes) == pairs(
        {names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION}
    )


def test_received_and_made_spans_share_a_request() -> None:
    content = request([span(1)]).SerializeToString()
    both = ExportTraceServiceRequest.FromString(
        encode([*decode(content).spans, as_sent(made(7)), as_sent(made(8))])
    )

    received, ours = both.resource_spans
    assert received == ExportTraceServiceRequest.FromString(content).resource_spans[0]
    assert [message.span_id[-1] for message in ours.scope_spans[0].spans] == [7, 8]


def test_what_comes_back_is_what_was_made() -> None:
    (read,) = decode(encode([as_sent(made())])).spans

    assert (read.name, read.scope, read.attributes) == ("critical path", "our_scope", SAID)
    assert [link.span_id for link in read.links] == [SPAN_ID]


# ── Sizes ────────────────────────────────────────────────────────────────────────────────────────


def read(count: int, services: int = 1) -> list[WireSpan]:
    """Spans of several services in turn."""
    spans = []
    for number in range(1, count + 1):
        where: dict[str, AttributeValue] = {names.SERVICE_NAME: f"service {number % services}"}
        spans += decode(request([span(number)], where).SerializeToString()).spans
    return spans


def numbers_in(requests: list[Request]) -> list[list[int]]:
    return [[one.span_id[-1] for one in decode(each.content).spans] for each in requests]


@given(
    count=st.integers(0, 30),
    services=st.integers(1, 4),
    limit=st.integers(300, 2_000),
    annotated=st.booleans(),
)
def test_no_request_is_larger_than_the_limit_and_none_is_lost(
    count: int, services: int, limit: int, annotated: bool
) -> None:
    spans = read(count, services)
    share = Annotation({names.LLMLAT_CRITICAL_PATH_SHARE: 0.5})
    annotations: dict[Span, Annotation] = dict.fromkeys(spans[::2], share) if annotated else {}
    requests = list(encode_within(limit, spans, annotations))

    assert all(len(each.content) <= limit for each in requests)
    assert [each.spans for each in requests] == [len(inside) for inside in numbers_in(requests)]
    sent = sorted(number for inside in numbers_in(requests) for number in inside)
    assert sent == list(range(1, count + 1))


def test_what_fits_is_one_request_the_same_as_without_a_limit() -> None:
    spans = read(10, services=2)

    assert list(encode_within(1_000_000, spans)) == [Request(encode(spans), 10)]


def test_a_span_that_is_larger_than_the_limit_goes_alone() -> None:
    small = read(2)
    (large,) = decode(request([span(9, name="x" * 5_000)]).SerializeToString()).spans
    requests = list(encode_within(1_000, [small[0], large, small[1]]))

    assert numbers_in(requests) == [[1], [9], [2]]


def test_several_requests_joined_are_one_request_of_all() -> None:
    requests = list(encode_within(400, read(6, services=2)))
    assert len(requests) > 1
    joined = b"".join(each.content for each in requests)

    assert sorted(one.span_id[-1] for one in decode(joined).spans) == [1, 2, 3, 4, 5, 6]


def test_a_span_that_never_was_on_the_wire_is_refused_here_too() -> None:
    with pytest.raises(TypeError, match="not decoded from OTLP"):
        list(encode_within(1_000, [made()]))
