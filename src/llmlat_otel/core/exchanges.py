"""Exchanges: each HTTP request that an ASGI application answers, from its arrival to its last byte.

    server   ── call ──> app ── start, body, body, body ──> server        app goes on: its
             |                                            |               background is none
             received                                     last byte       of the request

Messages pass one by one, as they are and when they come. What is neither the start of a response
nor a part of its body is not looked at.

Its span is the current one for as long as the application runs, background included: spans that
are made there belong to the request's trace. While the last byte is handed over it is not: servers
begin the connection's next request from within that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from opentelemetry.context import Context

from llmlat_otel.core import attempt, propagation, server_spans
from llmlat_otel.core.attributes import error_type
from llmlat_otel.core.emit import OpenSpan
from llmlat_otel.core.foreign import is_suppressed, makes_spans
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.lifespans import Lifespan
from llmlat_otel.core.runtime import Runtime, runtime
from llmlat_otel.core.server_spans import Answer
from llmlat_otel.core.serving import (
    NO_BYTES,
    Served,
    Waiting,
    request_heard,
    request_underway,
    serving,
)

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[Any]]
App = Callable[[Scope, Receive, Send], Awaitable[Any]]

TARGET: Final = "asgi"

_START: Final = "http.response.start"
_BODY: Final = "http.response.body"
_TRAILERS: Final = "http.response.trailers"
_WHOLE: Final = "http.response.pathsend"
_DISCONNECT: Final = "http.disconnect"
_ERRORS_FROM: Final = 500


def arrived(app: object, scope: Scope, receive: Receive, send: Send) -> Exchange | Lifespan | None:
    """What begins; None if there is nothing to it, or it has begun further out."""
    if scope["type"] == "lifespan":
        return Lifespan(scope, receive, send)
    if scope["type"] != "http" or is_suppressed():
        return None
    # An application within another one is called as that is served; one that is asked by a client
    # in this process is called as a request is being sent.
    served = request_underway()
    if served is not None and attempt.underway.get() is None and served.is_asked_by(scope):
        return None
    sdk = runtime()
    excluded = sdk.settings.excluded_urls
    if excluded is not None and excluded.search(_url(scope)):
        return None
    return Exchange(sdk, app, scope, receive, send)


def _url(scope: Scope) -> str:
    host, port = (scope.get("server") or ("", None))[:2]
    where = host if port in {None, 80} else f"{host}:{port}"
    return f"{scope.get('scheme', 'http')}://{where}{scope['path']}"


class Exchange:
    """One request and its response. All but its coroutines is called under the guard.

    Nothing has begun until the application runs: what is never awaited has never been.

    Args:
        sdk: The running SDK.
        app: Answers it, with all its layers.
        scope: Of the request.
        receive: The server's.
        send: The server's.
    """

    __slots__ = (
        "_anchor",
        "_app",
        "_before",
        "_context",
        "_has_trailers",
        "_is_last",
        "_is_outside",
        "_is_theirs_told",
        "_is_told",
        "_now_ns",
        "_opened",
        "_over_ns",
        "_pass_on",
        "_receive",
        "_scope",
        "_sdk",
        "_sending_before",
        "_served",
        "_served_before",
        "_status",
    )

    def __init__(
        self, sdk: Runtime, app: object, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._sdk = sdk
        self._app = app
        self._scope = scope
        self._receive = receive
        self._pass_on = send
        self._before: Context | None = None
        self._context: Context | None = None
        self._served_before: Served | None = None
        self._sending_before: attempt.Owner | attempt.Passage | None = None
        self._status: int | None = None
        self._has_trailers = False
        self._is_last = False
        self._is_told = False
        self._over_ns: int | None = None
        self._is_outside = False
        self._is_theirs_told = False
        self._anchor = sdk.clock.anchor()
        self._opened: OpenSpan | None = None
        self._now_ns = sdk.clock.now_ns
        self._served = Served(self._now_ns(), scope)

    # The application

    async def run(self, app: App) -> Any:
        """Have the application answer."""
        guarded(TARGET, self._begin)
        receive, send = self._receive, self._pass_on
        if self._served.is_heard:
            receive, send = self.receive, self.send
        try:
            result = await app(self._scope, receive, send)
        except BaseException as error:
            guarded(TARGET, self._left, error)
            raise
        guarded(TARGET, self._left, None)
        return result

    def _begin(self) -> None:
        self._serve()
        opened = self._open()
        if opened is None:
            return
        self._opened = opened
        self._served.is_heard = opened.is_recording
        self._served.trace_id = opened.span.get_span_context().trace_id
        if opened.is_ours:
            self._context = opened.context
            self._before = propagation.enter(opened.context)

    def _open(self) -> OpenSpan | None:
        """The request's span: one that there is, or our own; None if one is made further in."""
        emitter, served, earlier = self._sdk.emitter, self._served, self._served_before
        named = propagation.named_in(self._scope["headers"])
        served.traceparent = named.get(propagation.TRACEPARENT)
        if earlier is not None and not earlier.is_over and self._is_around(earlier):
            earlier = None
        if server_spans.is_current_servers(earlier):
            return emitter.current(self._anchor)
        if makes_spans(self._app, emitter.their_provider):
            return None
        parent, method = server_spans.parent_of(named, earlier), self._scope["method"]
        return server_spans.opened(emitter, method, parent, served.received_ns, self._anchor)

    def _is_around(self, earlier: Served) -> bool:
        """Whether this one is answered for another one, and not after it."""
        return self._sending_before is not None or earlier.is_asked_by(self._scope)

    def _serve(self) -> None:
        """This is the request that is answered here, and none of it is sent for what is around."""
        self._served_before = serving.get()
        serving.set(self._served)
        self._sending_before = attempt.underway.get()
        if self._sending_before is not None:
            attempt.underway.set(None)

    def _unserve(self) -> None:
        if serving.get() is self._served:
            serving.set(self._served_before)
            if self._sending_before is not None:
                attempt.underway.set(self._sending_before)

    def _left(self, error: BaseException | None) -> None:
        """The application has nothing more to do, or has failed."""
        guarded(TARGET, self._end, error)
        guarded(TARGET, self._leave)
        guarded(TARGET, self._unserve)

    def _leave(self) -> None:
        if self._context is not None:
            propagation.leave(self._context, self._before)

    # Messages

    async def receive(self) -> Message:
        """What the server has for the application."""
        message = await self._receive()
        guarded(TARGET, self._received, message)
        return message

    def _received(self, message: Message) -> None:
        if message["type"] == _DISCONNECT:
            self._gone()

    async def send(self, message: Message) -> Any:
        """What the application has for the server."""
        if self._over_ns is not None:
            return await self._pass_on(message)
        waiting = guarded(TARGET, self._sends, message)
        try:
            result = await self._pass_on(message)
        except BaseException as error:
            guarded(TARGET, self._not_sent, error)
            raise
        if waiting is not None:
            guarded(TARGET, self._sent, waiting)
        return result

    def _sends(self, message: Message) -> Waiting | None:
        """What is about to be sent; None if nothing is to be noted once it was."""
        kind = message["type"]
        if kind == _BODY:
            waiting = self._served.sends() if message.get("body") else None
            if message.get("more_body", False):
                return waiting
            is_last = not self._has_trailers
        elif kind == _START:
            self._status = message["status"]
            self._has_trailers = message.get("trailers", False)
            return None
        else:
            waiting = self._served.sends() if kind == _WHOLE else None
            is_last = kind == _WHOLE or (
                kind == _TRAILERS and not message.get("more_trailers", False)
            )
        if is_last:
            waiting = waiting or NO_BYTES
            self._is_last = True
            self._sends_last(waiting)
        return waiting

    def _sends_last(self, waiting: Waiting) -> None:
        self._tell_theirs(is_all_sent=not waiting[0])
        if self._context is not None:
            self._is_outside = propagation.leave(self._context, self._before)
        self._unserve()

    def _sent(self, waiting: Waiting) -> None:
        now_ns = self._now_ns()
        if waiting is not NO_BYTES:
            self._served.sent(waiting, now_ns)
        if self._is_last:
            self._over_ns = now_ns
            self._served.is_over = True
            self._come_back()
            if self._status is None or self._status < _ERRORS_FROM:
                self._end(None)  # Else what it failed with may be about to be raised.

    def _not_sent(self, error: BaseException) -> None:
        """The server says that nobody is there any more, or refuses the message."""
        self._is_last = False
        self._come_back()
        if isinstance(error, OSError):
            self._gone()

    def _come_back(self) -> None:
        """The application runs on, in the background."""
        if self._is_outside and self._context is not None:
            self._is_outside = False
            propagation.enter(self._context)

    def _gone(self) -> None:
        """The caller is no longer there."""
        if self._over_ns is None:
            self._end(None)

    # Its span

    def _tell_theirs(self, *, is_all_sent: bool) -> None:
        """Write on the span of somebody else while it lasts, which may be until the last byte."""
        emitter, opened = self._sdk.emitter, self._opened
        if opened is None:  # It was made since, further in.
            if not server_spans.is_current_servers():
                return
            self._opened = opened = emitter.current(self._anchor)
        if not opened.is_ours and not self._is_theirs_told:
            self._is_theirs_told = True
            server_spans.describe_theirs(emitter, opened, self._served, is_all_sent=is_all_sent)

    def _end(self, error: BaseException | None) -> None:
        """The request is over; the first time counts."""
        if self._is_told:
            return
        self._is_told = self._served.is_over = True
        self._served.scope = None
        if guarded(TARGET, self._write, error) is None and self._opened is not None:
            self._sdk.emitter.give_up(self._opened)

    def _write(self, error: BaseException | None) -> bool:
        """Write what there is to say; whether nothing went wrong."""
        is_whole = self._over_ns is not None
        if self._over_ns is None:
            self._over_ns = self._now_ns()
        failure = error_type(error)
        if failure is None and self._status is not None and self._status >= _ERRORS_FROM:
            failure = str(self._status)
        self._tell_theirs(is_all_sent=True)
        emitter, opened, served = self._sdk.emitter, self._opened, self._served
        if opened is None:
            return True
        if not opened.is_recording:  # Nobody hears what there is to say.
            emitter.end(opened, self._over_ns, failure)
            return True
        answer = Answer(self._over_ns, self._status, failure, is_whole)
        if opened.is_ours:
            server_spans.finish(emitter, opened, served, self._scope["method"], answer)
        else:
            server_spans.finish_theirs(emitter, opened, served, answer)
        return True


# What frameworks do with it


def mounted(path: str) -> None:
    """The request that is answered here goes on below a path."""
    served = request_heard()
    if served is not None:
        served.mounted(path)


def routed(path: str) -> None:
    """A route is chosen for the request that is answered here."""
    served = request_heard()
    if served is not None:
        served.routed(path)
        served.admitted(runtime().clock.now_ns())


def admitted() -> None:
    """The request that is answered here has come through one more door."""
    served = request_heard()
    if served is not None:
        served.admitted(runtime().clock.now_ns())
