"""One attempt over gRPC: what goes with it, and what its status means."""

from __future__ import annotations

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.grpc_sender import GrpcSender
from llmlat_processor.edges.sending import NotNow, Outcome, Refused, Signal, Taken, TooLarge
from llmlat_processor.settings import Compression, Destination
from tests.llmlat_processor.http_sink import http_sink
from tests.llmlat_processor.otlp import request, span
from tests.llmlat_processor.sink import WAIT_S, asking_to_wait, failing, rejecting, sink

CONTENT = request([span()]).SerializeToString()
Code = grpc.StatusCode


def sent(destination: Destination, signal: Signal = Signal.TRACES) -> Outcome:
    sender = GrpcSender(destination, signal)
    try:
        return sender.send(CONTENT, WAIT_S)
    finally:
        sender.close()


def test_headers_and_token_go_as_metadata() -> None:
    with sink() as server:
        headers = {"X-Scope-OrgID": "team"}
        outcome = sent(Destination(server.address, headers=headers, token="secret"))

    assert outcome == Taken()
    assert server.headers[0]["x-scope-orgid"] == "team"
    assert server.headers[0]["authorization"] == "Bearer secret"
    assert server.headers[0]["user-agent"].startswith("llmlat-processor")


@pytest.mark.parametrize("compression", Compression)
def test_compressed_or_not_the_same_arrives(compression: Compression) -> None:
    with sink() as server:
        assert sent(Destination(server.address, compression=compression)) == Taken()
    assert server.requests == [CONTENT]


def test_each_signal_has_its_service() -> None:
    metrics = "opentelemetry.proto.collector.metrics.v1.MetricsService"
    with sink(rejecting(0, "seen"), service=metrics) as server:
        assert sent(Destination(server.address), Signal.METRICS) == Taken(0, "seen")
        assert isinstance(sent(Destination(server.address), Signal.TRACES), Refused)


def test_what_is_over_the_limit_of_a_real_server_is_too_large() -> None:
    with sink() as server:
        sender = GrpcSender(Destination(server.address), Signal.TRACES)
        outcome = sender.send(b"\x00" * (4 << 20 | 1), WAIT_S)
        sender.close()

    assert isinstance(outcome, TooLarge)
    assert "larger than max" in outcome.words


def status(code: grpc.StatusCode, words: str = "") -> Outcome:
    with sink(failing(code, words)) as server:
        return sent(Destination(server.address))


def test_too_large_is_also_told_in_the_manner_of_rust() -> None:
    words = "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304"

    assert isinstance(status(Code.OUT_OF_RANGE, words), TooLarge)
    assert isinstance(status(Code.OUT_OF_RANGE, "past the end"), NotNow)


def test_an_overload_that_says_when_is_none_of_size() -> None:
    with sink(asking_to_wait(Code.RESOURCE_EXHAUSTED, 2.5)) as server:
        assert sent(Destination(server.address)) == NotNow("RESOURCE_EXHAUSTED, later", 2.5)


MISTAKES = {
    Code.UNAUTHENTICATED: "are the token and the headers of the destination right?",
    Code.PERMISSION_DENIED: "may this token send spans there?",
    Code.UNIMPLEMENTED: "does OTLP over gRPC arrive there?",
}


@pytest.mark.parametrize(("code", "hint"), MISTAKES.items(), ids=str)
def test_a_mistake_of_the_operator_is_told_with_what_to_do(
    code: grpc.StatusCode, hint: str
) -> None:
    outcome = status(code, "no\nway")

    assert isinstance(outcome, Refused)
    assert outcome.is_about_us
    assert outcome.words.startswith(f"{code.name}, no way; {hint}")


def test_what_is_wrong_with_the_request_is_not_about_us() -> None:
    assert status(Code.INVALID_ARGUMENT, "no") == Refused("INVALID_ARGUMENT, no")


def test_ex_07_a_port_of_http_is_recognised() -> None:
    with http_sink() as server:
        outcome = sent(Destination(server.address))

    assert isinstance(outcome, NotNow)
    assert "it speaks HTTP: set the protocol to http" in outcome.words


def test_who_hangs_up_may_want_tls() -> None:
    greeting = "failed to connect to all addresses; last error: UNAVAILABLE: ipv4: Socket closed"
    outcome = status(Code.UNAVAILABLE, greeting)

    assert isinstance(outcome, NotNow)
    assert outcome.words.endswith("does it ask for TLS, or for a certificate of ours?")
    assert status(Code.UNAVAILABLE, "Socket closed") == NotNow("UNAVAILABLE, Socket closed")


def test_once_it_is_cancelled_nothing_is_sent() -> None:
    with sink() as server:
        sender = GrpcSender(Destination(server.address), Signal.TRACES)
        sender.cancel()
        assert sender.send(CONTENT, WAIT_S) == NotNow("cancelled")
        sender.close()
    assert server.requests == []
