"""OTLP JSON: read as exactly as protobuf, and refused field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from llmlat_processor.wire import Decoded, UndecodableError, decode, decode_json, encode
from llmlat_semconv import attributes as names
from tests.llmlat_processor.otlp import CHAT, PYTHON_SERVICE, SPAN_ID, START_NS, TRACE_ID, request
from tests.llmlat_processor.otlp import span as span_message

Json = dict[str, Any]


def a_span(**changes: Any) -> Json:
    span: Json = {
        "traceId": TRACE_ID.hex(),
        "spanId": f"{1:016x}",
        "name": "chat gemma",
        "kind": 3,
        "startTimeUnixNano": str(START_NS),
        "endTimeUnixNano": str(START_NS + 1_000_000_000),
        "attributes": [
            {"key": names.GEN_AI_OPERATION_NAME, "value": {"stringValue": "chat"}},
            {"key": names.GEN_AI_USAGE_INPUT_TOKENS, "value": {"intValue": "12"}},
        ],
        **changes,
    }
    return {key: value for key, value in span.items() if value is not ...}


def document(*spans: Any) -> Json:
    attributes = [{"key": k, "value": {"stringValue": v}} for k, v in PYTHON_SERVICE.items()]
    scope_spans = {"scope": {"name": "adviser.app"}, "spans": list(spans)}
    resource_spans = {"resource": {"attributes": attributes}, "scopeSpans": [scope_spans]}
    return {"resourceSpans": [resource_spans]}


def read(*spans: Any) -> Decoded:
    return decode_json(json.dumps(document(*spans)).encode())


def test_ot_02_a_span_is_the_same_in_json_and_in_protobuf() -> None:
    """OT-02: a generic parser takes hexadecimal ids for base64."""
    content = request([span_message(1)]).SerializeToString()

    decoded = read(a_span())

    assert not decoded.damaged
    assert encode(decoded.spans) == content
    (from_json,), (from_protobuf,) = decoded.spans, decode(content).spans
    assert from_json.attributes == from_protobuf.attributes == CHAT
    assert from_json.resource is from_protobuf.resource


@pytest.mark.parametrize("form", [str, int], ids=["text", "number"])
def test_ot_04_and_ck_12_instants_above_2_to_the_53_are_exact(form: type) -> None:
    """OT-04, CK-12: nanoseconds since 1970 do not fit into a double."""
    start_ns, end_ns = START_NS, START_NS + 200

    (span,) = read(a_span(startTimeUnixNano=form(start_ns), endTimeUnixNano=form(end_ns))).spans

    assert (span.start_ns, span.end_ns) == (start_ns, end_ns)


VALUES = [
    ({"intValue": "9007199254740993"}, 2**53 + 1),
    ({"intValue": 9007199254740993}, 2**53 + 1),
    ({"intValue": "-3"}, -3),
    ({"intValue": 3.0}, 3),
    ({"doubleValue": 3}, 3.0),
    ({"doubleValue": "Infinity"}, float("inf")),
    ({"boolValue": False}, False),
    ({"bytesValue": "AP8="}, b"\x00\xff"),
    ({"bytesValue": "AP8"}, b"\x00\xff"),
    ({"bytesValue": "_-8="}, b"\xff\xef"),
    ({"arrayValue": {"values": [{"stringValue": "a"}, {}]}}, ("a", None)),
    ({"arrayValue": {}}, ()),
    ({"kvlistValue": {"values": [{"key": "k", "value": {"intValue": 1}}]}}, (("k", 1),)),
    ({}, None),
    (None, None),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=str)
def test_values_are_read_with_their_type(value: Json, expected: object) -> None:
    key = names.GEN_AI_RESPONSE_ID

    (span,) = read(a_span(attributes=[{"key": key, "value": value}])).spans

    assert span.attributes[key] == expected
    assert type(span.attributes[key]) is type(expected)


@pytest.mark.parametrize("kind", [3, "3", "SPAN_KIND_CLIENT", "CLIENT"])
def test_ot_03_kinds_are_numbers_and_names_are_tolerated(kind: int | str) -> None:
    """OT-03."""
    assert [span.kind for span in read(a_span(kind=kind)).spans] == [Span.SPAN_KIND_CLIENT]


@pytest.mark.parametrize("kind", [None, ...])
def test_a_missing_kind_is_unset(kind: object) -> None:
    assert [span.kind for span in read(a_span(kind=kind)).spans] == [0]


@pytest.mark.parametrize(
    ("code", "is_error"),
    [(2, True), ("STATUS_CODE_ERROR", True), (1, False), (..., False), (99, False)],
)
def test_ot_03_status_codes_are_read_and_unknown_ones_kept(code: object, is_error: bool) -> None:
    """OT-03."""
    status = {} if code is ... else {"code": code}

    (span,) = read(a_span(status=status)).spans

    assert span.is_error == is_error
    kept = Span.FromString(span.raw).status.code
    assert kept == {2: 2, "STATUS_CODE_ERROR": 2, 1: Status.STATUS_CODE_OK, 99: 99}.get(code, 0)


def test_ids_are_hexadecimal_in_any_case() -> None:
    (span,) = read(a_span(traceId=TRACE_ID.hex().upper(), parentSpanId=SPAN_ID.hex())).spans

    assert (span.trace_id, span.parent_id) == (TRACE_ID, SPAN_ID)


REFUSED = [
    ({"traceId": "AAECAwQFBgcICQoLDA0ODw=="}, "traceId", "not 32 hexadecimal digits"),
    ({"traceId": 12}, "traceId", "not 32 hexadecimal digits"),
    ({"spanId": "abc"}, "spanId", "not 16 hexadecimal digits"),
    ({"span_id": "abc"}, "span_id", "OTLP JSON writes it spanId"),
    ({"startTimeUnixNano": 1.79e18}, "startTimeUnixNano", "not an exact integer"),
    ({"startTimeUnixNano": "soon"}, "startTimeUnixNano", "'soon' is not an integer"),
    ({"startTimeUnixNano": -1}, "startTimeUnixNano", "-1 is not between 0 and"),
    ({"startTimeUnixNano": "1_790"}, "startTimeUnixNano", "'1_790' is not an integer"),
    ({"startTimeUnixNano": " 1"}, "startTimeUnixNano", "' 1' is not an integer"),
    ({"startTimeUnixNano": "9" * 5_000}, "startTimeUnixNano", "is not an integer"),
    ({"startTimeUnixNano": 2**64}, "startTimeUnixNano", "not an exact integer"),
    ({"spanId": "00 00000000000001"}, "spanId", "not 16 hexadecimal digits"),
    ({"endTimeUnixNano": True}, "endTimeUnixNano", "not an exact integer"),
    ({"name": 5}, "name", "is a number, not text"),
    ({"kind": "KLIENT"}, "kind", "'KLIENT' is none of SPAN_KIND_UNSPECIFIED"),
    ({"attributes": {}}, "attributes", "is an object, not an array"),
    ({"attributes": [5]}, "attributes[0]", "is a number, not an object"),
    (
        {"attributes": [{}, {"key": "k", "value": {"intValue": "x"}}]},
        "attributes[1].value.intValue",
        "'x' is not an integer",
    ),
    (
        {"attributes": [{"key": "k", "value": {"string_value": "x"}}]},
        "attributes[0].value.string_value",
        "OTLP JSON writes it stringValue",
    ),
    (
        {"attributes": [{"key": "k", "value": {"boolValue": "true"}}]},
        "attributes[0].value.boolValue",
        "is text, not true or false",
    ),
    (
        {"attributes": [{"key": "k", "value": {"doubleValue": "fast"}}]},
        "attributes[0].value.doubleValue",
        "'fast' is not a number",
    ),
    (
        {"attributes": [{"key": "k", "value": {"doubleValue": []}}]},
        "attributes[0].value.doubleValue",
        "is an array, not a number",
    ),
    (
        {"attributes": [{"key": "k", "value": {"bytesValue": "?"}}]},
        "attributes[0].value.bytesValue",
        "is not base64",
    ),
    ({"events": [{"timeUnixNano": []}]}, "events[0].timeUnixNano", "not an exact integer"),
    ({"links": 7}, "links", "is a number, not an array"),
]


@pytest.mark.parametrize(("changes", "field", "reason"), REFUSED, ids=str)
def test_ot_01_a_span_with_a_field_that_cannot_be_read_is_set_aside(
    changes: Json, field: str, reason: str
) -> None:
    """OT-01: the answer names the field."""
    decoded = read(a_span(), a_span(**changes), a_span(spanId=f"{3:016x}"))

    assert [span.span_id[-1] for span in decoded.spans] == [1, 3]
    (damaged,) = decoded.damaged
    where = "resourceSpans[0].scopeSpans[0].spans[1]"
    assert damaged.where == f"{where}.{field}"
    assert reason in damaged.reason


def test_ids_that_are_missing_are_said_so() -> None:
    (damaged,) = read(a_span(traceId=...)).damaged

    assert str(damaged).endswith("spans[0]: trace_id has 0 bytes instead of 16")


def test_ot_05_link_ids_as_arrays_of_numbers_are_repaired_and_others_set_aside() -> None:
    """OT-05: the span itself is kept."""
    links = [
        {"traceId": list(TRACE_ID), "spanId": SPAN_ID.hex()},
        {"traceId": "nonsense", "spanId": SPAN_ID.hex()},
    ]

    decoded = read(a_span(links=links))

    (span,), (damaged,) = decoded.spans, decoded.damaged
    assert [(link.trace_id, link.span_id) for link in span.links] == [(TRACE_ID, SPAN_ID)]
    assert damaged.where.endswith("spans[0].links[1].traceId")
    assert decoded.refused == 0


def test_unknown_fields_are_passed_over() -> None:
    changes = {"zebra": 1, "my_field": {"a": []}}

    assert len(read(a_span(**changes)).spans) == 1


def test_what_is_nested_too_deep_costs_only_its_span() -> None:
    for depth in (60, 300):
        value: Json = {"intValue": 1}
        for _ in range(depth):
            value = {"arrayValue": {"values": [value]}}

        decoded = read(a_span(), a_span(attributes=[{"key": "k", "value": value}]))

        assert len(decoded.spans) == decoded.refused == 1


@pytest.mark.parametrize(
    ("node", "where", "lost"),
    [
        ({"resource": 5, "scopeSpans": [{"spans": [{}, {}]}]}, "resourceSpans[0].resource", 2),
        ({"scope_spans": []}, "resourceSpans[0].scope_spans", 0),
        ({"scopeSpans": 5}, "resourceSpans[0].scopeSpans", 0),
        (5, "resourceSpans[0]", 0),
        ({"scopeSpans": [5]}, "resourceSpans[0].scopeSpans[0]", 0),
        ({"scopeSpans": [{"spans": 5}]}, "scopeSpans[0].spans", 0),
        ({"scopeSpans": [{"scope": {"name": 5}, "spans": [{}]}]}, ".scope.name", 1),
    ],
    ids=str,
)
def test_a_damaged_envelope_costs_only_what_is_in_it(node: Any, where: str, lost: int) -> None:
    content = {"resourceSpans": [node, *document(a_span())["resourceSpans"]]}

    decoded = decode_json(json.dumps(content).encode())

    assert len(decoded.spans) == 1
    (damaged,) = decoded.damaged
    assert damaged.where.endswith(where)
    assert damaged.spans == lost


def test_an_array_of_exports_is_read_in_order() -> None:
    content = json.dumps([document(a_span()), document(a_span(spanId=f"{2:016x}"))])

    assert [span.span_id[-1] for span in decode_json(content.encode()).spans] == [1, 2]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON: .* at column 2"),
        ('{\n"a": }', "not JSON: .* at line 2, column 6"),
        ("5", "resourceSpans: missing"),
        ("{}", "resourceSpans: missing"),
        ('{"resourceSpans": {}}', "resourceSpans: missing, or not an array"),
        ('{"resource_spans": []}', "resource_spans: OTLP JSON writes it resourceSpans"),
        ('{"resourceLogs": []}', "resourceLogs: these are logs"),
        ('[{"resourceMetrics": []}]', r"\[0\]\.resourceMetrics: these are metrics"),
    ],
)
def test_what_is_no_export_is_refused_whole(content: str, reason: str) -> None:
    with pytest.raises(UndecodableError, match=reason):
        decode_json(content.encode())
