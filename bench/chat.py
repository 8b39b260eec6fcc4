"""Streamed chat completions out of memory: openai's client and a real connection pool, no socket.

Every chunk is a read of its own, as on a network, so that what is paid per read is paid here too.
The server closes the connection after each response: each call makes one. There is no limit to
them, since a stream of openai's that is dropped before it is read never gives its connection back.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter_ns
from typing import Final, Protocol

import httpcore2
import httpx2
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionUserMessageParam

MODEL: Final = "model"

_COMMON: Final = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": MODEL}
_SAYS: Final[ChatCompletionUserMessageParam] = {"role": "user", "content": "Hi"}
_BASE_URL: Final = "http://127.0.0.1:1/v1"
_OK: Final = b"HTTP/1.1 200 OK\r\nconnection: close\r\n"
_HEAD: Final = _OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_WHOLE_HEAD: Final = _OK + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"


def events_of(chunks: int) -> list[dict[str, object]]:
    """The events of a response: the first has a role, the others content, the last its end too."""
    deltas = [{"role": "assistant", "content": ""}, *[{"content": " word"}] * (chunks - 1)]
    ends = [None] * (chunks - 1) + ["stop"]
    return [_event(delta, end) for delta, end in zip(deltas, ends, strict=True)]


def reads_of(chunks: int) -> list[bytes]:
    """What each read of a response gives: its head, an event each, its end."""
    events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events_of(chunks)]
    return [_HEAD, *map(_framed, events), _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"]


def whole_reads() -> list[bytes]:
    """The same for a response that is not streamed."""
    message = {"role": "assistant", "content": "word"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = json.dumps({**_COMMON, "object": "chat.completion", "choices": [choice], "usage": usage})
    return [_WHOLE_HEAD % len(body), body.encode()]


def _event(delta: dict[str, str], finish_reason: str | None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {**_COMMON, "object": "chat.completion.chunk", "choices": [choice]}


def _framed(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


class _Transport(httpx2.HTTPTransport):
    def __init__(self, reads: list[bytes]) -> None:
        super().__init__(verify=False)
        backend = httpcore2.MockBackend(reads)
        self._pool = httpcore2.ConnectionPool(max_connections=None, network_backend=backend)


class _AsyncTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, reads: list[bytes]) -> None:
        super().__init__(verify=False)
        backend = httpcore2.AsyncMockBackend(reads)
        self._pool = httpcore2.AsyncConnectionPool(max_connections=None, network_backend=backend)


def client(reads: list[bytes]) -> OpenAI:
    """A client whose every request is answered with these reads."""
    http = httpx2.Client(transport=_Transport(reads))
    return OpenAI(api_key="key", base_url=_BASE_URL, http_client=http, max_retries=0)


def async_client(reads: list[bytes]) -> AsyncOpenAI:
    """The same, asynchronous."""
    http = httpx2.AsyncClient(transport=_AsyncTransport(reads))
    return AsyncOpenAI(api_key="key", base_url=_BASE_URL, http_client=http, max_retries=0)


async def settle() -> None:
    """Let generators close: openai leaves them behind, nested; each takes a turn of the loop."""
    for _ in range(8):
        await asyncio.sleep(0)


class Chat(Protocol):
    """A program that makes calls, one after the other, and reads each stream to its end."""

    def call(self, times: int) -> None:
        """Make calls."""

    def call_and_stamp(self, times: int) -> None:
        """The same, and time each pull in the plainest way: two clock reads and an append."""


class SyncChat:
    """Synchronous calls, each of so many chunks."""

    def __init__(self, chunks: int) -> None:
        self._client = client(reads_of(chunks))

    def call(self, times: int) -> None:
        """Make calls."""
        self._call(times, read)

    def call_and_stamp(self, times: int) -> None:
        """Make calls and time their pulls."""
        self._call(times, read_and_stamp)

    def _call(self, times: int, follow: Callable[[Iterator[object]], None]) -> None:
        for _ in range(times):
            follow(self._client.chat.completions.create(model=MODEL, messages=[_SAYS], stream=True))


def read(stream: Iterator[object]) -> None:
    """Read a stream to its end."""
    for _chunk in stream:
        pass


def read_and_stamp(stream: Iterator[object]) -> None:
    """The same, and time each pull."""
    stamps = array("q")
    chunk: object = stream
    while chunk is not None:
        pulled_ns = perf_counter_ns()
        chunk = next(stream, None)
        stamps.append(perf_counter_ns() - pulled_ns)


class AsyncChat:
    """Asynchronous calls in a loop of their own."""

    def __init__(self, chunks: int) -> None:
        self._client = async_client(reads_of(chunks))
        self._loop = asyncio.new_event_loop()

    def call(self, times: int) -> None:
        """Make calls."""
        self._loop.run_until_complete(self._call(times, read_async))

    def call_and_stamp(self, times: int) -> None:
        """Make calls and time their pulls."""
        self._loop.run_until_complete(self._call(times, read_and_stamp_async))

    async def _call(
        self, times: int, follow: Callable[[AsyncIterator[object]], Awaitable[None]]
    ) -> None:
        for _ in range(times):
            await follow(
                await self._client.chat.completions.create(
                    model=MODEL, messages=[_SAYS], stream=True
                )
            )
        await settle()


async def read_async(stream: AsyncIterator[object]) -> None:
    """Read an asynchronous stream to its end."""
    async for _chunk in stream:
        pass


async def read_and_stamp_async(stream: AsyncIterator[object]) -> None:
    """The same, and time each pull."""
    stamps = array("q")
    chunk: object = stream
    while chunk is not None:
        pulled_ns = perf_counter_ns()
        chunk = await anext(stream, None)
        stamps.append(perf_counter_ns() - pulled_ns)


CHATS: Final[dict[str, Callable[[int], Chat]]] = {"sync": SyncChat, "async": AsyncChat}
