"""A server on loopback that speaks the three APIs of openai which others instrument as well."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "m-2"

_CHAT_USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
_RESPONSE_USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 5,
}


class Upstream(ThreadingHTTPServer):
    """Answers at once.

    Attributes:
        requests: Headers of the requests so far.
        statuses: Of the requests to come; 200 where there is none.
        location: Where 307 leads to; to the same place if None.
        may_go_on: Streams wait for it after their first event.

    Each response has an id of its own: OpenLLMetry leaves out one that it knows.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.location: str | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # A whole response is one packet, whose connection can be used again at once.
    server: Upstream

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        self.server.requests.append({name.lower(): value for name, value in self.headers.items()})
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 307:
            self._whole(status, {}, location=self.server.location or self.path)
        elif status != 200:
            self._whole(status, {"error": {"message": "no"}}, retry_after_ms="1")
        elif self.path.endswith("/embeddings"):
            self._whole(200, _embeddings())
        elif self.path.endswith("/responses"):
            number = len(self.server.requests)
            self._answer(asked, _response(number, "completed"), _response_events(number))
        else:
            self._answer(asked, _completion(), _chunks())

    def _answer(self, asked: dict[str, Any], whole: Any, events: Iterator[tuple[str, Any]]) -> None:
        if asked.get("stream"):
            self._stream(events)
        else:
            self._whole(200, whole)

    def _whole(self, status: int, content: Any, **headers: str) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[tuple[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, event in events:
            head = f"event: {name}\n" if name else ""
            self._chunk(f"{head}data: {json.dumps(event)}\n\n")
            self.server.may_go_on.wait(5)
        self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def _completion() -> dict[str, Any]:
    message = {"role": "assistant", "content": "ab"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_chat("chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def _chat(kind: str) -> dict[str, Any]:
    return {"id": "c-1", "object": kind, "created": 1, "model": MODEL}


def _chunks() -> Iterator[tuple[str, Any]]:
    for delta, finish in (
        ({"role": "assistant", "content": ""}, None),
        ({"content": "a"}, None),
        ({"content": "b"}, None),
        ({}, "stop"),
    ):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield "", {**_chat("chat.completion.chunk"), "choices": [choice]}
    yield "", {**_chat("chat.completion.chunk"), "choices": [], "usage": _CHAT_USAGE}


def _embeddings() -> dict[str, Any]:
    vector = {"object": "embedding", "index": 0, "embedding": [0.5, 0.5]}
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return {"object": "list", "data": [vector], "model": MODEL, "usage": usage}


def _response(number: int, status: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": "ab", "annotations": []}
    message = {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [text],
    }
    return {
        "id": f"r-{number}",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": MODEL,
        "output": [message] if status == "completed" else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _RESPONSE_USAGE if status == "completed" else None,
    }


def _response_events(number: int) -> Iterator[tuple[str, Any]]:
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": _response(number, "in_progress")}),
        ("response.output_text.delta", _delta("a")),
        ("response.output_text.delta", _delta("b")),
        ("response.completed", {"response": _response(number, "completed")}),
    ]
    for sequence, (kind, event) in enumerate(events):
        yield kind, {"type": kind, "sequence_number": sequence, **event}


def _delta(text: str) -> dict[str, Any]:
    return {
        "item_id": "msg-1",
        "output_index": 0,
        "content_index": 0,
        "delta": text,
        "logprobs": [],
    }
