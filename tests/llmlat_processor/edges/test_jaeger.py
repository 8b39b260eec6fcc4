"""The client of Jaeger's query API against a server that answers as Jaeger does, or otherwise."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server
from threading import Thread
from typing import Any

import pytest

from llmlat_processor.edges.jaeger import fetch
from llmlat_processor.jaeger_address import Address

Answer = tuple[int, Mapping[str, str], bytes]

ID = "4bf92f3577b34da6a3ce929d0e0e4736"
V3, V1 = f"/base/api/v3/traces/{ID}?raw_traces=true", f"/base/api/traces/{ID}?raw=true"
PAGE: Answer = (200, {"Content-Type": "text/html"}, b"<!doctype html><title>Jaeger UI</title>")
V3_NOT_FOUND: Answer = (404, {}, b'{"error":{"httpCode":404,"message":"No traces found"}}')
V1_NOT_FOUND: Answer = (404, {}, b'{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}')


class Server(ThreadingHTTPServer):
    """Answers by path, and remembers what it was asked."""

    daemon_threads = True
    answers: Mapping[str, Answer] = {}

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def address(self) -> Address:
        return Address(f"http://127.0.0.1:{self.server_port}/base", ID)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, headers, body = self.server.answers.get(self.path, (404, {}, b"404 page not found"))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing of it belongs on the terminal."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def refused(server: Server, **limits: Any) -> str:
    with pytest.raises(OSError, match=re.escape(server.address.base.split("/")[2])) as raised:
        list(fetch(server.address, **limits))
    return str(raised.value)


def test_the_api_that_keeps_nanoseconds_is_asked_first_and_the_other_only_if_need_be(
    server: Server,
) -> None:
    server.answers = {V3: (200, {}, b'{"result": {}}'), V1: (200, {}, b'{"data": []}')}

    answers = fetch(server.address)

    assert next(answers) == b'{"result": {}}'
    assert server.asked == [V3]
    assert [*answers] == [b'{"data": []}']
    assert server.asked == [V3, V1]


@pytest.mark.parametrize("without", [(404, {}, b"404 page not found"), PAGE, V3_NOT_FOUND])
def test_an_older_jaeger_is_asked_by_its_own_api(server: Server, without: Answer) -> None:
    server.answers = {V3: without, V1: (200, {}, b'{"data": []}')}

    assert [*fetch(server.address)] == [b'{"data": []}']


def test_a_compressed_answer_is_unpacked(server: Server) -> None:
    content = json.dumps({"result": list(range(1_000_000))}).encode()
    server.answers = {V3: (200, {"Content-Encoding": "gzip"}, gzip.compress(content))}

    assert next(fetch(server.address)) == content


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_an_answer_without_end_is_not_read_to_its_end(server: Server, encoding: str) -> None:
    body = b"[" + bytes(10**7)
    sent = gzip.compress(body) if encoding == "gzip" else body
    server.answers = {V3: (200, {"Content-Encoding": encoding}, sent)}

    assert "more than 4 MiB" in refused(server, most_bytes=4 * 2**20)


def test_compression_that_holds_nothing_is_not_read_without_end(server: Server) -> None:
    empty_blocks = b"\0\0\0\xff\xff" * 2**20
    sent = gzip.compress(b"")[:10] + empty_blocks
    server.answers = {V3: (200, {"Content-Encoding": "gzip"}, sent)}

    assert "more than 4 MiB" in refused(server, most_bytes=4 * 2**20)


def test_what_follows_the_compressed_answer_is_not_read(server: Server) -> None:
    sent = gzip.compress(b"{}") + bytes(10**7)
    server.answers = {V3: (200, {"Content-Encoding": "gzip"}, sent)}

    assert next(fetch(server.address, most_bytes=4 * 2**20)) == b"{}"


def test_compression_that_breaks_off_is_told(server: Server) -> None:
    server.answers = {V3: (200, {"Content-Encoding": "gzip"}, gzip.compress(b"{}")[:-9])}

    assert "breaks off" in refused(server)


def test_broken_compression_is_told(server: Server) -> None:
    server.answers = {V3: (200, {"Content-Encoding": "gzip"}, b"no gzip")}

    assert "broken gzip" in refused(server)


@pytest.mark.parametrize(
    ("v3", "v1", "told"),
    [
        (V3_NOT_FOUND, V1_NOT_FOUND, "has no such trace (trace not found); one can be read some"),
        (V3_NOT_FOUND, PAGE, "has no such trace (No traces found)"),
        (PAGE, PAGE, "not as Jaeger's query API does; is it Jaeger's UI, on port 16686"),
        ((404, {}, b"nginx"), (404, {}, b"[]"), "not as Jaeger's query API does"),
        ((401, {}, b""), (401, {}, b""), "wants a login (HTTP 401); download the trace"),
        ((500, {}, b""), (404, {}, b""), "answers with HTTP 500 Internal Server Error"),
        ((500, {}, b'{"error": {"message": "storage"}}'), PAGE, "HTTP 500 storage"),
        ((500, {}, b'{"error": {"message": "\\u001b[2Ja"}}'), PAGE, "HTTP 500  [2Ja"),
        ((500, {}, b"[" * 10**6), PAGE, "HTTP 500 Internal Server Error"),
    ],
)
def test_a_refusal_is_told_with_what_to_do(
    server: Server, v3: Answer, v1: Answer, told: str
) -> None:
    server.answers = {V3: v3, V1: v1}

    assert told in refused(server)


def test_a_port_where_nobody_listens_is_told() -> None:
    with closing(create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(OSError, match=rf"127.0.0.1:{port} \(Connection refused\); .* 16686"):
        next(fetch(Address(f"http://127.0.0.1:{port}", ID)))


def test_a_server_that_says_nothing_is_not_waited_for_without_end() -> None:
    with closing(create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]

        with pytest.raises(OSError, match=f"127.0.0.1:{port} does not answer in time"):
            next(fetch(Address(f"http://127.0.0.1:{port}", ID), timeout_s=0.05))


def test_what_speaks_no_http_is_told() -> None:
    with closing(create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]

        def answer() -> None:
            connection, _ = other.accept()
            connection.sendall(b"\0\0\x06\x04\0\0\0\0\0\r\n")  # gRPC's port
            connection.close()

        thread = Thread(target=answer)
        thread.start()
        with pytest.raises(OSError, match=rf"{port} \(no answer in HTTP\); .* 16686"):
            next(fetch(Address(f"http://127.0.0.1:{port}", ID)))
        thread.join()


def test_an_answer_that_breaks_off_is_told(server: Server) -> None:
    server.answers = {V3: (200, {"Content-Length": "99"}, b"{}")}

    assert "breaks off" in refused(server)


def test_no_proxy_stands_before_this_machine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.answers = {V3: (200, {}, b"{}")}

    assert next(fetch(server.address)) == b"{}"
