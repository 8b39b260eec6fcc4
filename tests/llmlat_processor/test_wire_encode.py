"""Spans to OTLP: what was received goes on byte for byte, what is added stands behind it."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.model import Annotation, AttributeValue, Event, Span
from llmlat_processor.wire import decode, encode
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor.otlp import PYTHON_SERVICE, START_NS, pairs, request, span


def parsed(content: bytes) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(content)


def test_what_gets_nothing_added_is_sent_byte_for_byte() -> None:
    received = request([span(1), span(2)])
    received.resource_spans[0].schema_url = "https://example.test/resource"
    received.resource_spans[0].scope_spans[0].schema_url = "https://example.test/scope"
    received.resource_spans[0].scope_spans[0].scope.attributes.extend(pairs({"a": 1}))
    content = received.SerializeToString()

    assert encode(decode(content).spans) == content


ADDED: list[AttributeValue] = [
    0.25,
    0.0,
    True,
    False,
    1,
    1.0,
    -5,
    "decode",
    FindingKind.STREAM_HELD,
    "a longer text than is remembered " * 3,
    b"\x00",
    ("queue 00f0 1 2", "decode 00f1 3 4"),
    None,
]


@pytest.mark.parametrize("value", ADDED, ids=repr)
def test_an_added_attribute_reads_as_if_it_had_been_there(value: AttributeValue) -> None:
    received = request([span(1)])
    (read,) = decode(received.SerializeToString()).spans
    annotation = Annotation({names.LLMLAT_CRITICAL_PATH_SELF_TIME: value})

    sent = encode([read], {read: annotation})

    received.resource_spans[0].scope_spans[0].spans[0].attributes.extend(
        pairs({names.LLMLAT_CRITICAL_PATH_SELF_TIME: value})
    )
    assert parsed(sent) == received


def test_added_events_and_attributes_go_to_their_own_span_only() -> None:
    content = request([span(1), span(2)]).SerializeToString()
    first, second = decode(content).spans
    event = Event(events.LLMLAT_FINDING, START_NS, {names.LLMLAT_FINDING_KIND: "stream_held"})
    share = {names.LLMLAT_CRITICAL_PATH_SHARE: 0.5, names.LLMLAT_CRITICAL_PATH_IS_ON_PATH: True}

    sent = encode([first, second], {second: Annotation(share, (event,))})

    expected = parsed(content)
    changed = expected.resource_spans[0].scope_spans[0].spans[1]
    changed.attributes.extend(pairs(share))
    changed.events.add(name=event.name, time_unix_nano=START_NS, attributes=pairs(event.attributes))
    assert parsed(sent) == expected


def test_spans_of_several_requests_are_grouped_by_the_envelope_that_they_came_in() -> None:
    other_service = {**PYTHON_SERVICE, names.SERVICE_NAME: "engine"}
    requests = [
        request([span(1)]),
        request([span(2)], other_service),
        request([span(3)], scope="other"),
        request([span(4)]),
    ]
    spans = [read for one in requests for read in decode(one.SerializeToString()).spans]

    sent = parsed(encode(spans))

    grouped = [
        [[message.span_id[-1] for message in scope.spans] for scope in resource.scope_spans]
        for resource in sent.resource_spans
    ]
    assert grouped == [[[1, 4], [3]], [[2]]]


def test_a_span_that_never_was_on_the_wire_is_refused() -> None:
    (read,) = decode(request([span()]).SerializeToString()).spans
    made = Span(b"t" * 16, b"s" * 8, b"", "made", 1, 1, 2, read.resource)

    with pytest.raises(TypeError, match="not decoded from OTLP"):
        encode([made])


def test_an_integer_beyond_64_bits_is_refused() -> None:
    (read,) = decode(request([span()]).SerializeToString()).spans

    with pytest.raises(ValueError, match="range"):
        encode([read], {read: Annotation({names.LLMLAT_FINDING_AMOUNT: 2**64})})
