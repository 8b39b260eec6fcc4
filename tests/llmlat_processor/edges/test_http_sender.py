"""One attempt over HTTP: what goes with it, and what its status means."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from threading import Event, Thread
from typing import Any

import pytest

from llmlat_processor.edges import http_sender
from llmlat_processor.edges.http_sender import MOST_ANSWER_BYTES, HttpSender
from llmlat_processor.edges.sending import NotNow, Outcome, Refused, Signal, Taken, TooLarge
from llmlat_processor.settings import Compression, Destination, Protocol
from tests.llmlat_processor.http_sink import Reply, http_sink
from tests.llmlat_processor.otlp import request, span
from tests.llmlat_processor.sink import WAIT_S, sink

CONTENT = request([span()]).SerializeToString()


@contextmanager
def sending(endpoint: str, signal: Signal = Signal.TRACES, **how: Any) -> Iterator[HttpSender]:
    sender = HttpSender(Destination(endpoint, Protocol.HTTP, **how), signal)
    try:
        yield sender
    finally:
        sender.close()


def sent(endpoint: str, signal: Signal = Signal.TRACES, **how: Any) -> Outcome:
    with sending(endpoint, signal, **how) as sender:
        return sender.send(CONTENT, WAIT_S)


def answer_to(*replies: Reply) -> Outcome:
    with http_sink(*replies) as server:
        return sent(server.url)


def test_headers_and_token_go_with_protobuf() -> None:
    with http_sink() as server:
        outcome = sent(server.url, headers={"X-Scope-OrgID": "team"}, token="secret")

    assert outcome == Taken()
    assert server.requests == [CONTENT]
    assert (
        server.headers[0].items()
        >= {
            "x-scope-orgid": "team",
            "authorization": "Bearer secret",
            "content-type": "application/x-protobuf",
            "user-agent": "llmlat-processor",
        }.items()
    )


@pytest.mark.parametrize("compression", Compression)
def test_compressed_or_not_the_same_arrives(compression: Compression) -> None:
    with http_sink() as server:
        assert sent(server.url, compression=compression) == Taken()

    assert server.requests == [CONTENT]
    is_compressed = server.headers[0].get("content-encoding") == "gzip"
    assert is_compressed == (compression is Compression.GZIP)


PATHS = {
    "": "/v1/traces",
    "/": "/v1/traces",
    "/otlp": "/otlp/v1/traces",
    "/otlp/": "/otlp/v1/traces",
    "/v1/traces": "/v1/traces",
    "/otlp/v1/traces/": "/otlp/v1/traces",
    "/v1/metrics": "/v1/metrics/v1/traces",
}


@pytest.mark.parametrize(("given", "path"), PATHS.items(), ids=lambda each: each or "none")
def test_the_path_of_the_signal_is_added_unless_it_is_there(given: str, path: str) -> None:
    with http_sink() as server, sending(f"{server.url}{given}") as sender:
        sender.send(CONTENT, WAIT_S)
        assert sender.destination == f"{server.url}{path}"
    assert server.paths == [path]


def test_each_signal_has_its_path() -> None:
    with http_sink() as server:
        sent(server.address, Signal.METRICS)
    assert server.paths == ["/v1/metrics"]


def test_one_connection_is_kept() -> None:
    with http_sink(Reply(503), Reply(400)) as server, sending(server.url) as sender:
        for _ in range(5):
            sender.send(CONTENT, WAIT_S)
    assert (len(server.requests), server.connections) == (5, 1)


RETRYABLE = [429, 502, 503, 504]
ANY_SIZE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
FOR_GOOD = [code for code in HTTPStatus if code >= 300 and code not in {*RETRYABLE, ANY_SIZE, 304}]


@pytest.mark.parametrize("code", RETRYABLE)
def test_what_may_pass_may_be_sent_again(code: int) -> None:
    words = f"HTTP {code} {HTTPStatus(code).phrase}"

    assert answer_to(Reply(code)) == NotNow(words)
    assert answer_to(Reply(code, headers={"Retry-After": "7"})) == NotNow(words, 7)


@pytest.mark.parametrize("code", FOR_GOOD)
def test_what_does_not_pass_is_refused(code: int) -> None:
    assert isinstance(answer_to(Reply(code)), Refused)


def test_a_status_that_nobody_knows_is_refused() -> None:
    assert answer_to(Reply(499)) == Refused("HTTP 499")


def test_a_pause_may_be_asked_for_by_a_date() -> None:
    tomorrow = formatdate(4_000_000_000, usegmt=True)

    outcome = answer_to(Reply(503, headers={"Retry-After": tomorrow}))

    assert isinstance(outcome, NotNow)
    assert outcome.after_s > 86_400


def test_too_large_is_told_by_a_status() -> None:
    assert isinstance(answer_to(Reply(413)), TooLarge)


MISTAKES = {
    401: "are the token and the headers of the destination right?",
    403: "may this token send spans there?",
    404: "is the path right, and the port that of OTLP over HTTP, mostly 4318?",
    405: "does OTLP over HTTP arrive there",
    415: "does it take OTLP as Protobuf",
}


@pytest.mark.parametrize(("code", "hint"), MISTAKES.items())
def test_ex_07_a_mistake_of_the_operator_is_told_with_what_to_do(code: int, hint: str) -> None:
    outcome = answer_to(Reply(code, b"no\nway", {"content-type": "text/plain"}))

    assert isinstance(outcome, Refused)
    assert outcome.is_about_us
    assert outcome.words.startswith(f"HTTP {code} no way; {hint}")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_spans_are_not_taken_elsewhere_without_being_asked(code: int) -> None:
    with http_sink() as other:
        moved = Reply(code, headers={"location": f"{other.url}/new"})
        outcome = answer_to(moved)

    assert isinstance(outcome, Refused)
    assert f"it sends us to {other.url}/new; is that the endpoint?" in outcome.words
    assert other.requests == []


JSON = {"content-type": "application/json"}
BODIES = {
    "OT-07: rejected, in JSON": (Reply(200, b'{"partialSuccess":{"rejectedSpans":"3"}}', JSON), 3),
    "OT-07: a page": (Reply(200, b"<html>", {"content-type": "text/html"}), 0),
    "OT-07: no gzip, though it says so": (Reply(200, b"text", {"content-encoding": "gzip"}), 0),
    "OT-07: accepted": (Reply(202), 0),
    "OT-07: without end": (Reply(200, b"\x00" * (MOST_ANSWER_BYTES + (1 << 20))), 0),
}


@pytest.mark.parametrize(("reply", "rejected"), BODIES.values(), ids=BODIES)
def test_a_success_is_one_whatever_it_says(reply: Reply, rejected: int) -> None:
    with http_sink(reply) as server, sending(server.url) as sender:
        assert sender.send(CONTENT, WAIT_S) == Taken(rejected)
        assert sender.send(CONTENT, WAIT_S) == Taken()


# ── The network ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def raw_server(answer: bytes, go_on: Event | None = None) -> Iterator[str]:
    """Answers the first request with these bytes, and then waits, or hangs up."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(answer)
            if go_on is not None:
                go_on.wait(WAIT_S)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        if go_on is not None:
            go_on.set()
        thread.join()
        listening.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


@pytest.mark.parametrize("answer", [OK, OK + b"{"], ids=["no body", "half of a body"])
def test_ot_07_a_body_that_breaks_off_is_a_success(answer: bytes) -> None:
    with raw_server(answer) as address:
        assert sent(address) == Taken()


def test_a_body_that_does_not_come_is_not_waited_for_longer_than_for_the_answer() -> None:
    with raw_server(OK, Event()) as address, sending(address) as sender:
        assert sender.send(CONTENT, 0.2) == Taken()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2"], ids=["nothing", "a broken line"])
def test_an_answer_that_breaks_off_is_none(answer: bytes) -> None:
    with raw_server(answer) as address:
        assert isinstance(sent(address), NotNow)


def test_who_does_not_answer_is_not_waited_for() -> None:
    with raw_server(b"", Event()) as address, sending(address) as sender:
        outcome = sender.send(CONTENT, 0.1)

    assert isinstance(outcome, NotNow)
    assert "timed out" in outcome.words


def test_ex_07_a_port_of_grpc_is_recognised() -> None:
    with sink() as server:
        outcome = sent(server.address)

    assert isinstance(outcome, NotNow)
    assert "is that its port of gRPC? set the protocol to grpc" in outcome.words


def test_ex_07_who_hangs_up_on_a_port_that_is_mostly_of_grpc_is_suspected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with raw_server(b"") as address:
        monkeypatch.setattr(http_sender, "GRPC_PORT", int(address.rpartition(":")[2]))
        outcome = sent(address)

    assert isinstance(outcome, NotNow)
    assert "is that its port of gRPC?" in outcome.words


def test_a_port_without_tls_is_recognised() -> None:
    with http_sink() as server:
        outcome = sent(f"https://{server.address}")

    assert outcome == NotNow("no answer in TLS; is it http:// in place of https://?")


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_where_nobody_is_it_can_be_tried_again() -> None:
    with sending(free_address()) as sender:
        outcome = sender.send(CONTENT, WAIT_S)
        assert not sender.is_reachable(WAIT_S)

    assert isinstance(outcome, NotNow)
    assert outcome.words.startswith("Failed to establish a new connection")


def test_who_answers_is_reachable_whatever_the_answer() -> None:
    with http_sink() as server, sending(server.url) as sender:
        assert sender.is_reachable(WAIT_S)
    assert server.requests == []


def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://{free_address()}")
    monkeypatch.delenv("no_proxy", raising=False)
    with http_sink() as server:
        assert sent(server.url) == Taken()


def test_a_proxy_stands_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_sink() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy.address}")
        monkeypatch.delenv("no_proxy", raising=False)
        outcome = sent("http://tempo.example:4318", compression=Compression.NONE)
        monkeypatch.setenv("no_proxy", "tempo.example")
        with sending("http://tempo.example:1") as sender:
            assert not sender.is_reachable(0.1)

    assert outcome == Taken()
    assert proxy.paths == ["http://tempo.example:4318/v1/traces"]
    assert proxy.headers[0]["proxy-authorization"].startswith("Basic ")


def test_an_attempt_in_flight_can_be_ended() -> None:
    came, go_on = Event(), Event()

    def answer() -> Reply:
        came.set()
        assert go_on.wait(WAIT_S)
        return Reply()

    with http_sink(answer) as server, sending(server.url) as sender:
        outcomes: list[Outcome] = []
        thread = Thread(target=lambda: outcomes.append(sender.send(CONTENT, 1_000)))
        thread.start()
        assert came.wait(WAIT_S)
        sender.cancel()
        thread.join(WAIT_S)
        go_on.set()
        assert outcomes == [NotNow("cancelled")]
        assert sender.send(CONTENT, WAIT_S) == NotNow("cancelled")
        assert not sender.is_reachable(WAIT_S)  # it connects, and hangs up
    assert len(server.requests) == 1
