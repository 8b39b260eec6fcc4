"""Applications of every kind, and how each is asked over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import BackgroundTasks, FastAPI
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from tests.integration.asgi.wire import asked, request

PARTS = 2_000
FIRST = b"part 0;"


async def parts(count: int = PARTS, *, fails: bool = False) -> AsyncIterator[bytes]:
    """A stream, of parts of many lengths."""
    for number in range(count):
        yield b"part %d;" % number + b"x" * (number % 40)
        if number % 7 == 0:
            await asyncio.sleep(0)
    if fails:
        raise LookupError("in the middle")


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield FIRST
        await asyncio.sleep(0.001)


async def stream(request: Any) -> Response:
    return StreamingResponse(parts())


async def failing_stream(request: Any) -> Response:
    return StreamingResponse(parts(3, fails=True))


async def failing(request: Any) -> Response:
    raise LookupError("before anything")


async def echo(request: Any) -> Response:
    return Response(await request.body())


async def long(request: Any) -> Response:
    return PlainTextResponse("long " * 2_000)


def in_background(done: list[str], request: Any) -> Response:
    async def work() -> None:
        await asyncio.sleep(0)
        done.append("worked")

    return PlainTextResponse("accepted", background=BackgroundTask(work))


async def forever(request: Any) -> Response:
    return StreamingResponse(endless())


def starlette(*layers: Any) -> Any:
    routes = [
        Route("/stream", stream),
        Route("/failing-stream", failing_stream),
        Route("/failing", failing),
        Route("/echo", echo, methods=["POST"]),
        Route("/long", long),
        Route("/background", partial(in_background, [])),
        Route("/forever", forever),
    ]
    return Starlette(routes=[*routes, Mount("/mounted", routes=routes)], middleware=layers)


def fastapi(*layers: Any) -> Any:
    app = FastAPI(middleware=layers)

    @app.get("/stream")
    async def streams() -> Any:
        return StreamingResponse(parts())

    @app.get("/failing-stream")
    async def fails_in_it() -> Any:
        return StreamingResponse(parts(3, fails=True))

    @app.get("/failing")
    async def fails() -> Any:
        raise LookupError("before anything")

    @app.post("/echo")
    async def echoes(body: dict[str, int]) -> Any:
        return body

    @app.get("/long")
    def says_long() -> Any:
        return {"long": "long " * 2_000}

    @app.get("/background")
    async def background(tasks: BackgroundTasks) -> Any:
        tasks.add_task(asyncio.sleep, 0)
        return {"accepted": True}

    @app.get("/forever")
    async def goes_on() -> Any:
        return StreamingResponse(endless())

    app.mount("/mounted", starlette())
    return app


class Plain:
    """An application that nobody knows the framework of."""

    def __init__(self, *layers: Any) -> None:
        self.app: Any = self.answer
        for layer in reversed(layers):
            self.app = layer.cls(self.app, **layer.kwargs)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"].removeprefix("/mounted")
        if path == "/failing":
            raise LookupError("before anything")
        body = b""
        if path == "/echo":
            more = True
            while more:
                message = await receive()
                body, more = body + message["body"], message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        whole = {"/long": b"long " * 2_000, "/echo": body, "/background": b"accepted"}.get(path)
        if whole is not None:
            await send({"type": "http.response.body", "body": whole})
            await asyncio.sleep(0)
            return
        each: AsyncIterator[bytes] = parts()
        if path == "/failing-stream":
            each = parts(3, fails=True)
        elif path == "/forever":
            each = endless()
        async for part in each:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if path == "/forever" and await self._is_gone(receive):
                return
        await send({"type": "http.response.body"})

    async def _is_gone(self, receive: Any) -> bool:
        try:
            message = await asyncio.wait_for(receive(), 0.001)
        except asyncio.TimeoutError:
            return False
        return bool(message["type"] == "http.disconnect")


APPLICATIONS: dict[str, Callable[..., Any]] = {
    "plain": Plain,
    "starlette": starlette,
    "fastapi": fastapi,
}
GZIP = Middleware(GZipMiddleware, minimum_size=100)
PACKED = "Accept-Encoding: gzip"


@dataclass(frozen=True, slots=True)
class Case:
    """A way to ask an application.

    Attributes:
        ask: Asks it over the wire.
        layers: Of the application.
        is_steady: Whether the application sees the same each time, down to the last message.
    """

    ask: Callable[[int], bytes]
    layers: tuple[Any, ...] = ()
    is_steady: bool = True


def whole(*args: Any, **options: Any) -> Callable[[int], bytes]:
    return lambda port: asked(port, request(*args, **options))


def leaving(port: int) -> bytes:
    """The caller goes away as soon as it has the first part."""
    return asked(port, request("/forever"), until=FIRST)


def expecting(port: int) -> bytes:
    """The caller waits for leave to send the body."""
    body = b'{"a": 1}'
    headers = (f"Content-Length: {len(body)}", "Expect: 100-continue")
    head = request("/echo", "POST", "Content-Type: application/json", *headers)
    return asked(port, head, until=b"100 Continue\r\n\r\n", then=body)


def pipelined(port: int) -> bytes:
    return asked(port, request("/long", close=False) * 2 + request("/background"))


JSON = "Content-Type: application/json"
CASES = {
    "a stream of 2,000 parts": Case(whole("/stream")),
    "the same in a mounted application": Case(whole("/mounted/stream")),
    "the caller leaves": Case(leaving, is_steady=False),
    "an error before the response": Case(whole("/failing")),
    "an error in the middle of it": Case(whole("/failing-stream")),
    "a background task": Case(whole("/background")),
    "HEAD": Case(whole("/long", "HEAD")),
    "a method that is not allowed": Case(whole("/long", "DELETE")),
    "no such path": Case(whole("/nothing")),
    "a body": Case(whole("/echo", "POST", JSON, body=b'{"a": 1}')),
    "Expect: 100-continue": Case(expecting),
    "gzip": Case(whole("/long", "GET", PACKED), (GZIP,)),
    "gzip of a stream": Case(whole("/stream", "GET", PACKED), (GZIP,)),
    "pipelined": Case(pipelined),
}
