"""A real OpenAI-compatible server on loopback, and real clients that are timed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
import pytest

import llmlat_otel
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.settings import Settings
from llmlat_otel.testing import Recorded, recorded

MODEL = {"id": "c-1", "created": 1, "model": "m-2"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
TIMINGS = {"cache_n": 1, "prompt_n": 2, "prompt_ms": 4.5, "predicted_n": 2, "predicted_ms": 9.0}

CUT = object()
"""In a script: the server breaks the connection."""


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {**MODEL, "object": "chat.completion.chunk", "choices": choices, **more}


STREAM = (
    chunk(None, prompt_progress={"total": 3, "cache": 1, "processed": 2, "time_ms": 4}),
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "a"}),
    chunk({"content": "b"}),
    chunk({}, "stop"),
    chunk(None, usage=USAGE, timings=TIMINGS),
)


class Server(ThreadingHTTPServer):
    """Answers each request with the next status, 200 if there is none, and the same stream.

    Attributes:
        statuses: Of the requests to come.
        events: Of each stream; a callable is called, `CUT` breaks the connection.
        requests: Headers and body of the requests so far.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.events: tuple[Any, ...] = STREAM
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((headers, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 307:
            self._whole(status, {"moved": True}, ("location", self.path))
        elif status != 200:
            self._whole(status, {"error": {"message": "no"}}, ("retry-after-ms", "1"))
        elif body.get("stream"):
            self._stream()
        else:
            message = {"role": "assistant", "content": "ab"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            completion = {**MODEL, "object": "chat.completion", "choices": [choice]}
            self._whole(200, {**completion, "usage": USAGE, "timings": TIMINGS})

    def _whole(self, status: int, content: dict[str, Any], *headers: tuple[str, str]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in self.server.events:
            if event is CUT:
                self.close_connection = True
                return
            if callable(event):
                event()
            else:
                self._event(json.dumps(event))
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str) -> None:
        line = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        self.wfile.flush()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def cut() -> object:
    return CUT


@pytest.fixture
def instrumented() -> Iterator[None]:
    llmlat_otel.instrument()
    yield
    llmlat_otel.uninstrument()


@pytest.fixture
def record(instrumented: None) -> Iterator[Recorded]:
    """What is recorded, by a real clock; no fault of ours may have happened meanwhile."""
    before = faults()
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as what:
        yield what
    assert faults() == before


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="k") as made:
        yield made


@pytest.fixture
def make_async_client(server: Server) -> Callable[[], openai.AsyncOpenAI]:
    return lambda: openai.AsyncOpenAI(base_url=server.url, api_key="k")
