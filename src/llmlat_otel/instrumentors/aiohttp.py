"""aiohttp's client: what it does for a call above it, for another transport, or for a gateway."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, Final

from llmlat_otel.core.attempt import Passage, underway
from llmlat_otel.core.bodies import ReadableBody
from llmlat_otel.core.call import call_underway
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.serving import request_underway
from llmlat_otel.core.upstream import UpstreamCall, upstream_call
from llmlat_otel.core.wrapping import Sight, run_in
from llmlat_semconv.phases import Phase

# Theory of operation
# ===================
#
#   ClientSession._request ──────────────────────────────────────────────────────> response
#     └ BaseConnector.connect ──────────> ClientRequest.send ──> write_bytes ─┐       │
#         pool_wait       connect           send ─────────────────────────────┘ wait  └─> its body
#
# A request either is an attempt or carries one of httpx, whose headers the transport passes on.
# What is called within it finds it in a context variable: the session does not change, and requests
# that are sent meanwhile, by a middleware for example, are not taken for it. That a connection is
# made, and not taken from the pool, is told by aiohttp's own tracing; our trace is among those of
# the request for as long as it connects.

_TARGET: Final = "aiohttp"


class _Carrier:
    """The scope of one request that carries an attempt; without one, of none of the call's."""

    __slots__ = ("_before", "_is_sent", "_request", "attempt", "target")

    def __init__(self, attempt: Passage | None) -> None:
        self.target = _TARGET
        self.attempt = attempt
        self._request: Callable[[], object] = _nothing
        self._before: _Carrier | None = None
        self._is_sent = False

    def begin(self) -> None:
        """What is connected and sent from here on is this request."""
        self._before = _carrying.get()
        _carrying.set(self)

    def returned(self) -> None:
        """The library above has control again."""
        if _carrying.get() is self:
            _carrying.set(self._before)

    def failed(self, _: BaseException) -> None:
        """It is for the attempt to tell what that means."""
        self.returned()

    def restart(self) -> None:
        """Nothing to start again."""

    def delivered(self, response: Any) -> Any:
        """The response's head is there."""
        if self.attempt is not None and self.attempt.is_heard:
            _watch(self.attempt, response)
        return response

    def connecting(self, request: Any) -> None:
        """A connection is asked of the pool, perhaps once more, after a redirect."""
        self._request = weakref.ref(request)
        self._is_sent = False
        if self.attempt is not None:
            self.attempt.name_parent(request.headers)
            self.attempt.mark(Phase.POOL_WAIT)

    def sends(self, request: object) -> bool:
        """Whether a request is the one that is connected for."""
        return self._request() is request

    def mark(self, phase: Phase | None) -> None:
        """A phase begins; the end of sending may be told twice."""
        if self.attempt is None or (phase is Phase.WAIT and self._is_sent):
            return
        self._is_sent = phase is Phase.WAIT
        self.attempt.mark(phase)


def _nothing() -> None:
    return None


_carrying: ContextVar[_Carrier | None] = ContextVar("llmlat-aiohttp", default=None)


def _request(wrapped: Callable[..., Any], session: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `ClientSession._request`, which all requests go through."""
    carrier, around = guarded(_TARGET, _begun, session, args, kwargs) or (None, None)
    if around is None:
        return run_in(carrier, wrapped, args, kwargs)
    return run_in(around, partial(run_in, carrier, wrapped), (args, kwargs), {})


def _begun(
    session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[_Carrier | None, Passage | UpstreamCall | None]:
    """What carries the request, and what is around that if it is an attempt itself."""
    above = underway.get()
    if isinstance(above, Passage):
        return _Carrier(above if above.is_carried_by(kwargs.get("headers")) else None), None
    call = None if above is None else call_underway()
    if call is not None:
        attempt = call.begin_attempt(*_peer(session, args, kwargs))
        return None if attempt is None else _Carrier(attempt), attempt
    carrier = _Carrier(None)
    upstream = _upstream(carrier, session, args, kwargs)
    return None if upstream is None else carrier, upstream


def _url(session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return session._build_url(args[1] if len(args) > 1 else kwargs["str_or_url"])


def _peer(
    session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str | None, int | None]:
    url = _url(session, args, kwargs)
    return url.host, url.port


def _upstream(
    carrier: _Carrier, session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> UpstreamCall | None:
    """The call of a gateway that a request is, if it is one."""
    served = request_underway()
    if served is None:
        return None
    url = _url(session, args, kwargs)
    to = (args[0] if args else kwargs["method"], url.host, url.port, url.path)
    begin = partial(_begin, carrier, url)
    return upstream_call(_TARGET, served, to, begin, _follow, is_to_come=True)


def _begin(carrier: _Carrier, url: Any, call: UpstreamCall) -> Passage | None:
    carrier.attempt = call.begin_attempt(url.host, url.port)
    return carrier.attempt


def _follow(call: UpstreamCall, response: Any) -> None:
    call.read_by_itself(response.content, response)


def _connect(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `BaseConnector.connect`."""
    return run_in(guarded(_TARGET, _connecting, args, kwargs), wrapped, args, kwargs)


def _connecting(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sight | None:
    carrier = _carrying.get()
    if carrier is None or carrier.attempt is None:
        return None
    traces = args[1] if len(args) > 1 else kwargs["traces"]
    guarded(_TARGET, carrier.connecting, args[0] if args else kwargs.get("req"))
    trace = guarded(_TARGET, _add_trace, carrier, traces)
    return Sight(_TARGET, partial(_connected, carrier, traces, trace))


def _add_trace(carrier: _Carrier, traces: list[Any]) -> Any:
    trace = sys.modules["aiohttp.tracing"].Trace(None, _config(), SimpleNamespace(carrier=carrier))
    traces.append(trace)
    return trace


@cache
def _config() -> Any:
    config = sys.modules["aiohttp"].TraceConfig()
    config.on_connection_create_start.append(_creating)
    config.freeze()
    return config


async def _creating(_session: Any, context: Any, _params: Any) -> None:
    guarded(_TARGET, _connects, context)


def _connects(context: Any) -> None:
    context.carrier.mark(Phase.CONNECT)


def _connected(carrier: _Carrier, traces: list[Any], trace: Any, connection: Any) -> Any:
    if trace is not None:
        traces.remove(trace)
    carrier.mark(None)
    return connection


def _send(wrapped: Callable[..., Any], request: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `ClientRequest.send`, which writes the head; a proxy's CONNECT is another request."""
    return run_in(guarded(_TARGET, _sending, request), wrapped, args, kwargs)


def _sending(request: Any) -> Sight | None:
    carrier = _carrier_of(request)
    if carrier is None:
        return None
    carrier.mark(Phase.SEND)
    return Sight(_TARGET, partial(_head_sent, carrier))


def _carrier_of(request: Any) -> _Carrier | None:
    carrier = _carrying.get()
    return carrier if carrier is not None and carrier.sends(request) else None


def _head_sent(carrier: _Carrier, response: Any) -> Any:
    if getattr(response, "_writer", None) is None:  # No body is left to be written.
        carrier.mark(Phase.WAIT)
    return response


def _write(wrapped: Callable[..., Any], request: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `ClientRequest.write_bytes`, which writes the body, in a task of its own."""
    return run_in(guarded(_TARGET, _writing, request), wrapped, args, kwargs)


def _writing(request: Any) -> Sight | None:
    carrier = _carrier_of(request)
    return None if carrier is None else Sight(_TARGET, partial(_body_sent, carrier))


def _body_sent(carrier: _Carrier, result: Any) -> Any:
    carrier.mark(Phase.WAIT)
    return result


class _Reads:
    """What is made of the reads of a response; it keeps no response alive."""

    __slots__ = ("_attempt", "_body", "_error", "_response")

    def __init__(self, attempt: Passage, response: Any) -> None:
        self._attempt = attempt
        self._body = response.content
        self._response = weakref.ref(response)
        self._error: BaseException | None = None

    def received(self, data: Any) -> None:
        """Some of it has been read, or all; called under the guard."""
        self._error = None
        part = data[0] if type(data) is tuple else data  # of `readchunk`
        is_watched = not part or self._attempt.body_received()
        if self._body.at_eof():
            self._attempt.body_complete()
        response = self._response()
        if response is not None and not is_watched:
            response.content = self._body

    def failed(self, error: BaseException) -> None:
        """A read of it has failed, as all others would, or was given up; called under the guard."""
        self._error = error
        if self._body.exception() is not None:
            self._attempt.body_failed(error)

    def released(self) -> None:
        """The connection is free again: all has arrived, or nobody wants the rest; guarded."""
        if self._body.is_eof():
            return
        response = self._response()
        error, self._error = self._error, None  # Its traceback leads here.
        if error is not None:
            self._attempt.body_failed(error)
        elif response is None or not response.closed:
            self._attempt.body_dropped()
        else:
            self._attempt.body_ended()


def _watch(attempt: Passage, response: Any) -> None:
    reads = _Reads(attempt, response)
    if response.connection is not None:
        response.connection.add_callback(partial(guarded, _TARGET, reads.released))
    response.content = ReadableBody(response.content, reads.received, reads.failed)


TARGETS: Final = (
    Target("aiohttp.client", "ClientSession._request", _request),
    Target("aiohttp.connector", "BaseConnector.connect", _connect),
    Target("aiohttp.client_reqrep", "ClientRequest.send", _send),
    Target("aiohttp.client_reqrep", "ClientRequest.write_bytes", _write),
)
