"""One account from an application through a gateway: whose time the client's waiting was."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import httpx2
import openai
import pytest
import uvicorn
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.trace import SpanKind
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from llmlat_otel.testing import Recorded
from llmlat_processor.model import ExplainedTrace, Path
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode
from llmlat_semconv.values import SectionLabel
from tests.integration.coexistence.upstream import Upstream
from tests.integration.sdk.openai_server import STREAM, Server
from tests.integration.serving import serving

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
MS = 1_000_000
PATIENCE_S = 60


def pause() -> None:
    """How long the model takes to its first token, and from there to its last one."""
    time.sleep(0.03)


@pytest.fixture
def model() -> Iterator[Server]:
    server = Server()
    events = [each for each in STREAM if "timings" not in each and "prompt_progress" not in each]
    server.events = (pause, *events[:3], pause, *events[3:])
    with serving(server):
        yield server


def _kept(headers: Any) -> dict[str, str]:
    """What a gateway forwards: all that is not its connection's own, its caller's name included."""
    own = {"host", "content-length", "connection", "transfer-encoding", "date", "server"}
    return {name: value for name, value in headers.items() if name.lower() not in own}


def by_httpx(url: str) -> Callable[[Request], Any]:
    async def forward(request: Request) -> Response:
        client = httpx2.AsyncClient(trust_env=False)
        asked = client.build_request(
            "POST", url, content=await request.body(), headers=_kept(request.headers)
        )
        answer = await client.send(asked, stream=True)

        async def relay() -> AsyncIterator[bytes]:
            async for part in answer.aiter_raw():
                yield part

        closing = BackgroundTask(client.aclose)
        headers = _kept(answer.headers)
        return StreamingResponse(relay(), answer.status_code, headers, background=closing)

    return forward


def by_aiohttp(url: str) -> Callable[[Request], Any]:
    async def forward(request: Request) -> Response:
        session = aiohttp.ClientSession(auto_decompress=False)
        headers = _kept(request.headers)
        answer = await session.post(url, data=await request.body(), headers=headers)

        async def relay() -> AsyncIterator[bytes]:
            async for part in answer.content.iter_any():
                yield part

        closing = BackgroundTask(session.close)
        kept = _kept(answer.headers)
        return StreamingResponse(relay(), answer.status, kept, background=closing)

    return forward


def by_a_library(url: str) -> Callable[[Request], Any]:
    async def forward(request: Request) -> Response:
        client = openai.AsyncOpenAI(base_url=url.removesuffix("/chat/completions"), api_key="k")
        chunks = await client.chat.completions.create(**await request.json())

        async def relay() -> AsyncIterator[str]:
            async for chunk in chunks:
                yield f"data: {chunk.model_dump_json()}\n\n"
            yield "data: [DONE]\n\n"

        closing = BackgroundTask(client.close)
        return StreamingResponse(relay(), media_type="text/event-stream", background=closing)

    return forward


@contextmanager
def gateway(forward: Callable[[Request], Any]) -> Iterator[str]:
    app = Starlette(routes=[Route("/v1/chat/completions", forward, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = True  # which waits for what is under way
            thread.join()


def explained(record: Recorded) -> ExplainedTrace:
    """What the processor makes of it."""
    return process(decode(encode_spans(record.spans).SerializeToString()).spans)


def totals_ms(path: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in path.sections:
        label = each.label.value
        found[label] = found.get(label, 0.0) + each.duration_ns / MS
    return found


def sum_ns(path: Path) -> int:
    return sum(each.duration_ns for each in path.sections)


def until_served(record: Recorded) -> None:
    """The last byte is here before the gateway knows that it has sent it."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(each.kind is SpanKind.SERVER for each in record.spans):
        assert time.monotonic() < deadline, "the gateway's span has not ended"
        time.sleep(0.001)


class Patient(httpx2.HTTPTransport):
    """Reads an answer, and gives it out when the gateway has finished."""

    def __init__(self, record: Recorded) -> None:
        super().__init__()
        self._record = record

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        answer.read()
        until_served(self._record)
        return answer


def ask_for_a_stream(url: str, record: Recorded) -> None:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        said = ""
        for each in client.chat.completions.create(**ASK, stream=True):
            said += each.choices[0].delta.content or "" if each.choices else ""
            if each.choices and each.choices[0].finish_reason:
                until_served(record)
        assert said == "ab"


def ask_for_all(url: str, record: Recorded) -> None:
    http = httpx2.Client(transport=Patient(record))
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0, http_client=http) as client:
        assert client.chat.completions.create(**ASK).choices[0].message.content == "ab"


@pytest.mark.parametrize("by", [by_httpx, by_aiohttp])
def test_the_gateway_s_time_stands_in_the_place_of_the_client_s_waiting(
    record: Recorded, model: Server, by: Callable[[str], Any]
) -> None:
    with gateway(by(f"{model.url}/chat/completions")) as url:
        ask_for_a_stream(url, record)
    found = explained(record)
    assert [each.kind.value for each in found.findings] == []
    names = {each.span_id: each.name for each in found.trace.operations}
    parents = {each.name: names.get(each.parent_id) for each in found.trace.operations}
    assert parents == {
        "chat m": None,
        "gateway /v1/chat/completions": "chat m",
        "chat": "gateway /v1/chat/completions",
    }
    (root,) = found.paths.roots
    assert root.ttft is not None
    assert sum_ns(root.e2e) == root.e2e.root.end_ns - root.e2e.root.start_ns
    e2e = totals_ms(root.e2e)
    assert {"admission", "route", "upstream", "upstream_stream"} <= set(e2e)
    assert {"wait", "first_content", "stream", "work"}.isdisjoint(e2e)
    assert e2e["upstream"] > 25
    assert e2e["upstream_stream"] > 25


@pytest.mark.parametrize("by", [by_httpx, by_aiohttp])
def test_an_answer_in_one_piece_has_one_account_too(
    record: Recorded, upstream: Upstream, by: Callable[[str], Any]
) -> None:
    with gateway(by(f"{upstream.url}/chat/completions")) as url:
        ask_for_all(url, record)
    found = explained(record)
    assert [each.kind.value for each in found.findings] == []
    (root,) = found.paths.roots
    e2e = totals_ms(root.e2e)
    assert sum_ns(root.e2e) == root.e2e.root.end_ns - root.e2e.root.start_ns
    assert {"admission", "route", "upstream"} <= set(e2e)
    assert {"wait", "upstream_stream", "work"}.isdisjoint(e2e)


def test_a_library_s_call_in_a_gateway_is_its_call_upstream(
    record: Recorded, model: Server
) -> None:
    with gateway(by_a_library(f"{model.url}/chat/completions")) as url:
        ask_for_a_stream(url, record)
    found = explained(record)
    assert [each.kind.value for each in found.findings] == []
    (root,) = found.paths.roots
    assert sum_ns(root.e2e) == root.e2e.root.end_ns - root.e2e.root.start_ns
    assert SectionLabel.WORK.value not in totals_ms(root.e2e)
