"""What destinations answer, in every form that is allowed, and in some that are not."""

from __future__ import annotations

import json

import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from llmlat_processor.edges.answers import retry_after_s, retry_info_s, said, taken
from llmlat_processor.edges.sending import Taken

PROTOBUF, JSON = "application/x-protobuf", "application/json; charset=utf-8"


def in_protobuf(rejected: int, words: str) -> bytes:
    partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=words)
    return ExportTraceServiceResponse(partial_success=partial).SerializeToString()


def in_json(**partial: object) -> bytes:
    return json.dumps({"partialSuccess": partial}).encode()


METRICS = ExportMetricsServiceResponse(
    partial_success=ExportMetricsPartialSuccess(rejected_data_points=2, error_message="too old")
).SerializeToString()

SUCCESSES = {
    "OT-07: nothing": (b"", PROTOBUF, Taken()),
    "OT-07: an empty partial success": (in_protobuf(0, ""), PROTOBUF, Taken()),
    "OT-07: some rejected": (in_protobuf(3, "too old"), PROTOBUF, Taken(3, "too old")),
    "OT-07: only words": (in_protobuf(0, "old port"), PROTOBUF, Taken(0, "old port")),
    "OT-07: fewer than none": (in_protobuf(-1, ""), PROTOBUF, Taken()),
    "OT-07: garbage": (b"\xff\xff", PROTOBUF, Taken()),
    "OT-07: a page": (b"<html>", "text/html", Taken()),
    "OT-07: words over lines": (in_protobuf(0, "a\n\x1b[1mb"), PROTOBUF, Taken(0, "a  [1mb")),
    "OT-07: data points": (METRICS, PROTOBUF, Taken(2, "too old")),
    "OT-07: JSON of nothing": (b"{}", JSON, Taken()),
    "OT-07: JSON of an empty one": (in_json(), JSON, Taken()),
    "OT-07: JSON of none": (b'{"partialSuccess":null}', JSON, Taken()),
    "OT-07: JSON of a text": (in_json(rejectedSpans="3", errorMessage="a"), JSON, Taken(3, "a")),
    "OT-07: JSON of a number": (in_json(rejectedSpans=3), JSON, Taken(3)),
    "OT-07: JSON of points": (in_json(rejectedDataPoints="2"), JSON, Taken(2)),
    "OT-07: JSON of fewer": (in_json(rejectedSpans=-3), JSON, Taken()),
    "OT-07: JSON of a list": (b"[]", JSON, Taken()),
    "OT-07: JSON of another type": (in_json(rejectedSpans=[]), JSON, Taken()),
    "OT-07: JSON of no number": (in_json(rejectedSpans="all"), JSON, Taken()),
    "OT-07: JSON that is none": (b"{", JSON, Taken()),
    "OT-07: JSON in too many brackets": (b"[" * 100_000, JSON, Taken()),
    "OT-07: JSON in no encoding": (b"\xff", JSON, Taken()),
}


@pytest.mark.parametrize(("answer", "kind", "read"), SUCCESSES.values(), ids=SUCCESSES)
def test_a_success_is_one_whatever_it_says(answer: bytes, kind: str, read: Taken) -> None:
    assert taken(answer, kind) == read


STATUS = Status(code=3, message="no such field")
ERRORS = {
    "Protobuf": (STATUS.SerializeToString(), PROTOBUF, "no such field"),
    "JSON": (b'{"code":3,"message":"no such field"}', JSON, "no such field"),
    "text": (b"no such field\n", "text/plain", "no such field"),
    "a page": (b"<html>no such page", "text/html", ""),
    "no JSON": (b"{", JSON, ""),
    "other JSON": (b'["no"]', JSON, ""),
    "no Protobuf": (b"\xff", PROTOBUF, ""),
    "no text": (b"\xff", "text/plain", ""),
    "nothing": (b"", "", ""),
}


@pytest.mark.parametrize(("answer", "kind", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_told_in_its_own_words(answer: bytes, kind: str, words: str) -> None:
    assert said(answer, kind) == words


NOW_S = 1_790_000_000.5
PAUSES = {
    "seconds": ("7", 7),
    "spaces": (" 7 ", 7),
    "none": ("0", 0),
    "a date": ("Mon, 21 Sep 2026 14:13:30 GMT", 9.5),
    "a date without a zone": ("Mon, 21 Sep 2026 14:13:30 -0000", 9.5),
    "a date that has gone": ("Mon, 21 Sep 2020 14:13:30 GMT", 0),
    "nothing": ("", 0),
    "less than nothing": ("-7", 0),
    "words": ("soon", 0),
    "other digits": ("\u0667", 0),
    "no date": ("Mon, 99 Sep 2026 14:13:30 GMT", 0),
}


@pytest.mark.parametrize(("header", "pause_s"), PAUSES.values(), ids=PAUSES)
def test_a_pause_is_asked_for_over_http_in_seconds_or_by_a_date(
    header: str, pause_s: float
) -> None:
    assert retry_after_s(header, NOW_S) == pause_s


def details(*messages: object) -> tuple[str, bytes]:
    status = Status(code=14)
    for message in messages:
        status.details.add().Pack(message)
    return "grpc-status-details-bin", status.SerializeToString()


INFO = RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000))
TRAILERS = {
    "in the details": ([details(INFO)], 2.5),
    "among others": ([("x", "y"), details(BadRequest(), INFO)], 2.5),
    "in a trailer of its own": ([("google.rpc.retryinfo-bin", INFO.SerializeToString())], 2.5),
    "of no time": ([details(RetryInfo())], 0),
    "of less than no time": ([details(RetryInfo(retry_delay=Duration(seconds=-2)))], 0),
    "not": ([details(BadRequest())], None),
    "garbled": (
        [("grpc-status-details-bin", b"\xff"), ("google.rpc.retryinfo-bin", b"\xff")],
        None,
    ),
    "garbled at first": ([("grpc-status-details-bin", b"\xff"), details(INFO)], 2.5),
}


@pytest.mark.parametrize(("trailers", "pause_s"), TRAILERS.values(), ids=TRAILERS)
def test_a_pause_is_asked_for_over_grpc(
    trailers: list[tuple[str, str | bytes]], pause_s: float | None
) -> None:
    assert retry_info_s(trailers) == pause_s
