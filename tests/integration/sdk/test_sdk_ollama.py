"""ollama's own client over a real connection: the request is sent when the stream is pulled."""

from __future__ import annotations

import asyncio
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import ollama
import pytest

from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import httpx as transport
from llmlat_otel.instrumentors.ollama import TARGETS
from llmlat_otel.settings import Settings
from llmlat_otel.testing import recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, reported_duration_attribute
from tests.integration.serving import serving

PIECES = ("The", " sky", " is")
# docs/api.md: the last chunk of /api/generate, of a model that was loaded for it
LAST = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 10706818083,
    "load_duration": 6338219291,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 130079000,
    "eval_count": 259,
    "eval_duration": 4232710000,
}


class Server(ThreadingHTTPServer):
    """Streams the same answer to whatever it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.parents: list[str | None] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self):
        self.server.parents.append(self.headers["traceparent"])
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in PIECES:
            self.write({"model": "m", "message": {"role": "assistant", "content": piece}})
        self.write({"model": "m", "message": {"role": "assistant", "content": ""}, **LAST})
        self.wfile.write(b"0\r\n\r\n")

    def write(self, chunk):
        line = json.dumps({"done": False, **chunk}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    made = Server()
    with serving(made):
        yield made


@pytest.fixture
def record():
    before = faults()
    instrumentors = Instrumentor(TARGETS), Instrumentor(transport.TARGETS)
    for each in instrumentors:
        each.instrument()
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as what:
        yield what
    for each in instrumentors:
        each.uninstrument()
    assert faults() == before


@pytest.fixture
def place(server):
    return "http://{}:{}".format(*server.server_address)


async def ask(place):
    client = ollama.AsyncClient(place)
    stream = await client.chat("m", [{"role": "user", "content": "q"}], stream=True)
    chunks = [each.message.content async for each in stream]
    await client.close()
    return chunks


def ask_at_once(place):
    with ollama.Client(place) as client:
        stream = client.chat("m", [{"role": "user", "content": "q"}], stream=True)
        return [each.message.content for each in stream]


@pytest.mark.parametrize("way", [ask, ask_at_once])
def test_all_phases_of_the_transport_are_the_calls(server, place, record, way):
    chunks = asyncio.run(way(place)) if way is ask else way(place)
    assert chunks == [*PIECES, ""]
    call, *phases = record.spans
    assert call.name == "chat m"
    assert call.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert call.attributes[reported_duration_attribute(Phase.LOAD)] == 6.338219291
    span_id = f"{call.get_span_context().span_id:016x}"
    assert [each.split("-")[2] for each in server.parents] == [span_id]
    found = [each.attributes[names.LLMLAT_PHASE_NAME] for each in phases]
    assert found[:5] == ["prepare", "pool_wait", "connect", "send", "wait"]
    assert found[-2:] == ["stream", "finalize"]


def test_a_stream_that_is_left_gives_its_connection_back(server, place, record):
    with ollama.Client(place) as client:
        for _ in client.chat("m", [{"role": "user", "content": "q"}], stream=True):
            break
        assert client._client._transport._pool.connections == []
    assert record.spans[0].attributes[names.LLMLAT_STREAM_END] == "abandoned"
