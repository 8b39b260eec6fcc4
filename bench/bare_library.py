"""A client library that does nothing: the methods that are timed, and what they must call.

In a real client our code runs cold: a parser, a protocol and a pool run in between and push it out
of the CPU's caches, and what it takes then says as much of them. Here nothing runs in between.
The same wrappers are put around the same methods, and the transport tells the same events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

from openai.types.chat import ChatCompletionChunk

from bench.chat import (
    MODEL,
    events_of,
    read,
    read_and_stamp,
    read_and_stamp_async,
    read_async,
)
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import httpx, openai

_URL: Final = SimpleNamespace(host="127.0.0.1", port=1, scheme="http")
_BEFORE_BODY: Final = (
    "connection.connect_tcp.started",
    "connection.connect_tcp.complete",
    "http11.send_request_headers.started",
    "http11.send_request_headers.complete",
    "http11.send_request_body.started",
    "http11.send_request_body.complete",
    "http11.receive_response_headers.started",
    "http11.receive_response_headers.complete",
    "http11.receive_response_body.started",
)
_AFTER_BODY: Final = (
    "http11.receive_response_body.complete",
    "http11.response_closed.started",
    "http11.response_closed.complete",
)
_TIMED: Final = (
    "Client.send",
    "AsyncClient.send",
    "HTTPTransport.handle_request",
    "AsyncHTTPTransport.handle_async_request",
    "Completions.create",
    "AsyncCompletions.create",
)
_INFO: Final[dict[str, object]] = {}


class _Request:
    def __init__(self) -> None:
        self.url = _URL
        self.headers: dict[str, str] = {}
        self.extensions: dict[str, Any] = {}


class _Response:
    status_code = 200
    headers: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}

    def __init__(self, stream: Any) -> None:
        self.stream = stream


class HTTPTransport:
    """Knows its response beforehand."""

    def __init__(self, chunks: list[ChatCompletionChunk]) -> None:
        self._chunks = chunks

    def handle_request(self, request: _Request) -> _Response:
        """Tell what httpcore tells of a new connection, and answer."""
        trace = request.extensions.get("trace")
        if trace is not None:
            for name in _BEFORE_BODY:
                trace(name, _INFO)
        return _Response(self._body(trace))

    def _body(self, trace: Any) -> Iterator[ChatCompletionChunk]:
        yield from self._chunks
        if trace is not None:
            for name in _AFTER_BODY:
                trace(name, _INFO)


class AsyncHTTPTransport(HTTPTransport):
    """The same, asynchronous."""

    async def handle_async_request(self, request: _Request) -> _Response:
        """Tell what httpcore tells of a new connection, and answer."""
        trace = request.extensions.get("trace")
        if trace is not None:
            for name in _BEFORE_BODY:
                await trace(name, _INFO)
        return _Response(self._async_body(trace))

    async def _async_body(self, trace: Any) -> AsyncIterator[ChatCompletionChunk]:
        for chunk in self._chunks:
            yield chunk
        if trace is not None:
            for name in _AFTER_BODY:
                await trace(name, _INFO)


class Client:
    """Hands requests to its transport."""

    def __init__(self, transport: HTTPTransport) -> None:
        self._transport = transport

    def send(self, request: _Request) -> _Response:
        """Send a request."""
        return self._transport.handle_request(request)


class AsyncClient:
    """The same, asynchronous."""

    def __init__(self, transport: AsyncHTTPTransport) -> None:
        self._transport = transport

    async def send(self, request: _Request) -> _Response:
        """Send a request."""
        return await self._transport.handle_async_request(request)


class _Stream:
    """What comes out of a body."""

    def __init__(self, body: Any) -> None:
        self._chunks = iter(body)

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)


class _AsyncStream:
    """What comes out of an asynchronous body."""

    def __init__(self, body: Any) -> None:
        self._chunks = aiter(body)

    def __aiter__(self) -> _AsyncStream:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._chunks)


class Completions:
    """Makes calls, each with a request of its own."""

    def __init__(self, http: Client) -> None:
        self._http = http
        self._client = SimpleNamespace(base_url=_URL)

    def create(self, *, model: str, stream: bool) -> Any:
        """Call."""
        del model, stream
        return _Stream(self._http.send(_Request()).stream)


class AsyncCompletions:
    """The same, asynchronous."""

    def __init__(self, http: AsyncClient) -> None:
        self._http = http
        self._client = SimpleNamespace(base_url=_URL)

    async def create(self, *, model: str, stream: bool) -> Any:
        """Call."""
        del model, stream
        return _AsyncStream((await self._http.send(_Request())).stream)


def bare_client(chunks: int) -> Completions:
    """A client of this library whose streams have so many chunks."""
    return Completions(Client(HTTPTransport(_parsed(chunks))))


def bare_client_async(chunks: int) -> AsyncCompletions:
    """The same, asynchronous."""
    return AsyncCompletions(AsyncClient(AsyncHTTPTransport(_parsed(chunks))))


class BareChat:
    """Synchronous calls of this library, each of so many chunks."""

    def __init__(self, chunks: int) -> None:
        self._completions = bare_client(chunks)

    def call(self, times: int) -> None:
        """Make calls."""
        for _ in range(times):
            read(self._completions.create(model=MODEL, stream=True))

    def call_and_stamp(self, times: int) -> None:
        """Make calls and time their pulls."""
        for _ in range(times):
            read_and_stamp(self._completions.create(model=MODEL, stream=True))


class AsyncBareChat:
    """The same, asynchronous."""

    def __init__(self, chunks: int) -> None:
        self._completions = bare_client_async(chunks)
        self._loop = asyncio.new_event_loop()

    def call(self, times: int) -> None:
        """Make calls."""

        async def calls() -> None:
            for _ in range(times):
                await read_async(await self._completions.create(model=MODEL, stream=True))

        self._loop.run_until_complete(calls())

    def call_and_stamp(self, times: int) -> None:
        """Make calls and time their pulls."""

        async def calls() -> None:
            for _ in range(times):
                stream = await self._completions.create(model=MODEL, stream=True)
                await read_and_stamp_async(stream)

        self._loop.run_until_complete(calls())


def _parsed(chunks: int) -> list[ChatCompletionChunk]:
    return [ChatCompletionChunk.model_validate(event) for event in events_of(chunks)]


def bare_instrumentor() -> Instrumentor:
    """Puts our wrappers around these classes instead of httpx2's and openai's."""
    every = {target.attribute: target for target in (*httpx.TARGETS, *openai.TARGETS)}
    return Instrumentor(every[attribute]._replace(module=__name__) for attribute in _TIMED)
