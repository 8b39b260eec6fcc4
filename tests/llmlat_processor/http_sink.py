"""A destination for spans over HTTP: takes what is sent, or answers as it is told to."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

from tests.llmlat_processor.sink import Arrivals


class Reply(NamedTuple):
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


HttpAnswer = Callable[[], Reply]


class HttpSink(Arrivals):
    """A server of HTTP/1.1 on loopback."""

    def __init__(
        self, answers: Sequence[Reply | HttpAnswer] = (), context: ssl.SSLContext | None = None
    ) -> None:
        """Listen; the first requests get these answers, all others are taken."""
        super().__init__()
        self.paths: list[str] = []
        self.connections = 0
        self._answers = list(answers)
        self._server = _Server(("127.0.0.1", 0), self._handler())
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.address = f"127.0.0.1:{self._server.server_port}"
        self.url = f"{scheme}://{self.address}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, headers: Mapping[str, str], content: bytes) -> Reply:
        body = gzip.decompress(content) if headers.get("content-encoding") == "gzip" else content
        with self._changed:
            answer = self._answers.pop(0) if self._answers else None
            self.paths.append(path)
        self.has_come(body, headers)
        if isinstance(answer, Reply):
            return answer
        if answer is not None:
            return answer()
        self.take(body)
        return Reply()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def setup(self) -> None:
                super().setup()
                sink.connections += 1

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._reply(sink.answer(self.path, headers, content))

            def do_GET(self) -> None:
                self._reply(Reply(405))

            def _reply(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in {
                    "content-length": f"{len(reply.body)}",
                    **reply.headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # connections are kept, and nobody waits for their end
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """A client that goes away is no news."""


@contextmanager
def http_sink(
    *answers: Reply | HttpAnswer, context: ssl.SSLContext | None = None
) -> Iterator[HttpSink]:
    server = HttpSink(answers, context)
    try:
        yield server
    finally:
        server.stop()
