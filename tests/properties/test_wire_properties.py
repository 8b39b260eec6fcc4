"""What holds for the wire, whatever is sent."""

from __future__ import annotations

import base64
import json
from typing import TypeVar

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from llmlat_processor.model import Annotation, AttributeValue, Event
from llmlat_processor.model import Span as ModelSpan
from llmlat_processor.wire import UndecodableError, decode, decode_json, encode
from llmlat_processor.wire.values import any_value
from llmlat_semconv import attributes as names
from tests.llmlat_processor.otlp import pairs, raw_request

_M = TypeVar("_M", bound=Message)

KEYS = st.sampled_from(
    [names.GEN_AI_OPERATION_NAME, names.LLMLAT_PHASE_NAME, names.RPC_SYSTEM, "", "a", "k" * 130]
) | st.text(max_size=5)
INT64 = st.integers(-(2**63), 2**63 - 1)
SCALARS: st.SearchStrategy[AttributeValue] = (
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False) | st.text() | st.binary()
)
VALUES: st.SearchStrategy[AttributeValue] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=3
)
ATTRIBUTES = st.dictionaries(KEYS, VALUES, max_size=3)
STAMPS = st.integers(0, 2**64 - 1)
IDS = st.integers(1, 2**64 - 1).map(lambda number: number.to_bytes(8, "big"))
TRACE_IDS = st.integers(1, 2**128 - 1).map(lambda number: number.to_bytes(16, "big"))
UNKNOWN = st.sampled_from([b"", b"\xf8\x07\x01", b"\xc2\x3e\x03abc"])  # fields 127 and 1000


@st.composite
def spans(draw: st.DrawFn) -> Span:
    span = Span(
        trace_id=draw(TRACE_IDS),
        span_id=draw(IDS),
        parent_span_id=draw(IDS | st.just(b"")),
        trace_state=draw(st.text(max_size=3)),
        name=draw(st.text(max_size=5)),
        kind=draw(st.integers(0, 9)),  # type: ignore[arg-type]  # open: later versions add kinds
        start_time_unix_nano=draw(STAMPS),
        end_time_unix_nano=draw(STAMPS),
        flags=draw(st.integers(0, 2**32 - 1)),
        attributes=pairs(draw(ATTRIBUTES)),
    )
    if draw(st.booleans()):
        span.status.code = draw(st.integers(0, 3))  # type: ignore[assignment]
    for name in draw(st.lists(st.text(max_size=3), max_size=1)):
        event = span.events.add(name=name, time_unix_nano=draw(STAMPS))
        event.attributes.extend(pairs(draw(ATTRIBUTES)))
    for identity in draw(st.lists(IDS, max_size=1)):
        span.links.add(trace_id=draw(TRACE_IDS), span_id=identity)
    return span


@st.composite
def requests(draw: st.DrawFn, unknown: st.SearchStrategy[bytes] = UNKNOWN) -> bytes:
    """Requests with fields that nobody knows yet; no two envelopes of one are equal."""
    request = ExportTraceServiceRequest()
    for number in range(draw(st.integers(0, 2))):
        resource_spans = ResourceSpans(schema_url=f"resource {number}")
        if draw(st.booleans()):
            resource_spans.resource.attributes.extend(pairs(draw(ATTRIBUTES)))
        for scope in range(draw(st.integers(1, 2))):
            scope_spans = ScopeSpans(schema_url=f"scope {scope}")
            scope_spans.scope.name = draw(st.text(max_size=3))
            for span in draw(st.lists(spans(), min_size=1, max_size=2)):
                scope_spans.spans.append(_with(span, draw(unknown)))
            resource_spans.scope_spans.append(_with(scope_spans, draw(unknown)))
        request.resource_spans.append(_with(resource_spans, draw(unknown)))
    return request.SerializeToString()


def _with(message: _M, more: bytes) -> _M:
    message.MergeFromString(more)
    return message


def messages(content: bytes) -> list[Span]:
    request = ExportTraceServiceRequest.FromString(content)
    return [
        span
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


@given(requests())
def test_where_nothing_is_added_the_bytes_stay_as_they_were(content: bytes) -> None:
    decoded = decode(content)

    assert not decoded.damaged
    assert encode(decoded.spans) == content


@given(requests())
def test_what_is_read_is_what_the_full_parser_reads(content: bytes) -> None:
    for read, message in zip(decode(content).spans, messages(content), strict=True):
        assert (read.trace_id, read.span_id) == (message.trace_id, message.span_id)
        assert (read.parent_id, read.name) == (message.parent_span_id, message.name)
        assert (read.kind, read.flags) == (message.kind, message.flags)
        assert read.start_ns == message.start_time_unix_nano
        assert read.end_ns == message.end_time_unix_nano
        assert read.is_error == (message.status.code == 2)
        assert read.attribute_count == len(message.attributes)
        if read.attributes:
            assert {key: any_value(value) for key, value in read.attributes.items()} == {
                pair.key: pair.value for pair in message.attributes
            }


EVENTS = st.builds(Event, st.text(max_size=3), STAMPS, ATTRIBUTES)
ANNOTATIONS = st.builds(Annotation, ATTRIBUTES, st.lists(EVENTS, max_size=2).map(tuple))


@given(requests(unknown=st.just(b"")), ANNOTATIONS, st.integers(0, 20))
def test_what_is_added_stands_behind_what_was_there(
    content: bytes, annotation: Annotation, which: int
) -> None:
    decoded, expected = decode(content).spans, ExportTraceServiceRequest.FromString(content)
    flat = [
        span for one in expected.resource_spans for scope in one.scope_spans for span in scope.spans
    ]
    annotations: dict[ModelSpan, Annotation] = {}
    if which < len(flat):
        annotations[decoded[which]] = annotation
        flat[which].attributes.extend(pairs(annotation.attributes))
        for event in annotation.events:
            flat[which].events.add(
                name=event.name, time_unix_nano=event.at_ns, attributes=pairs(event.attributes)
            )

    assert ExportTraceServiceRequest.FromString(encode(decoded, annotations)) == expected


def as_otlp_json(content: bytes) -> bytes:
    """Protobuf's own JSON, with the two things that OTLP does otherwise."""
    tree = MessageToDict(ExportTraceServiceRequest.FromString(content), use_integers_for_enums=True)
    for resource_spans in tree.get("resourceSpans", []):
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                for node in (span, *span.get("links", [])):
                    _ids_to_hexadecimal(node)
    return json.dumps({"resourceSpans": [], **tree}).encode()


def _ids_to_hexadecimal(node: dict[str, str]) -> None:
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in node:
            node[key] = base64.b64decode(node[key]).hex()


@given(requests(unknown=st.just(b"")))
def test_json_and_protobuf_give_the_same_spans(content: bytes) -> None:
    decoded = decode_json(as_otlp_json(content))

    assert not decoded.damaged
    assert encode(decoded.spans) == content


@given(requests(), st.data())
def test_mutated_bytes_are_accepted_as_far_as_the_full_parser_accepts_them(
    content: bytes, data: st.DataObject
) -> None:
    mutated = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated)))
        mutated[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))

    try:
        decoded = decode(bytes(mutated))
    except UndecodableError:
        assert not accepted(bytes(mutated))
        return

    if accepted(bytes(mutated)):
        sound = [message for message in messages(bytes(mutated)) if has_ids(message)]
        assert [Span.FromString(read.raw) for read in decoded.spans] == sound
    else:
        assert decoded.damaged
    assert accepted(encode(decoded.spans))  # whoever gets the rest is not poisoned


@given(st.binary())
def test_a_span_of_any_bytes_costs_nobody_else(content: bytes) -> None:
    sound = Span(trace_id=b"t" * 16, span_id=b"s" * 8).SerializeToString()

    decoded = decode(raw_request([sound, content, sound]))

    taken = accepted(raw_request([content])) and has_ids(Span.FromString(content))
    assert len(decoded.spans) == 2 + taken
    assert decoded.refused == 1 - taken


JSON_NAMES = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "attributes", "traceId", "key", "links", "other"]
)
JSON_TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**64) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(JSON_NAMES, inner, max_size=3),
)
DOCUMENTS = JSON_TREES.map(lambda tree: json.dumps({"resourceSpans": [tree]}).encode())


@given(st.binary() | st.text().map(str.encode) | DOCUMENTS)
def test_json_of_any_shape_raises_nothing_but_its_own_error(content: bytes) -> None:
    try:
        decoded = decode_json(content)
    except UndecodableError:
        return
    assert accepted(encode(decoded.spans))


def accepted(content: bytes) -> bool:
    try:
        ExportTraceServiceRequest.FromString(content)
    except DecodeError:
        return False
    return True


def has_ids(message: Span) -> bool:
    return (
        len(message.trace_id) == 16
        and any(message.trace_id)
        and len(message.span_id) == 8
        and any(message.span_id)
        and len(message.parent_span_id) in (0, 8)
    )


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_attributes_read_back_as_they_were_written(attributes: dict[str, AttributeValue]) -> None:
    marker = {names.LLMLAT_CONTRACT_VERSION: "0.1.0"}
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, attributes=pairs({**attributes, **marker}))
    (read,) = decode(raw_request([span.SerializeToString()])).spans

    assert read.attributes == {**attributes, **marker}
