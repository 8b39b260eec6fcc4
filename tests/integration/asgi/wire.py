"""A real server on loopback, asked by a raw socket: what goes over the wire, byte for byte."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

ASK_WITHIN_S = 20
_DATE = re.compile(rb"\r\ndate: [^\r]*", re.IGNORECASE)


class Log:
    """What an application sees: what it is called with, what it receives, how its sends end.

    It stands within whatever instruments the application.

    Args:
        app: The application.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.lines: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        told = {name: each for name, each in scope.items() if name not in {"client", "server"}}
        self.lines.append(["called", sorted(told), told.get("path"), told.get("headers")])

        async def receives() -> Any:
            message = await receive()
            self.lines.append(["received", message])
            return message

        async def sends(message: Any) -> None:
            try:
                returned = await send(message)
            except BaseException as error:
                self.lines.append(["not sent", message, repr(error)])
                raise
            self.lines.append(["sent", message, returned])

        try:
            await self.app(scope, receives, sends)
        except BaseException as error:
            self.lines.append(["raised", repr(error)])
            raise
        self.lines.append(["returned"])

    def seen(self) -> str:
        """All of it; headers name the port."""
        return re.sub(r"127\.0\.0\.1:\d+", "HOST", repr(self.lines))


class Errors(logging.Handler):
    """What the server logs of exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else None
        self.lines.append(f"{record.getMessage()} {raised!r}")


class Stage:
    """Has one application after another answer on one server.

    Attributes:
        app: Answers now.
    """

    def __init__(self) -> None:
        self.app: Any = None
        self._running = 0
        self._idle = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._running += 1
        self._idle.clear()
        try:
            await self.app(scope, receive, send)
        finally:
            self._running -= 1  # The server has its say before it is told.
            asyncio.get_running_loop().call_soon(self._rest)

    def _rest(self) -> None:
        if not self._running:
            self._idle.set()

    def asked(self, app: Any, ask: Callable[[], bytes]) -> bytes:
        """Ask an application, and wait for it to have nothing more to do."""
        self.app = app
        self._idle.clear()
        came = ask()
        assert self._idle.wait(ASK_WITHIN_S)
        return came


@contextmanager
def served(app: Any, lifespan: str = "off") -> Iterator[tuple[int, list[str]]]:
    """Serve an application while the block lasts: the port, and what the server logs."""
    config = uvicorn.Config(app, log_config=None, lifespan=lifespan, ws="none")  # type: ignore[arg-type]
    server, errors = uvicorn.Server(config), Errors()
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(errors)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1], errors.lines
        finally:
            server.should_exit = True  # which waits for what is under way
            thread.join()
            logger.removeHandler(errors)


def request(
    path: str = "/", method: str = "GET", *headers: str, body: bytes = b"", close: bool = True
) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test", *headers]
    if close:
        lines.append("Connection: close")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def asked(port: int, data: bytes, *, until: bytes | None = None, then: bytes = b"") -> bytes:
    """What comes back for some bytes, without its dates.

    Args:
        port: Of the server.
        data: What is sent.
        until: Read until this has come, and not to the end.
        then: Sent after that, to be answered to the end; without it the connection is closed.
    """
    with socket.create_connection(("127.0.0.1", port), ASK_WITHIN_S) as connection:
        connection.sendall(data)
        came = b""
        while until is None or until not in came:
            more = connection.recv(65536)
            if not more:
                return _DATE.sub(b"", came)
            came += more
        came = came[: came.index(until) + len(until)]
        if then:
            connection.sendall(then)
            while more := connection.recv(65536):
                came += more
    return _DATE.sub(b"", came)
