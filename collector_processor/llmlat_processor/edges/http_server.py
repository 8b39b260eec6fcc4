"""HTTP in a thread of its own, in whose event loop nothing is computed and nothing is waited for.

Only what a server here needs of HTTP: whole answers that are small, to requests whose bodies are
read piece by piece by who wants them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Final, cast

from uvicorn import Config

from llmlat_processor.edges.addresses import host_and_port
from llmlat_processor.edges.http_protocol import Bounds, Crowd, GuardedProtocol
from llmlat_processor.edges.listening import BACKLOG, listening_socket
from llmlat_processor.edges.server_tls import tls_context
from llmlat_processor.settings import Listener

TEXT: Final = "text/plain; charset=utf-8"

_Message = MutableMapping[str, object]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class GoneError(Exception):
    """The client is gone before its request was whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client is told.

    Attributes:
        status: HTTP's.
        content: the body.
        content_type: what that is.
        headers: what else goes with it.
    """

    status: HTTPStatus
    content: bytes
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


class Asked:
    """A request whose head has come.

    Attributes:
        method: in capitals.
        path: without what is asked for behind a question mark.
    """

    __slots__ = ("_headers", "_receive", "is_whole", "method", "path")

    def __init__(self, scope: Mapping[str, object], receive: _Receive) -> None:
        self.method = cast("str", scope["method"])
        self.path = cast("str", scope["path"])
        self._headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        self._receive = receive
        self.is_whole = False

    def header(self, name: str) -> str:
        """A header by its name in small letters; empty where there is none."""
        return self._headers.get(name.encode(), b"").decode("latin-1").strip()

    async def read(self) -> bytes:
        """The next piece of the body; `is_whole` once that was the last.

        Raises:
            GoneError: the client is gone.
        """
        message = await self._receive()
        if message["type"] != "http.request":
            raise GoneError
        self.is_whole = not message["more_body"]
        return cast("bytes", message["body"])


Handle = Callable[[Asked], Awaitable[Answer]]


def told(status: HTTPStatus, words: str, *headers: tuple[str, str]) -> Answer:
    """An answer in words."""
    return Answer(status, f"{words}\n".encode(), TEXT, headers)


class HttpServer:
    """A server that is listening from the moment it is made.

    Raises:
        OSError: the address cannot be had, or a file of its TLS; the message says what to do.
        ValueError: the address is not a host and a port.
    """

    def __init__(self, listener: Listener, handle: Handle, bounds: Bounds) -> None:
        """Bind and serve.

        Args:
            listener: where, and with which TLS; the token is for `handle` to ask for.
            handle: answers a request; called in the event loop, and must not block it.
            bounds: of each connection, and of how many there are.
        """
        host, port = host_and_port(listener.address)
        self._tls = tls_context(listener.tls) if listener.tls else None
        self._socket = listening_socket(host, port)
        self.address: Final = f"{host}:{self._socket.getsockname()[1]}"
        self._handle = handle
        self._bounds = bounds
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._grace_s = 0.0
        self._thread = Thread(target=self._run, name="llmlat-http", daemon=True)
        self._thread.start()

    def stop(self, grace_s: float = 1.0) -> None:
        """Take no more requests, and wait for those that are being answered."""
        if self._thread.is_alive():
            self._grace_s = grace_s
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            self._socket.close()

    async def _serve(self) -> None:
        config = self._config()
        config.load()
        crowd = Crowd(self._bounds.connections)
        server = await self._loop.create_server(
            lambda: GuardedProtocol(config, crowd, self._bounds, self._loop),
            sock=self._socket,
            backlog=BACKLOG,
            ssl=self._tls,
            ssl_handshake_timeout=self._bounds.head_s if self._tls else None,
        )
        await self._over.wait()
        server.close()
        for connection in list(crowd.connections):
            connection.shutdown()
        if crowd.tasks:
            await asyncio.wait(crowd.tasks, timeout=self._grace_s)
        for connection in list(crowd.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # they learn of it
        if crowd.tasks:
            await asyncio.wait(crowd.tasks)

    def _config(self) -> Config:
        """Of uvicorn's protocol alone: its server would take over signals and logging."""
        return Config(
            self._answer,
            interface="asgi3",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            timeout_keep_alive=cast("int", self._bounds.keep_alive_s),  # any number is read
        )

    async def _answer(self, scope: Mapping[str, object], receive: _Receive, send: _Send) -> None:
        try:
            answer = await self._handle(Asked(scope, receive))
        except GoneError:
            return
        headers = (
            ("content-type", answer.content_type),
            ("content-length", str(len(answer.content))),
            *answer.headers,
        )
        encoded = [(name.encode(), value.encode()) for name, value in headers]
        await send(
            {"type": "http.response.start", "status": int(answer.status), "headers": encoded}
        )
        await send({"type": "http.response.body", "body": answer.content})
