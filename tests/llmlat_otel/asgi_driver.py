"""A server and applications for tests of ASGI: messages are passed by hand, on a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from llmlat_otel.core.serving import Served, serving
from llmlat_otel.testing import MS, ManualClock

App = Callable[[Any, Any, Any], Awaitable[Any]]
Message = dict[str, Any]

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SILENT_CALLER = f"{CALLER[:-2]}00"

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
END: Message = {"type": "http.response.body", "body": b"", "more_body": False}
REQUEST: Message = {"type": "http.request", "body": b"", "more_body": False}
DISCONNECT: Message = {"type": "http.disconnect"}


def part(body: bytes = b"x", *, more: bool = True) -> Message:
    """A part of a response's body."""
    return {"type": "http.response.body", "body": body, "more_body": more}


def scope_of(path: str = "/", method: str = "GET", **headers: str) -> dict[str, Any]:
    """What a server says of a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }


@dataclass
class Server:
    """Hands out messages and takes some; each send takes its time.

    Attributes:
        clock: Is moved by each send.
        to_come: What the application receives, in turn; then that the caller is gone.
        send_ns: How long a send takes.
        refuses: Raised by the send of so many messages, counted from 0.
    """

    clock: ManualClock
    to_come: list[Message] = field(default_factory=lambda: [REQUEST])
    send_ns: int = 2 * MS
    refuses: dict[int, BaseException] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    raised: BaseException | None = None

    async def receive(self) -> Message:
        return self.to_come.pop(0) if self.to_come else DISCONNECT

    async def send(self, message: Message) -> None:
        if len(self.sent) in self.refuses:
            raise self.refuses.pop(len(self.sent))
        self.clock.advance(self.send_ns)
        self.sent.append(message)

    async def ask(self, app: App, scope: dict[str, Any] | None = None) -> None:
        """Have an application answer, in a task of its own as servers do."""
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_task(self._asked(app, scope or scope_of()))

    async def _asked(self, app: App, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self.receive, self.send)
        except BaseException as error:  # noqa: BLE001 - what escapes is part of what is seen
            self.raised = error

    def answer(self, app: App, scope: dict[str, Any] | None = None) -> Server:
        """The same, in a loop of its own."""
        asyncio.run(self.ask(app, scope))
        return self


def upstream() -> Served:
    """The request that is being answered, for an application that asks a model by hand."""
    served = serving.get()
    assert served is not None
    return served


def forwarding(clock: ManualClock, events: Iterable[int] = (10, 10, 10), status: int = 200) -> App:
    """A gateway: each event comes after so many ms, and is passed on 1 ms later."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        clock.advance(3 * MS)
        upstream().upstream_begins(clock.now_ns())
        await send({**START, "status": status})
        for wait_ms in events:
            clock.advance(wait_ms * MS)
            at_ns = clock.now_ns()
            upstream().upstream_event(at_ns)
            clock.advance(1 * MS)
            await send(part())
        upstream().upstream_ended(at_ns)
        await send(END)

    return app


def saying(*messages: Any, after: Callable[[], Awaitable[None]] | None = None) -> App:
    """An application that says this, and may do something else afterwards."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)
        if after is not None:
            await after()

    return app
