"""What clients can make an HTTP server wait for, and what it does about it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from threading import Event

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmlat_processor.edges.http_protocol import Bounds
from llmlat_processor.edges.http_server import Answer, Asked, HttpServer
from llmlat_processor.settings import Listener
from tests.llmlat_processor.receiving import (
    certificates,
    connected,
    idle_connections,
    many_files,
    rest,
)

LOOPBACK = Listener("127.0.0.1:0")
GET = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n"


def post(body: bytes, *headers: str) -> bytes:
    lines = ("POST /b HTTP/1.1", f"content-length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


ENTERED, LEAVE = Event(), Event()


async def echo(asked: Asked) -> Answer:
    """Answers with what it was asked; `/refuse` before the body has come, `/busy` when told to."""
    body = b""
    if asked.path == "/busy":
        ENTERED.set()
        await asyncio.to_thread(LEAVE.wait, 10)
    while not asked.is_whole and asked.path != "/refuse":
        body += await asked.read()
    return Answer(HTTPStatus.OK, f"{asked.method} {asked.path} ".encode() + body)


@contextmanager
def serving(bounds: Bounds | None = None, listener: Listener = LOOPBACK) -> Iterator[HttpServer]:
    server = HttpServer(listener, echo, bounds or Bounds())
    try:
        yield server
    finally:
        server.stop()


def is_served(server: HttpServer) -> bool:
    return httpx.get(f"http://{server.address}/a", timeout=10).text == "GET /a "


def answered(connection: socket.socket, ending: bytes) -> bytes:
    """All that has come until something ends with this."""
    came = b""
    while not came.endswith(ending):
        piece = connection.recv(1 << 16)
        assert piece, came
        came += piece
    return came


def test_a_connection_is_kept_for_the_next_request() -> None:
    with serving() as server, connected(server.address) as connection:
        for number in range(3):
            connection.sendall(post(b"%d" % number))

            assert answered(connection, b"POST /b %d" % number)


def test_a_kept_connection_ends_when_nothing_more_comes() -> None:
    with serving(Bounds(keep_alive_s=0)) as server, connected(server.address) as connection:
        connection.sendall(GET)

        assert rest(connection).endswith(b"GET /a ")


def test_requests_in_a_row_are_answered_in_a_row() -> None:
    with serving() as server, connected(server.address) as connection:
        connection.sendall(GET + post(b"1") + post(b"2") + GET.replace(b"/a", b"/c"))

        came = answered(connection, b"GET /c ").split(b"HTTP/1.1 200 OK\r\n")
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in came if answer]
    assert bodies == [b"GET /a ", b"POST /b 1", b"POST /b 2", b"GET /c "]


def test_who_says_that_this_was_all_gets_an_answer_still() -> None:
    with serving() as server, connected(server.address) as connection:
        connection.sendall(post(b"1"))
        connection.shutdown(socket.SHUT_WR)

        assert rest(connection).endswith(b"POST /b 1")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"GET /a HTTP/1.1\r\nhost",
        b"POST /b HTTP/1.1\r\ncontent-length: 5\r\n\r\n123",
        b"POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n123",
        b"POST /refuse HTTP/1.1\r\ncontent-length: 5\r\n\r\n123",
        GET + b"GET /a HTTP/1.1\r\n",
    ],
    ids=repr,
)
def test_what_never_comes_to_its_end_is_ended(sent: bytes) -> None:
    bounds = Bounds(head_s=0.05, body_s=0.05, keep_alive_s=600)

    with serving(bounds) as server, connected(server.address) as connection:
        connection.sendall(sent)
        rest(connection)

        assert is_served(server)


@pytest.mark.parametrize("noise", [b"\r\n", b"GET"])
def test_a_kept_connection_on_which_no_request_comes_to_its_end_is_ended(noise: bytes) -> None:
    bounds = Bounds(head_s=0.05, keep_alive_s=600)

    with serving(bounds) as server, connected(server.address) as connection:
        connection.sendall(GET)
        answered(connection, b"GET /a ")
        connection.sendall(noise)

        assert rest(connection) == b""


def test_who_does_not_read_its_answers_is_ended() -> None:
    bounds = Bounds(head_s=600, body_s=0.05, body_bytes=1 << 20)
    with serving(bounds) as server, connected(server.address) as connection:
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(post(bytes(1 << 16)))

        assert is_served(server)


def test_a_handshake_that_never_comes_is_ended(tmp_path: Path) -> None:
    listener = Listener("127.0.0.1:0", certificates(tmp_path).tls)

    with serving(Bounds(head_s=0.05), listener) as server, connected(server.address) as silent:
        assert rest(silent) == b""


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET /a HTTP/1.1\r\nx: ", b"x" * 4096),
        (b"GET /a HTTP/1.1\r\n", b"x: y\r\n" * 1000),
        (b"GET /", b"a" * 4096),
        (b"POST /refuse HTTP/1.1\r\ncontent-length: 999999999\r\n\r\n", bytes(4096)),
        (b"POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 1000),
    ],
    ids=["a header", "headers", "a path", "what was refused", "trailers"],
)
def test_what_has_no_end_is_ended(begin: bytes, more: bytes) -> None:
    with serving(Bounds(body_bytes=1 << 16)) as server, connected(server.address) as connection:
        connection.sendall(begin)
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(more)

        assert is_served(server)


def test_a_connection_on_which_a_body_was_passed_over_ends_when_nothing_more_comes() -> None:
    refused = post(bytes(1 << 18)).replace(b"/b", b"/refuse")

    with serving(Bounds(keep_alive_s=0.2)) as server, connected(server.address) as connection:
        connection.sendall(refused[:-1])
        answered(connection, b"POST /refuse ")
        connection.sendall(refused[-1:])

        assert rest(connection) == b""


def test_a_body_that_is_refused_is_passed_over_and_the_connection_kept() -> None:
    refused = post(bytes(1 << 18)).replace(b"/b", b"/refuse")

    with serving() as server, connected(server.address) as connection:
        connection.sendall(refused)
        answered(connection, b"POST /refuse ")
        connection.sendall(GET)

        assert answered(connection, b"GET /a ")


@pytest.mark.parametrize("pieces", [1, 2])
def test_who_would_rather_speak_another_protocol_is_answered_in_this_one(pieces: int) -> None:
    """Java's client asks for HTTP/2 with each request, and sends its body all the same."""
    content = post(b"spans", "connection: Upgrade, HTTP2-Settings", "upgrade: h2c")
    middle = len(content) - 5 if pieces == 2 else len(content)

    with serving() as server, connected(server.address) as connection:
        for _ in range(2):
            connection.sendall(content[:middle])
            connection.sendall(content[middle:])

            assert answered(connection, b"POST /b spans").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"POST /b HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=repr,
)
def test_what_is_no_http_is_told_so_and_harms_nobody(sent: bytes) -> None:
    with serving() as server, connected(server.address) as connection:
        connection.sendall(sent)

        assert rest(connection).startswith(b"HTTP/1.1 400 ")
        assert is_served(server)


PARTS = st.sampled_from(
    [
        GET,
        post(b"1"),
        post(b"1", "upgrade: h2c", "connection: upgrade"),
        b"POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"\r\n",
        b"GET",
        b"HTTP/1.0\r\n",
    ]
) | st.binary(max_size=8)


@pytest.fixture(scope="module")
def hardy() -> Iterator[HttpServer]:
    with serving(Bounds(head_s=0.01, body_s=0.01, keep_alive_s=0)) as server:
        yield server


@settings(max_examples=50, deadline=None)
@given(sent=st.lists(PARTS, max_size=6))
def test_whatever_comes_the_server_goes_on(hardy: HttpServer, sent: list[bytes]) -> None:
    with connected(hardy.address) as connection:
        connection.sendall(b"".join(sent))
        came = rest(connection)

    assert b"HTTP/1.1 500" not in came
    with connected(hardy.address) as connection:
        connection.sendall(GET)
        answered(connection, b"GET /a ")


def test_connections_that_say_nothing_keep_nobody_out() -> None:
    bounds = Bounds(head_s=600, connections=5_000)
    with many_files(), serving(bounds) as server, idle_connections(server.address, 2_000):
        assert is_served(server)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", b""),
        (GET, b"GET /a "),
        (post(b"12", "expect: 100-continue")[:-1], b"100 Continue\r\n\r\n"),
    ],
    ids=["nothing", "a request, long ago", "half a request"],
)
def test_one_connection_too_many_ends_the_one_that_was_silent_the_longest(
    sent: bytes, said: bytes
) -> None:
    bounds = Bounds(head_s=600, body_s=600, keep_alive_s=600, connections=2)
    with serving(bounds) as server, ExitStack() as stack:
        silent = stack.enter_context(connected(server.address))
        silent.sendall(sent)
        answered(silent, said)
        other, newcomer = (stack.enter_context(connected(server.address)) for _ in range(2))

        assert rest(silent) == b""
        for connection in (other, newcomer):
            connection.sendall(GET)
            answered(connection, b"GET /a ")


def test_where_all_connections_are_being_answered_one_more_is_asked_to_come_again() -> None:
    ENTERED.clear()
    LEAVE.clear()
    with serving(Bounds(connections=1)) as server, connected(server.address) as busy:
        busy.sendall(post(b"1").replace(b"/b", b"/busy"))
        assert ENTERED.wait(10)
        with connected(server.address) as other:
            turned_away = rest(other)
        LEAVE.set()
        answered(busy, b"POST /busy 1")

    assert turned_away.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in turned_away


def test_the_stop_ends_what_does_not_end_by_itself() -> None:
    with (
        serving() as server,
        connected(server.address) as idle,
        connected(server.address) as stalling,
    ):
        stalling.sendall(post(b"12", "expect: 100-continue")[:-1])
        answered(stalling, b"100 Continue\r\n\r\n")
        server.stop(grace_s=0.01)

        assert rest(stalling) == rest(idle) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(server.address)


def test_a_server_can_be_stopped_as_soon_as_it_is_made() -> None:
    for _ in range(5):
        with serving() as server:
            pass

        with pytest.raises(ConnectionRefusedError):
            connected(server.address)


def test_nobody_else_is_logged_for(caplog: pytest.LogCaptureFixture) -> None:
    before = [logging.getLogger(name).handlers for name in ("", "uvicorn", "uvicorn.access")]
    with caplog.at_level(logging.DEBUG), serving() as server:
        is_served(server)
        with connected(server.address) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            rest(connection)

    after = [logging.getLogger(name).handlers for name in ("", "uvicorn", "uvicorn.access")]
    assert before == after
    assert not [record for record in caplog.records if record.name.startswith(("uvicorn", "llm"))]


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with serving() as server, pytest.raises(OSError, match="choose another port"):
        HttpServer(Listener(server.address), echo, Bounds())


def test_every_address_is_both_kinds_of_address() -> None:
    with ExitStack() as stack:
        if not socket.has_dualstack_ipv6():
            stack.enter_context(pytest.raises(OSError, match=r"cannot listen on \[::\]:0"))
        server = stack.enter_context(serving(listener=Listener("[::]:0")))
        port = server.address.rpartition(":")[2]

        assert httpx.get(f"http://127.0.0.1:{port}/a").text == "GET /a "
