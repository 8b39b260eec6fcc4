"""How a request that is served ends, and what passes on the way; also where we fail."""

import asyncio

import pytest

from llmlat_otel.asgi import GatewayMiddleware
from llmlat_otel.core import exchanges, propagation, server_spans
from llmlat_otel.core.guard import faults
from llmlat_otel.core.serving import serving
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from tests.llmlat_otel.asgi_driver import (
    CALLER,
    DISCONNECT,
    END,
    START,
    Server,
    part,
    saying,
    scope_of,
    upstream,
)

TRAILERS = {"type": "http.response.trailers", "headers": [], "more_trailers": True}
LAST_TRAILERS = {"type": "http.response.trailers", "headers": []}


def gateway(app):
    return GatewayMiddleware(app)


def only(record):
    (span,) = record.tree()
    return span


def upstream_faults():
    return faults().get(exchanges.TARGET, 0)


# How it ends


class TheirError(Exception):
    """The application's own."""


@pytest.mark.parametrize("error", [TheirError("no"), asyncio.CancelledError(), SystemExit(3)])
@pytest.mark.parametrize("said", [(), (START,), (START, part())], ids=len)
def test_an_exception_passes_and_is_the_end(error, said, clock, record):
    async def app(scope, receive, send):
        await saying(*said)(scope, receive, send)
        raise error

    server = Server(clock)

    async def main():
        try:
            await GatewayMiddleware(app)(scope_of(), server.receive, server.send)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is theirs
            return raised

    assert asyncio.run(main()) is error
    span = only(record)
    assert span["error"]
    assert span["attributes"][names.ERROR_TYPE].endswith(type(error).__qualname__)
    assert span["attributes"].get(names.HTTP_RESPONSE_STATUS_CODE) == (200 if said else None)
    assert span["end_ns"] == len(said) * 2 * MS
    assert server.sent == list(said)


@pytest.mark.parametrize(("status", "said"), [(499, None), (500, "500"), (503, "503")])
def test_a_status_that_says_so_is_an_error(status, said, clock, record):
    Server(clock).answer(gateway(saying({**START, "status": status}, END)))
    span = only(record)
    assert (span["attributes"].get(names.ERROR_TYPE), "error" in span) == (said, said is not None)


def test_an_exception_that_was_answered_is_what_failed(clock, record):
    """As Starlette does: it answers, and raises for the server to log."""

    async def app(scope, receive, send):
        await saying({**START, "status": 500}, END)(scope, receive, send)
        clock.advance(9 * MS)
        raise TheirError

    server = Server(clock).answer(gateway(app))
    span = only(record)
    assert isinstance(server.raised, TheirError)
    assert span["attributes"][names.ERROR_TYPE].endswith("TheirError")
    assert span["end_ns"] == 4 * MS, "the last byte"


def test_a_caller_that_is_gone_is_the_end(clock, record):
    async def app(scope, receive, send):
        await receive()
        upstream().upstream_begins(clock.now_ns())
        await saying(START, part())(scope, receive, send)
        upstream().upstream_ended(clock.now_ns())
        clock.advance(5 * MS)
        assert await receive() is DISCONNECT
        clock.advance(30 * MS)  # it tidies up
        await saying(part(), END)(scope, receive, send)

    server = Server(clock).answer(gateway(app))
    span, relay = record.tree()
    assert (server.raised, len(server.sent)) == (None, 4)
    assert (span["end_ns"], "error" in span) == (9 * MS, False)
    assert relay["attributes"][names.LLMLAT_PHASE_TRUNCATED] is True


@pytest.mark.parametrize(("error", "is_end"), [(OSError("gone"), True), (RuntimeError("n"), False)])
def test_a_message_that_the_server_does_not_take(error, is_end, clock, record):
    """It raises `OSError` where nobody is there any more; else the application may go on."""
    caught = []

    async def app(scope, receive, send):
        await send(START)
        try:
            await send(END)
        except Exception as raised:  # noqa: BLE001
            caught.append(raised)
        clock.advance(7 * MS)
        await send(END)

    server = Server(clock, refuses={1: error}).answer(gateway(app))
    assert caught == [error]
    assert server.sent == [START, END]
    assert only(record)["end_ns"] == (2 * MS if is_end else 11 * MS)


@pytest.mark.parametrize(
    ("messages", "lasts"),
    [
        ([START, {"type": "http.response.pathsend", "path": "/f"}], 2),
        ([{**START, "trailers": True}, part(), END, TRAILERS, LAST_TRAILERS], 5),
        ([START, {"type": "http.response.zerocopysend", "file": 3}, END], 3),
        ([{"type": "http.response.early_hint", "links": []}, START, END], 3),
        ([{"type": "http.response.debug", "info": {}}, START, END], 3),
        ([START, {"type": "http.response.body"}], 2),
        ([START, {"type": "http.response.body", "more_body": True}, END], 3),
        ([START, part()], 2),
    ],
)
def test_every_message_passes_as_it_is_and_the_last_one_is_the_end(messages, lasts, clock, record):
    async def after():
        if messages[-1].get("more_body") is not True:
            clock.advance(30 * MS)

    server = Server(clock).answer(gateway(saying(*messages, after=after)))
    assert [id(each) for each in server.sent] == [id(each) for each in messages]
    assert only(record)["end_ns"] == lasts * 2 * MS


@pytest.mark.parametrize("message", [None, {}, {"type": 5}, {"type": "http.response.start"}, 7])
def test_what_is_no_message_is_the_servers_to_refuse(message, clock, record):
    server = Server(clock).answer(gateway(saying(message, START, END)))
    assert server.sent == [message, START, END]
    assert only(record)["end_ns"] == 6 * MS


# Faults of ours


SEAMS = [
    (server_spans, "is_current_servers"),
    (server_spans, "parent_of"),
    (server_spans, "opened"),
    (server_spans, "finish"),
    (server_spans, "_describe"),
    (propagation, "extract"),
    (propagation, "enter"),
    (propagation, "leave"),
    (exchanges, "makes_spans"),
    (exchanges, "is_suppressed"),
    (exchanges, "Served"),
    *(
        (exchanges.Exchange, name)
        for name in ("_begin", "_open", "_leave", "_unserve", "_sends", "_sent", "_received")
    ),
    *(
        (exchanges.Exchange, name)
        for name in ("_sends_last", "_come_back", "_tell_theirs", "_end", "_write")
    ),
]


@pytest.mark.parametrize("seam", SEAMS, ids=lambda seam: seam[1])
def test_a_fault_of_ours_is_not_noticed(seam, clock, record, monkeypatch):
    def fail(*_, **__):
        raise KeyError("ours")

    async def app(scope, receive, send):
        await receive()
        await forwarding_anyhow(scope, receive, send)
        await receive()

    async def forwarding_anyhow(scope, receive, send):
        await saying(START, part(), END)(scope, receive, send)

    before, contexts = upstream_faults(), []

    async def main(server):
        await server.ask(gateway(app), scope_of(traceparent=CALLER))
        contexts.append(serving.get())

    server = Server(clock)
    monkeypatch.setattr(*seam, fail)
    asyncio.run(main(server))
    assert server.sent == [START, part(), END]
    assert server.raised is None
    assert upstream_faults() > before
