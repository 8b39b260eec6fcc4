"""OTLP over HTTP on loopback, as an exporter sees it."""

from __future__ import annotations

import gzip
import zlib
from threading import Event
from typing import Any

import httpx
import pytest
from google.rpc.code_pb2 import UNAVAILABLE  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from llmlat_processor.edges.receiver import (
    POSTPONED,
    REFUSED,
    UNDECODABLE,
    UNFINISHED,
)
from llmlat_processor.settings import Listener
from tests.llmlat_processor.http_receiving import (
    BOTH,
    JSON,
    ONE,
    PROTOBUF,
    TRACES,
    of,
    post,
    receiving,
    status_of,
)
from tests.llmlat_processor.otlp import raw_request, request, span
from tests.llmlat_processor.receiving import MIB, Taken, connected, rest


@pytest.mark.parametrize(("kind", "empty"), [(PROTOBUF, b""), (JSON, b"{}")])
def test_spans_are_taken_and_success_is_an_empty_answer(kind: str, empty: bytes) -> None:
    """OT-07: what is empty is success, in the language of who asks."""
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, of(kind, 1, 2), f"{kind}; charset=utf-8")

    assert taken.numbers == [1, 2]
    assert (answer.status_code, answer.content) == (200, empty)
    assert answer.headers["content-type"] == kind


def test_what_came_in_protobuf_can_be_kept_as_it_is() -> None:
    taken = Taken()

    with receiving(taken) as receiver:
        post(receiver, ONE)
        post(receiver, of(JSON, 1), JSON)

    assert [decoded.request for decoded in taken] == [ONE, b""]


@BOTH
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress)],
)
def test_compressed_requests_are_read(kind: str, encoding: str, pack: Any) -> None:
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, pack(of(kind, 1)), kind, content_encoding=encoding)

    assert answer.status_code == 200
    assert taken.numbers == [1]


def test_damaged_spans_are_a_partial_success_with_one_clear_message() -> None:
    """OT-07: what is refused is counted for the sender."""
    content = request([span(1), span(2, trace_id=b"short")]).SerializeToString()
    expected = ExportTracePartialSuccess(
        rejected_spans=1,
        error_message="1 of 2 spans refused; first resource_spans[0].scope_spans[0].spans[1]: "
        "trace_id has 5 bytes instead of 16",
    )

    with receiving(Taken()) as receiver:
        answer = post(receiver, content)
        counts = receiver.counts

    assert ExportTraceServiceResponse.FromString(answer.content).partial_success == expected
    assert counts == {REFUSED: 1}


def test_text_that_is_not_utf_8_costs_only_its_span() -> None:
    broken = span(2, name="chat?").SerializeToString().replace(b"chat?", b"chat\xff")
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, raw_request([span(1).SerializeToString(), broken]))

    assert taken.numbers == [1]
    assert ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans == 1


def test_other_signals_sent_as_traces_get_a_hint() -> None:
    with receiving(Taken()) as receiver:
        answer = post(receiver, request([span(trace_id=b"")]).SerializeToString())

    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert "if these are logs or metrics, send them to their own service" in partial.error_message


def test_a_batch_that_comes_twice_is_taken_twice() -> None:
    taken = Taken()

    with receiving(taken) as receiver:
        answers = [post(receiver, ONE).content for _ in range(2)]

    assert taken.numbers == [1, 1]
    assert answers == [b"", b""]


@pytest.mark.parametrize(
    ("content", "encoding", "told"),
    [
        (b"nonsense", "identity", "not an export of spans in protobuf"),
        (b"nonsense", "gzip", "broken gzip"),
        (gzip.compress(ONE)[:-9], "gzip", "breaks off"),
    ],
    ids=str,
)
def test_undecodable_bytes_are_a_bad_request(content: bytes, encoding: str, told: str) -> None:
    with receiving(Taken()) as receiver:
        answer = post(receiver, content, content_encoding=encoding)
        counts = receiver.counts

    assert answer.status_code == 400
    assert told in status_of(answer).message
    assert counts == {UNDECODABLE: 1}


@BOTH
def test_an_exporter_is_asked_to_come_again_in_the_words_of_who_takes_no_more(kind: str) -> None:
    with receiving(lambda _: "the disk is full") as receiver:
        answer = post(receiver, of(kind, 1), kind)
        counts = receiver.counts

    status, retry = status_of(answer), RetryInfo()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (status.code, status.message) == (UNAVAILABLE, "the disk is full")
    assert status.details[0].Unpack(retry)
    assert retry.retry_delay.seconds == 1
    assert counts == {POSTPONED: 1}


@BOTH
@pytest.mark.parametrize("signal", ["logs", "metrics"])
def test_other_signals_are_thanked_for_and_dropped(kind: str, signal: str) -> None:
    with receiving(Taken()) as receiver:
        answer = post(receiver, bytes(MIB), kind, f"/v1/{signal}")
        counts = receiver.counts

    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert counts == {signal: 1}


@pytest.mark.parametrize(
    ("method", "path", "kind", "encoding", "status", "told"),
    [
        ("GET", TRACES, PROTOBUF, "", 405, "POST spans to /v1/traces"),
        ("PUT", TRACES, PROTOBUF, "", 405, "POST spans to /v1/traces"),
        ("GET", "/", "", "", 404, "POST spans to /v1/traces"),
        ("POST", "/v1/trace", JSON, "", 404, "POST spans to /v1/traces"),
        ("POST", "/api/traces", PROTOBUF, "", 404, "POST spans to /v1/traces"),
        ("POST", TRACES, "text/plain", "", 415, "application/x-protobuf or application/json"),
        ("POST", TRACES, "", "", 415, "application/x-protobuf or application/json"),
        ("POST", TRACES, JSON, "zstd", 415, "send gzip"),
    ],
)
def test_who_is_misled_is_told_what_to_do(
    method: str, path: str, kind: str, encoding: str, status: int, told: str
) -> None:
    headers = {"content-type": kind, "content-encoding": encoding}

    with receiving(Taken()) as receiver:
        url = f"http://{receiver.address}{path}"
        answer = httpx.request(
            method, url, headers={name: value for name, value in headers.items() if value}
        )

    assert answer.status_code == status
    assert told in answer.text
    assert ("allow" in answer.headers) == (status == 405)


def test_a_slash_at_the_end_misleads_nobody() -> None:
    with receiving(Taken()) as receiver:
        assert post(receiver, ONE, path=f"{TRACES}/").status_code == 200


def test_health_is_told_to_everybody() -> None:
    why = [""]

    with receiving(
        Taken(), Listener("127.0.0.1:0", token="secret"), ready=lambda: why[0]
    ) as receiver:
        base = f"http://{receiver.address}"
        answers = [httpx.get(f"{base}/healthz"), httpx.get(f"{base}/readyz")]
        why[0] = "the disk is full"
        answers += [httpx.get(f"{base}/healthz"), httpx.get(f"{base}/readyz")]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 503]
    assert "the disk is full" in answers[-1].text


def test_who_leaves_before_the_end_is_counted() -> None:
    head = f"POST {TRACES} HTTP/1.1\r\ncontent-type: {PROTOBUF}\r\ncontent-length: 9\r\n\r\n1"

    with receiving(Taken()) as receiver:
        with connected(receiver.address) as connection:
            connection.sendall(head.encode())
        post(receiver, ONE)
        receiver.stop()

        assert receiver.counts == {UNFINISHED: 1}


def test_what_is_being_taken_at_the_stop_is_answered() -> None:
    entered, leave = Event(), Event()

    def take(_: object) -> str:
        entered.set()
        leave.wait(10)
        return ""

    head = f"POST {TRACES} HTTP/1.1\r\ncontent-type: {PROTOBUF}\r\ncontent-length: {len(ONE)}\r\n"
    with receiving(take) as receiver, connected(receiver.address) as connection:
        connection.sendall(f"{head}\r\n".encode() + ONE)
        assert entered.wait(10)
        leave.set()
        receiver.stop()
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer
