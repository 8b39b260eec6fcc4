"""A gateway's part: requests forwarded as they are, by each client it may use, and its spans."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import httpx
import httpx2
from opentelemetry.trace import SpanKind

from llmlat_otel.core.serving import Served, serving
from llmlat_otel.testing import Recorded

BODY: Final = b'{"model": "m", "messages": []}'
STREAM: Final = b'{"model": "m", "messages": [], "stream": true}'


@dataclass
class Forwarded:
    """A response from upstream, as the gateway has it.

    Attributes:
        status: Of HTTP.
        headers: Without the date.
        parts: Gives the parts of the body as they come.
        close: Closes the response before its end.
        own: The library's own response.
    """

    status: int
    headers: list[tuple[str, str]]
    parts: AsyncIterator[bytes]
    close: Callable[[], Any]
    own: Any = field(repr=False)


Forward = Callable[..., AbstractAsyncContextManager[Forwarded]]
"""Forwards a request: `forward(url, content, headers)`; the client is closed at the end."""


def _headers(headers: Any) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() != "date"]


async def _each(parts: Any) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _sync(library: Any) -> Forward:
    @asynccontextmanager
    async def forward(url: str, content: bytes, headers: Any, **options: Any) -> Any:
        with library.Client(trust_env=False, **options) as client:
            asked = client.build_request("POST", url, content=content, headers=headers)
            answer = client.send(asked, stream=True)

            async def close() -> None:
                answer.close()

            parts = _each(answer.iter_raw())
            told = _headers(answer.headers)
            yield Forwarded(answer.status_code, told, parts, close, answer)

    return forward


def _async(library: Any) -> Forward:
    @asynccontextmanager
    async def forward(url: str, content: bytes, headers: Any, **options: Any) -> Any:
        async with library.AsyncClient(trust_env=False, **options) as client:
            asked = client.build_request("POST", url, content=content, headers=headers)
            answer = await client.send(asked, stream=True)
            parts, told = answer.aiter_raw(), _headers(answer.headers)
            yield Forwarded(answer.status_code, told, parts, answer.aclose, answer)

    return forward


async def _chunks(content: Any) -> AsyncIterator[bytes]:
    """The server's own: the end of one may be in another packet than what is in it."""
    chunk = b""
    async for part, is_end in content.iter_chunks():
        chunk += part
        if is_end and chunk:
            yield chunk
            chunk = b""
    if chunk:
        yield chunk


@asynccontextmanager
async def _aiohttp(url: str, content: bytes, headers: Any, **options: Any) -> Any:
    follows = options.pop("follow_redirects", False)
    async with aiohttp.ClientSession(**options) as session:
        asked = session.post(url, data=content, headers=headers, allow_redirects=follows)
        async with asked as answer:

            async def close() -> None:
                answer.close()

            parts, told = _chunks(answer.content), _headers(answer.headers)
            yield Forwarded(answer.status, told, parts, close, answer)


CLIENTS: Final[dict[str, Forward]] = {
    "httpx": _sync(httpx),
    "httpx-async": _async(httpx),
    "httpx2": _sync(httpx2),
    "httpx2-async": _async(httpx2),
    "aiohttp": _aiohttp,
}


class Told(Served):
    """A request that is being served, and what it has been told.

    Attributes:
        what: In order.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.what: list[str] = []
        self.at_ns: list[int] = []

    def _note(self, what: str, at_ns: int) -> None:
        self.what.append(what)
        self.at_ns.append(at_ns)

    def upstream_begins(self, at_ns: int) -> None:
        self._note("begins", at_ns)

    def upstream_event(self, at_ns: int) -> None:
        self._note("event", at_ns)

    def upstream_ended(self, at_ns: int) -> None:
        self._note("ended", at_ns)


@contextmanager
def served(traceparent: str | None = None) -> Iterator[Told]:
    """What runs here is done for a request that is being served."""
    told = Told()
    told.traceparent = traceparent
    serving.set(told)
    try:
        yield told
    finally:
        serving.set(None)


def the_id(span: Any) -> str:
    return f"{span.get_span_context().span_id:016x}"


def calls(record: Recorded) -> list[Any]:
    """The upstream calls that have ended."""
    return [each for each in record.spans if each.kind is SpanKind.CLIENT]


def call_of(record: Recorded) -> Any:
    (found,) = calls(record)
    return found


def phases_of(record: Recorded, span: Any) -> list[str]:
    under = [each for each in record.spans if each.parent and the_id(span) == parent_id(each)]
    return [each.name.removeprefix("phase ") for each in under]


def parent_id(span: Any) -> str:
    return f"{span.parent.span_id:016x}"


async def read(
    forward: Forward, url: str, content: bytes = STREAM, headers: Any = None, **options: Any
) -> list[Any]:
    async with forward(url, content, headers, **options) as answer:
        parts = [part async for part in answer.parts]
    return [answer.status, answer.headers, parts]


def relay(
    forward: Forward, url: str, *args: Any, traceparent: str | None = None, **options: Any
) -> tuple[list[Any], Told]:
    """Forward a request for one that is served; what the gateway has seen, and what was told."""
    with served(traceparent) as told:
        return asyncio.run(read(forward, url, *args, **options)), told
