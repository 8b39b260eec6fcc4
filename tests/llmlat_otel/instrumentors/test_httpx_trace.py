"""httpcore's trace events: which begin and end a phase, and that the user's own still get them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from llmlat_otel.instrumentors.httpx import _AsyncTrace, _Trace

POST: dict[str, Any] = {"request": SimpleNamespace(method=b"POST")}
CONNECT: dict[str, Any] = {"request": SimpleNamespace(method=b"CONNECT")}


class Marks:
    """An attempt that writes down what it is told."""

    def __init__(self):
        self.lines = []

    def mark(self, phase):
        self.lines.append(phase and phase.value)

    def body_complete(self):
        self.lines.append("complete")

    def body_ended(self):
        self.lines.append("ended")


@pytest.fixture
def attempt() -> Any:
    return Marks()


def announce(trace, *events):
    for name, info in events:
        for step in ("started", "complete"):
            trace(f"{name}.{step}", info)


REQUEST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("http11.send_request_headers", POST),
    ("http11.send_request_body", POST),
    ("http11.receive_response_headers", POST),
    ("http11.receive_response_body", POST),
    ("http11.response_closed", {}),
)


def test_a_new_connection(attempt):
    announce(_Trace(attempt, None), ("connection.connect_tcp", {}), ("connection.start_tls", {}))
    assert attempt.lines == ["connect", None, "connect", None]


@pytest.mark.parametrize("protocol", ["http11", "http2"])
def test_a_request(attempt, protocol):
    events = [(name.replace("http11", protocol), info) for name, info in REQUEST]
    announce(_Trace(attempt, None), *events)
    assert attempt.lines == ["send", "wait", "complete", "ended"]


def test_a_connection_that_is_tried_again_is_one_connect(attempt):
    trace = _Trace(attempt, None)
    for event in (
        "connect_tcp.started",
        "connect_tcp.failed",
        "retry.started",
        "retry.complete",
        "connect_tcp.started",
        "connect_tcp.complete",
    ):
        trace(f"connection.{event}", {})
    assert attempt.lines == ["connect", None]


def test_what_a_socks_proxy_takes_is_part_of_the_connection(attempt):
    announce(
        _Trace(attempt, None),
        ("socks.connect_tcp", {}),
        ("socks.setup_socks5_connection", {}),
        ("socks.start_tls", {}),
        *REQUEST[:2],
    )
    assert attempt.lines == ["connect", None] * 3 + ["send", "wait"]


def test_a_redirect_connects_and_sends_again(attempt):
    trace = _Trace(attempt, None)
    announce(trace, ("connection.connect_tcp", {}), *REQUEST[:2])
    announce(trace, ("connection.connect_tcp", {}), *REQUEST[:2])
    assert attempt.lines == ["connect", None, "send", "wait"] * 2


def test_a_proxys_tunnel_is_part_of_the_connection(attempt):
    tunnel = [(name, CONNECT if info is POST else info) for name, info in REQUEST[:3]]
    announce(
        _Trace(attempt, None),
        ("connection.connect_tcp", {}),
        *tunnel,
        ("connection.start_tls", {}),
        *REQUEST[:2],
    )
    assert attempt.lines == ["connect", None, "connect", None, "send", "wait"]


def test_a_leaked_body_that_is_given_up_is_not_complete(attempt):
    trace = _Trace(attempt, None)
    trace("http11.receive_response_body.failed", {"exception": GeneratorExit()})
    assert attempt.lines == []


def test_the_users_own_trace_gets_every_event(attempt):
    seen = []
    announce(_Trace(attempt, lambda name, info: seen.append((name, info))), *REQUEST)
    assert len(seen) == 2 * len(REQUEST)
    assert seen[0] == ("http11.send_request_headers.started", POST)


def test_a_wrong_trace_of_the_users_fails_as_it_would_without_us(attempt):
    """A function of the other kind is refused by httpcore."""

    async def coroutine(name, info):
        pass

    with pytest.raises(TypeError):
        asyncio.run(_AsyncTrace(attempt, lambda name, info: None)("connection.retry.started", {}))
    handed_on = _Trace(attempt, coroutine)("connection.retry.started", {})
    assert asyncio.iscoroutine(handed_on), "httpcore looks at what comes back"
    handed_on.close()


def test_the_users_own_coroutine_function_is_awaited(attempt):
    seen = []

    async def theirs(name, info):
        await asyncio.sleep(0)
        seen.append(name)

    async def main():
        await _AsyncTrace(attempt, theirs)("http11.send_request_headers.started", POST)
        await _AsyncTrace(attempt, None)("http11.send_request_body.complete", {})

    asyncio.run(main())
    assert attempt.lines == ["send", "wait"]
    assert seen == ["http11.send_request_headers.started"]
