"""OTLP JSON over HTTP: read as exactly as protobuf, and answered in its own language."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc.code_pb2 import INVALID_ARGUMENT  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from tests.llmlat_processor.http_receiving import (
    BOTH,
    JSON,
    PROTOBUF,
    in_json,
    json_span,
    of,
    post,
    receiving,
    status_of,
)
from tests.llmlat_processor.otlp import START_NS, TRACE_ID, request, span
from tests.llmlat_processor.receiving import Taken


def test_a_partial_success_in_json_has_the_names_and_the_kinds_of_otlp() -> None:
    """OT-07: 64-bit integers are text in JSON."""
    with receiving(Taken()) as receiver:
        answer = post(receiver, in_json(json_span(1), json_span(2, spanId="abc")), JSON)

    partial = answer.json()["partialSuccess"]
    assert partial["rejectedSpans"] == "1"
    assert "spans[1].spanId: 'abc' is not 16 hexadecimal digits" in partial["errorMessage"]
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (in_json(json_span(traceId="AQIDBAUGBwgJCgsMDQ4PEA==")), "spans[0].traceId"),
        (b'{"resource_spans": []}', "resource_spans: OTLP JSON writes it resourceSpans"),
        (
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"trace_id": "00"}]}]}]}',
            "spans[0].trace_id: OTLP JSON writes it traceId",
        ),
        (b'{"resourceLogs": []}', "resourceLogs: these are logs"),
        (b'{"resourceMetrics": []}', "resourceMetrics: these are metrics"),
        (b"{", "not JSON"),
        (b'{"resourceSpans": "\xff"}', "not JSON"),
    ],
    ids=repr,
)
def test_ot_01_json_of_which_nothing_is_kept_is_a_bad_request(content: bytes, told: str) -> None:
    """OT-01: the answer names the field."""
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, content, JSON)

    status = status_of(answer)
    assert (answer.status_code, status.code) == (400, INVALID_ARGUMENT)
    assert told in status.message
    assert not taken.numbers


def test_ot_01_and_ot_02_ids_are_the_same_in_both_languages_and_in_any_case() -> None:
    """OT-01, OT-02."""
    upper = json_span(10, traceId=TRACE_ID.hex().upper(), spanId=f"{10:016X}")
    taken = Taken()

    with receiving(taken) as receiver:
        for kind, content in ((PROTOBUF, of(PROTOBUF, 10)), (JSON, in_json(json_span(10)))):
            post(receiver, content, kind)
        post(receiver, in_json(upper), JSON)

    ids = {(span.trace_id, span.span_id) for decoded in taken for span in decoded.spans}
    assert ids == {(TRACE_ID, (10).to_bytes(8, "big"))}
    assert len(taken) == 3


@pytest.mark.parametrize("form", [str, int])
def test_ot_04_and_ck_12_instants_are_exact_from_end_to_end(form: type) -> None:
    """OT-04, CK-12: a child that ends 200 ns after its parent does so still."""
    ends = [START_NS, START_NS + 200]
    spans = [json_span(n, endTimeUnixNano=form(end)) for n, end in enumerate(ends, 1)]
    taken = Taken()

    with receiving(taken) as receiver:
        post(receiver, in_json(*spans), JSON)

    assert [span.end_ns for span in taken[0].spans] == ends


@pytest.mark.parametrize(
    ("changes", "kind", "is_error"),
    [
        ({"kind": 3, "status": {"code": 2}}, 3, True),
        ({"kind": "SPAN_KIND_CLIENT", "status": {"code": "STATUS_CODE_ERROR"}}, 3, True),
        ({"status": {}}, 0, False),
        ({"kind": 99, "status": {"code": 99}}, 99, False),
    ],
    ids=str,
)
def test_ot_03_enums_are_numbers_and_names_are_tolerated(
    changes: dict[str, Any], kind: int, is_error: bool
) -> None:
    """OT-03."""
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, in_json(json_span(**changes)), JSON)

    (read,) = taken[0].spans
    assert (read.kind, read.is_error) == (kind, is_error)
    assert answer.json() == {}


def test_ot_05_link_ids_as_arrays_of_numbers_cost_no_span() -> None:
    """OT-05."""
    links = [{"traceId": list(TRACE_ID), "spanId": [0] * 8}]
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, in_json(json_span(links=links)), JSON)

    assert answer.status_code == 200
    assert taken.numbers == [1]


@BOTH
@pytest.mark.parametrize("flags", [0x100, 0x300, 0x301, 0])
def test_ot_08_no_span_is_dropped_for_its_flags(kind: str, flags: int) -> None:
    """OT-08: bits above the low eight say more than `sampled`, and none is unknown."""
    content = in_json(json_span(flags=flags))
    if kind == PROTOBUF:
        content = request([span(flags=flags)]).SerializeToString()
    taken = Taken()

    with receiving(taken) as receiver:
        post(receiver, content, kind)

    assert [span.flags for span in taken[0].spans] == [flags]


def test_the_answer_to_json_reads_as_the_message_it_is() -> None:
    with receiving(Taken()) as receiver:
        answer = post(receiver, in_json(json_span(1), json_span(2, spanId="")), JSON)

    message = ParseDict(answer.json(), ExportTraceServiceResponse())
    assert MessageToDict(message) == answer.json()
    assert message.partial_success.rejected_spans == 1
