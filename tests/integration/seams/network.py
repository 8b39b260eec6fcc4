"""A network in memory: an OpenAI-compatible server's bytes, under the real clients and pools."""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections.abc import Callable
from typing import Any, Protocol

import httpcore2
import httpx2

Part = bytes | BaseException
Answer = list[Part]

MODEL = {"id": "c-1", "created": 1, "model": "m-2"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
TIMINGS = {"cache_n": 1, "prompt_n": 2, "prompt_ms": 4.5, "predicted_n": 2, "predicted_ms": 9.0}
COMPLETION: dict[str, Any] = {
    **MODEL,
    "object": "chat.completion",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}
    ],
    "usage": USAGE,
    "timings": TIMINGS,
}


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {**MODEL, "object": "chat.completion.chunk", "choices": choices, **more}


def _called(index: int, **function: str) -> dict[str, Any]:
    call = {"index": index, "id": f"call-{index}", "type": "function", "function": function}
    return {"tool_calls": [call]}


CHUNKS = (
    chunk(None, prompt_progress={"total": 3, "cache": 1, "processed": 2, "time_ms": 4}),
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "a"}),
    chunk({"content": "b"}),
    chunk({}, "stop"),
    chunk(None, usage=USAGE, timings=TIMINGS),
)
OTHER_CHUNKS = (
    chunk({"role": "assistant", "content": None, "reasoning_content": "hm"}),
    chunk({"refusal": "no"}),
    chunk(_called(0, name="f", arguments="")),
    chunk(_called(0, arguments="{}")),
    chunk(_called(1, name="g", arguments="{}")),
    chunk({}, "tool_calls"),
    chunk(None, usage=USAGE),
)


def whole(content: Any, status: int = 200, **headers: str) -> Answer:
    """A response that comes in one piece."""
    body = json.dumps(content).encode()
    return [_head(status, {"content-length": str(len(body)), **headers}), body]


def streamed(*events: Any, kind: str = "data") -> Answer:
    """A response that comes event by event; an exception in an event's place is raised."""
    headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    parts: Answer = [_head(200, headers)]
    for event in events:
        if isinstance(event, BaseException):
            return [*parts, event]
        name = f"event: {event['type']}\n" if kind == "event" else ""
        parts.append(_piece(f"{name}data: {json.dumps(event)}\n\n".encode()))
    if kind == "data":
        parts.append(_piece(b"data: [DONE]\n\n"))
    return [*parts, b"0\r\n\r\n"]


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = {"content-type": "application/json", "connection": "close", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode()


def _piece(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class _Stream(httpcore2.MockStream):
    def __init__(self, network: Network, parts: Answer) -> None:
        super().__init__([])
        self._network = network
        self._parts = parts
        self._was_closed = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._network.on_read()
        part = self._parts.pop(0) if self._parts else b""
        if isinstance(part, BaseException):
            raise part
        return part

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._network.sent.append(buffer)

    def close(self) -> None:
        if not self._was_closed:
            self._was_closed = True
            self._network.close_count += 1


class _AsyncStream(httpcore2.AsyncMockStream):
    def __init__(self, stream: _Stream) -> None:
        super().__init__([])
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer)

    async def aclose(self) -> None:
        self._stream.close()


class Network:
    """Gives each connection the next answer.

    Attributes:
        answers: Of the connections to come; an exception refuses the connection.
        sent: What was written to them.
        close_count: How many of them have been closed.
        on_read: Is called before each read.
    """

    on_read: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self) -> None:
        self.answers: list[Answer | BaseException] = []
        self.sent: list[bytes] = []
        self.close_count = 0

    def connect(self) -> _Stream:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return _Stream(self, list(answer))


class _Backend(httpcore2.MockBackend):
    def __init__(self, network: Network) -> None:
        super().__init__([])
        self._network = network

    def connect_tcp(self, *_: Any, **__: Any) -> httpcore2.NetworkStream:
        return self._network.connect()


class _AsyncBackend(httpcore2.AsyncMockBackend):
    def __init__(self, network: Network) -> None:
        super().__init__([])
        self._network = network

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        return _AsyncStream(self._network.connect())


class HasPool(Protocol):
    """A transport of httpx."""

    _pool: Any


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Made once: making one takes longer than a call."""


def client(network: Network, kind: Callable[..., Any] = httpx2.Client, **options: Any) -> Any:
    """A real client whose connections are in memory."""
    transport = httpx2.HTTPTransport(verify=NO_TLS)
    transport._pool = httpcore2.ConnectionPool(NO_TLS, network_backend=_Backend(network))
    return kind(transport=transport, follow_redirects=True, **options)


def async_client(network: Network, kind: Callable[..., Any] = httpx2.AsyncClient) -> Any:
    """The same, asynchronous."""
    transport = httpx2.AsyncHTTPTransport(verify=NO_TLS)
    transport._pool = httpcore2.AsyncConnectionPool(NO_TLS, network_backend=_AsyncBackend(network))
    return kind(transport=transport, follow_redirects=True)


class Served(socketserver.ThreadingTCPServer):
    """A server on loopback, for clients whose connections are their own to make."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Served)
        self.answers: dict[str, list[Answer]] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url_of(self, *answers: Answer) -> str:
        """Where these are the answers of the requests to come.

        Each time another place: what a client has left behind is answered late, and must not get
        an answer of the next one.
        """
        place = f"/{len(self.answers)}/v1"
        self.answers[place] = [*answers]
        return f"http://127.0.0.1:{self.server_address[1]}{place}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Served(socketserver.StreamRequestHandler):
    server: Served

    def handle(self) -> None:
        _, path, _ = self.rfile.readline().decode().split()
        length = 0
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.rfile.read(length)
        place = next(place for place in self.server.answers if path.startswith(f"{place}/"))
        for part in self.server.answers[place].pop(0):
            assert isinstance(part, bytes), "this network does not break"
            self.wfile.write(part)
            self.wfile.flush()
