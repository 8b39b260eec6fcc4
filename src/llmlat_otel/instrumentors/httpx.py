"""httpx2 and httpx: what the transport does for a call above it, or for a gateway; else silent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from llmlat_otel.core.attempt import Passage
from llmlat_otel.core.bodies import Body
from llmlat_otel.core.call import Call, call_underway
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.serving import request_underway
from llmlat_otel.core.upstream import UpstreamCall, upstream_call
from llmlat_otel.core.wrapping import Sight, run_in
from llmlat_semconv.phases import Phase

_TARGET: Final = "httpx"
_TRACE: Final = "trace"
_PORTS: Final = {"http": 80, "https": 443}

_MARKS: Final[dict[str, Phase | None]] = {
    "connect_tcp.started": Phase.CONNECT,
    "connect_tcp.complete": None,
    "connect_unix_socket.started": Phase.CONNECT,
    "connect_unix_socket.complete": None,
    "setup_socks5_connection.started": Phase.CONNECT,
    "setup_socks5_connection.complete": None,
    "start_tls.started": Phase.CONNECT,
    "start_tls.complete": None,
    "send_request_headers.started": Phase.SEND,
    "send_request_body.complete": Phase.WAIT,
}
"""Events of httpcore's trace extension that begin a phase, or end one where none begins."""

_ENDS: Final = ("receive_response_body.complete", "response_closed.complete")

_EVENTS: Final = {
    f"{where}.{event}": event
    for where in ("connection", "http11", "http2", "proxy", "socks")
    for event in (*_MARKS, *_ENDS)
}
"""The events that say something, by their full names; most do not, and cost this look-up."""


class _Trace:
    """The trace extension of one request; passes every event on to the user's own."""

    __slots__ = ("_in_tunnel", "_phase", "attempt", "theirs")

    def __init__(self, attempt: Passage, theirs: Callable[[str, Any], Any] | None) -> None:
        self.attempt = attempt
        self.theirs = theirs
        self._in_tunnel = False
        self._phase: Phase | None = None

    def __call__(self, name: str, info: Any) -> Any:
        event = _EVENTS.get(name)
        if event is not None:
            guarded(_TARGET, self._event, event, info)
        return None if self.theirs is None else self.theirs(name, info)

    def _event(self, event: str, info: Any) -> None:
        if event == "send_request_headers.started":
            # A proxy's CONNECT is part of making the connection.
            self._in_tunnel = getattr(info.get("request"), "method", None) == b"CONNECT"
        elif event == "start_tls.started":
            self._in_tunnel = False
        if self._in_tunnel:
            return
        if event in _MARKS:
            self._mark(_MARKS[event])
        elif event == "receive_response_body.complete":
            self.attempt.body_complete()
        else:
            self.attempt.body_ended()

    def _mark(self, phase: Phase | None) -> None:
        """A phase goes on where it begins once more: the transport may connect again and again."""
        if phase is None or phase is not self._phase:
            self.attempt.mark(phase)
        self._phase = phase


class _AsyncTrace(_Trace):
    """httpcore asks for a coroutine function where the client is asynchronous."""

    __slots__ = ()

    async def __call__(self, name: str, info: Any) -> None:
        event = _EVENTS.get(name)
        if event is not None:
            guarded(_TARGET, self._event, event, info)
        if self.theirs is not None:
            await self.theirs(name, info)


def _sends(trace: type[_Trace]) -> Callable[..., Any]:
    """Wraps `Client.send`."""

    def send(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
        return run_in(guarded(_TARGET, _sent, args, kwargs, trace), wrapped, args, kwargs)

    return send


def _sent(
    args: tuple[Any, ...], kwargs: dict[str, Any], trace: type[_Trace]
) -> Passage | UpstreamCall | None:
    """What is sent: an attempt of a call, or a gateway's own, or none of ours."""
    call = call_underway()
    if call is None:
        return _upstream(args, kwargs, trace)
    return _begin(call, args, kwargs, trace)


def _begin(
    call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], trace: type[_Trace]
) -> Passage | None:
    request = _request(args, kwargs)
    attempt = call.begin_attempt(*_peer(request.url))
    if attempt is not None:
        theirs = request.extensions.get(_TRACE)
        if isinstance(theirs, _Trace):  # The same request is sent once more.
            theirs.attempt.unname_parent(request.headers)
            theirs = theirs.theirs
            request.extensions = {**request.extensions, _TRACE: theirs}
        attempt.name_parent(request.headers)
        if attempt.is_heard:
            request.extensions = {**request.extensions, _TRACE: trace(attempt, theirs)}
    return attempt


def _peer(url: Any) -> tuple[str, int | None]:
    return url.host, url.port or _PORTS.get(url.scheme)


def _upstream(
    args: tuple[Any, ...], kwargs: dict[str, Any], trace: type[_Trace]
) -> UpstreamCall | None:
    """The call of a gateway that a request is, if it is one."""
    served = request_underway()
    if served is None:
        return None
    request = _request(args, kwargs)
    to = (request.method, *_peer(request.url), request.url.path)
    begin = partial(_begin, args=args, kwargs=kwargs, trace=trace)
    is_to_come = trace is _AsyncTrace
    return upstream_call(_TARGET, served, to, begin, _follow, is_to_come=is_to_come)


def _follow(call: UpstreamCall, response: Any) -> None:
    """A response that is there whole, or whose body is read by whoever gets it."""
    if response.is_closed:
        call.body_is_there()
    else:
        response.stream = call.pulled(response.stream, response)


def _handle(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `HTTPTransport.handle_request`: here the pool is asked, and the body is born."""
    return run_in(guarded(_TARGET, _handling, args, kwargs), wrapped, args, kwargs)


def _handling(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sight | None:
    trace = getattr(_request(args, kwargs), "extensions", {}).get(_TRACE)
    if not isinstance(trace, _Trace):
        return None
    trace.attempt.mark(Phase.POOL_WAIT)
    return Sight(_TARGET, partial(_measured, trace))


def _measured(trace: _Trace, response: Any) -> Any:
    received = partial(guarded, _TARGET, trace.attempt.body_received)
    response.stream = Body(response.stream, received)
    return response


def _request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("request")


TARGETS: Final = tuple(
    Target(module, attribute, wrapper)
    for module in ("httpx2", "httpx")
    for attribute, wrapper in (
        ("Client.send", _sends(_Trace)),
        ("AsyncClient.send", _sends(_AsyncTrace)),
        ("HTTPTransport.handle_request", _handle),
        ("AsyncHTTPTransport.handle_async_request", _handle),
    )
)
