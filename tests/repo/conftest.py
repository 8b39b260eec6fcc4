"""What tests about the repository share: where it is, and how a file is planted in a tree."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.repo.programs import Plant


@pytest.fixture
def root() -> Path:
    """The real tree."""
    return Path(__file__).parents[2]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Writes a file at a path relative to `tmp_path`, folders included."""

    def write(path: str, text: str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    """Base URL of a server that answers chat completions, and takes OTLP and forgets it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class _Answer(BaseHTTPRequestHandler):
    """Answers a chat completion, streamed if asked to be; anything else with an empty body."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/chat/completions"):
            self._send("application/x-protobuf", b"")
        elif json.loads(request).get("stream"):
            chunks = (_completion("delta", {"content": text}) for text in ("Good ", "day."))
            events = "".join(f"data: {chunk}\n\n" for chunk in (*chunks, "[DONE]"))
            self._send("text/event-stream", events.encode())
        else:
            message = {"role": "assistant", "content": "Good day."}
            self._send("application/json", _completion("message", message).encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: the output belongs to the snippet."""


def _completion(part: str, content: dict[str, str]) -> str:
    kind = "chat.completion.chunk" if part == "delta" else "chat.completion"
    choice = {"index": 0, "finish_reason": None if part == "delta" else "stop", part: content}
    return json.dumps({"id": "1", "object": kind, "created": 1, "model": "m", "choices": [choice]})
