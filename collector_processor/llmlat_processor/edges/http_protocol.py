"""One HTTP connection: uvicorn's, with an end to everything that a client can make it wait for.

    connected ── head_s ──> head is whole ── body_s ──> body is whole ──> answer ──> keep_alive_s
                 (and for each further request)                (body_s to be read by the client)

Bytes have bounds as time has: those of a head, and those of a request that is being passed over
because it was refused. `Crowd` bounds the connections: one more closes the one that has been silent
the longest, so that connections that say nothing keep nobody out.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

_HEAD_BYTES: Final = 1 << 16
_NO_HTTP: Final = "This is no HTTP/1.1 that can be read here; OTLP over gRPC has a port of its own."
_TURNED_AWAY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)

_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.setLevel(logging.ERROR)  # what clients do wrong is told to them, and counted


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a connection may take, and how much it may hold.

    Attributes:
        head_s: for the head of a request, in seconds; also for the handshake of TLS.
        body_s: for its body, and for a client to read its answer, in seconds.
        keep_alive_s: between two requests, in seconds.
        body_bytes: largest body, as it comes.
        connections: how many there may be.
    """

    head_s: float = 10
    body_s: float = 30
    keep_alive_s: float = 75
    body_bytes: int = 1 << 20
    connections: int = 256


class Crowd(ServerState):
    """All connections of a server, and whom of them it waits for: the longest silent first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._silent: dict[GuardedProtocol, None] = {}

    def has_room(self) -> bool:
        """Whether one more may stay; the one that has been silent the longest may have to go."""
        if len(self.connections) <= self._most:
            return True
        oldest = next(iter(self._silent), None)
        if oldest is not None:
            self.forget(oldest)
            oldest.transport.abort()
        return oldest is not None

    def wait_for(self, connection: GuardedProtocol) -> None:
        """From now on nothing comes of it, until this is called again."""
        self.forget(connection)
        self._silent[connection] = None

    def forget(self, connection: GuardedProtocol) -> None:
        """It is being answered, or gone."""
        self._silent.pop(connection, None)


class _Reading(Enum):
    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


class GuardedProtocol(HttpToolsProtocol):
    """A connection that ends where its client takes too long, or sends too much."""

    def __init__(
        self, config: Config, crowd: Crowd, bounds: Bounds, loop: AbstractEventLoop
    ) -> None:
        super().__init__(config, crowd, {}, loop)
        self.logger = _LOGGER
        self.access_log = False
        self._crowd = crowd
        self._bounds = bounds
        self._reading = _Reading.NOTHING
        self._came = 0
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Let it in, or turn it away."""
        super().connection_made(transport)
        if not self._crowd.has_room():
            transport.write(_TURNED_AWAY)
            transport.close()
            return
        self._crowd.wait_for(self)
        self._allow(self._bounds.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._allow(None)
        self._crowd.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless that would be too much."""
        if self._deadline is None and self._is_answered():
            self._allow(self._bounds.head_s)
        if self._reading is not _Reading.NOTHING:
            self._came += len(data)
            is_body = self._reading is _Reading.BODY
            if self._came > (2 * self._bounds.body_bytes if is_body else 0) + _HEAD_BYTES:
                self.transport.abort()
                return
        self._unset_keepalive_if_required()
        self._feed(data)
        if self._reading is not _Reading.NOTHING:
            self._crowd.wait_for(self)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Who has sent a whole request, and says that this was all, gets an answer still."""
        if self.scheme == "https" or self._is_answered() or self._reading is not _Reading.NOTHING:
            return None
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._reading = _Reading.HEAD
        self._came = 0
        self._allow(self._bounds.head_s)

    def on_headers_complete(self) -> None:
        """A body begins, if there is one."""
        if self.parser.should_upgrade():
            return
        self._reading = _Reading.BODY
        self._allow(self._bounds.body_s)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is whole."""
        if self.parser.should_upgrade():
            return
        self._reading = _Reading.NOTHING
        if self._is_answered():  # before it was whole
            self._allow(self._bounds.keep_alive_s)
        else:
            self._crowd.forget(self)
            self._allow(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is on its way."""
        super().on_response_complete()
        if self._is_answered() and not self.transport.is_closing():
            self._crowd.wait_for(self)

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._allow(self._bounds.body_s)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._allow(None if self._reading is _Reading.NOTHING else self._bounds.body_s)

    def timeout_keep_alive_handler(self) -> None:
        """No other request has come."""
        self.transport.abort()

    def send_400_response(self, _msg: str) -> None:
        """Tell who does not speak HTTP, and hang up."""
        super().send_400_response(_NO_HTTP)

    def _feed(self, data: bytes) -> None:
        """Parse what has come; who asks for another protocol gets this one.

        The parser stops after the head of such a request, and takes its body for the other
        protocol. But Java's client asks for HTTP/2 with whatever it sends, and sends it.
        """
        parts = deque([memoryview(data)])
        while parts and self.parser:
            part = parts.popleft()
            try:
                self.parser.feed_data(part)
            except HttpParserError:
                self.send_400_response(_NO_HTTP)
                return
            except HttpParserUpgrade as upgrade:
                parts.appendleft(part[upgrade.args[0] :])
                parts.appendleft(memoryview(self._head_again()))
                self.parser = HttpRequestParser(self)

    def _head_again(self) -> bytes:
        """The head that was read, without the wish for another protocol; CONNECT is no other."""
        method = self.parser.get_method()
        lines = [b"%b %b HTTP/1.1" % (b"GET" if method == b"CONNECT" else method, self.url)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    def _is_answered(self) -> bool:
        """Whether no request is at work here, nor in line."""
        return not self.pipeline and (self.cycle is None or self.cycle.response_complete)

    def _allow(self, seconds: float | None) -> None:
        """So long from now on, whatever was allowed before; None is without end."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self.transport.abort)
