"""A real OpenAI-compatible server on loopback; the standard library only, for any program."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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


TEXT = {"type": "output_text", "text": "ab", "annotations": []}
MESSAGE = {"type": "message", "id": "i-1", "role": "assistant", "status": "completed"}
RESPONSE_USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 5,
}


def response(status: str, **more: Any) -> dict[str, Any]:
    fixed = {"id": "r-1", "object": "response", "created_at": 1, "model": "m-2", "output": []}
    asked = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**fixed, **asked, "status": status, **more}


WHOLE_RESPONSE = response(
    "completed", output=[{**MESSAGE, "content": [TEXT]}], usage=RESPONSE_USAGE
)
ITEM = {"output_index": 0, "item_id": "i-1"}
PART = {**ITEM, "content_index": 0}
RESPONSE_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "response.created", "response": response("in_progress")},
    {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}},
    {"type": "response.content_part.added", **PART, "part": {**TEXT, "text": ""}},
    {"type": "response.output_text.delta", **PART, "delta": "a", "logprobs": []},
    {"type": "response.output_text.delta", **PART, "delta": "b", "logprobs": []},
    {"type": "response.output_text.done", **PART, "text": "ab", "logprobs": []},
    {"type": "response.content_part.done", **PART, "part": TEXT},
    {"type": "response.output_item.done", **ITEM, "item": {**MESSAGE, "content": [TEXT]}},
    {"type": "response.completed", "response": WHOLE_RESPONSE},
)
RESPONSE_STREAM = tuple(
    {**event, "sequence_number": number} for number, event in enumerate(RESPONSE_EVENTS)
)


class Server(ThreadingHTTPServer):
    """Answers each request with the next status, 200 if there is none, and the same stream.

    Attributes:
        statuses: Of the requests to come.
        events: Of each stream of chat; a callable is called, `CUT` breaks the connection.
        response_events: The same, of each stream of the Responses API.
        requests: Headers and body of the requests so far.
        open_connections: How many clients are connected.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses: list[int] = []
        self.events: tuple[Any, ...] = STREAM
        self.response_events: tuple[Any, ...] = RESPONSE_STREAM
        self.open_connections: int = 0
        self._counting = threading.Lock()
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def count_connection(self, change: int) -> None:
        """A client has come (1) or gone (-1)."""
        with self._counting:
            self.open_connections += change

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    """Answers one client."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        self.server.count_connection(1)
        super().setup()

    def finish(self) -> None:
        self.server.count_connection(-1)
        super().finish()

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
        elif self.path.endswith("/responses"):
            self._respond(body)
        elif body.get("stream"):
            self._stream(self.server.events, "[DONE]")
        else:
            message = {"role": "assistant", "content": "ab"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            completion = {**MODEL, "object": "chat.completion", "choices": [choice]}
            self._whole(200, {**completion, "usage": USAGE, "timings": TIMINGS})

    def _respond(self, body: dict[str, Any]) -> None:
        if body.get("stream"):
            self._stream(self.server.response_events, None)
        else:
            self._whole(200, WHOLE_RESPONSE)

    def _whole(self, status: int, content: dict[str, Any], *headers: tuple[str, str]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: tuple[Any, ...], last: str | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("x-request-id", "q-1")
        self.end_headers()
        for event in events:
            if event is CUT:
                self.close_connection = True
                return
            if callable(event):
                event()
            else:
                self._event(json.dumps(event), event.get("type"))
        if last is not None:
            self._event(last, None)
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str, name: str | None) -> None:
        line = f"data: {data}\n\n" if name is None else f"event: {name}\ndata: {data}\n\n"
        sent = line.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(sent), sent))
        self.wfile.flush()
