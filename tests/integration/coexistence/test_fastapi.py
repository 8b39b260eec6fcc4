"""FastAPI and OpenTelemetry's instrumentation of it, on a real uvicorn: whose part a stream is."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
import uvicorn
from fastapi import BackgroundTasks, FastAPI
from fastapi.responses import StreamingResponse
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

import llmlat_otel
from llmlat_otel.core.clock import Clock
from llmlat_otel.settings import Settings
from llmlat_otel.testing import Recorded, recorded
from llmlat_semconv import attributes as names
from tests.integration.coexistence.upstream import Upstream
from tests.integration.serving import serving

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    with serving(upstream):
        yield upstream


@pytest.fixture
def record() -> Iterator[Recorded]:
    llmlat_otel.instrument()
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as what:
        yield what
    llmlat_otel.uninstrument()


@pytest.fixture
def get(record, upstream):
    """Asks an app whose routes stream an answer, or work on after it, and waits for its end."""
    app = FastAPI()
    tracer = record.tracer_provider.get_tracer("app")

    async def answer():
        async with openai.AsyncOpenAI(base_url=upstream.url, api_key="k") as client:
            async for chunk in await client.chat.completions.create(**ASK, stream=True):
                yield "".join(each.delta.content or "" for each in chunk.choices)

    async def summarise():
        with tracer.start_as_current_span("background"):
            async for _ in answer():
                pass

    @app.get("/stream")
    async def stream():
        with tracer.start_as_current_span("route"):
            return StreamingResponse(answer())

    @app.get("/background")
    async def background(tasks: BackgroundTasks):
        with llmlat_otel.agent("handler"):
            tasks.add_task(summarise)
            return {"accepted": True}

    FastAPIInstrumentor.instrument_app(app, tracer_provider=record.tracer_provider)

    def ask(path, **options):
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
            with httpx2.Client(trust_env=False) as client:
                answered = client.get(url, **options)
            server.should_exit = True  # which waits for what is under way
            thread.join()
        return answered

    return ask


def by_name(record, wanted):
    return next(each for each in record.spans if each.name == wanted)


def test_cx_10_a_stream_that_the_route_returns_is_part_of_the_request(get, record, upstream):
    """The route's span is over when it returns; the server's lasts until the last byte."""
    assert get("/stream").text == "ab"
    chat, server, route = (by_name(record, each) for each in ("chat m", "GET /stream", "route"))
    assert chat.parent.span_id == server.context.span_id
    assert chat.context.trace_id == server.context.trace_id == route.context.trace_id
    assert route.end_time <= chat.start_time
    assert server.end_time >= chat.end_time
    assert upstream.requests[0]["traceparent"].split("-")[1] == f"{server.context.trace_id:032x}"
    assert chat.attributes[names.LLMLAT_STREAM_END] == "complete"


def test_a_callers_trace_goes_through_the_app_to_the_model(get, record, upstream):
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01", "baggage": "user=alice"}
    get("/stream", headers=headers)
    assert upstream.requests[0]["traceparent"].split("-")[1] == trace_id
    assert "baggage" not in upstream.requests[0]
    assert f"{by_name(record, 'chat m').context.trace_id:032x}" == trace_id


def test_work_after_the_reply_is_timed_and_outlives_the_handler(get, record):
    assert get("/background").json() == {"accepted": True}
    handler = by_name(record, "invoke_agent handler")
    chat, background = by_name(record, "chat m"), by_name(record, "background")
    assert chat.parent.span_id == background.context.span_id
    assert background.start_time >= handler.end_time
