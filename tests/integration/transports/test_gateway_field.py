"""What was reported of other gateways' traces, done with one of ours before a real upstream."""

import asyncio
import gc
from typing import Any

import httpx2
import openai
import pytest
from opentelemetry.trace import SpanKind
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import GEN_AI_CLIENT_INFERENCE_DURATION, LLMLAT_PHASE_DURATION
from tests.integration.sdk.openai_server import STREAM as EVENTS
from tests.integration.sdk.openai_server import Server
from tests.integration.serving import serving
from tests.integration.transports.forwarding import (
    BODY,
    CLIENTS,
    STREAM,
    call_of,
    parent_id,
    served,
    the_id,
)
from tests.llmlat_otel.asgi_driver import DISCONNECT, REQUEST, scope_of

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
EMBED: dict[str, Any] = {"model": "m", "input": "q"}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


# ── Gateways, by what they ask with ──────────────────────────────────────────────────────────────


def passing_through(forward, base_url):
    """Knows nothing of what it forwards."""

    async def endpoint(request):
        content, headers = await request.body(), dict(request.headers)
        url = f"{base_url}/{request.path_params['path']}"

        async def parts():
            async with forward(url, content, headers) as answer:
                async for part in answer.parts:
                    yield part

        return StreamingResponse(parts())

    return endpoint


def asking(make):
    """Asks by a library, to which it gives the headers that it got."""

    def of(_, base_url):
        async def endpoint(request):
            headers = {"traceparent": request.headers.get("traceparent", "")}
            client = openai.AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0)
            made = await make(client, {name: value for name, value in headers.items() if value})

            async def parts():
                async for each in made:
                    yield f"data: {each.model_dump_json()}\n\n"

            if not hasattr(made, "__aiter__"):
                return JSONResponse(made.model_dump())
            return StreamingResponse(parts())

        return endpoint

    return of


def chat(client, headers):
    return client.chat.completions.create(**CHAT, extra_headers=headers)


def chat_streamed(client, headers):
    return client.chat.completions.create(**CHAT, stream=True, extra_headers=headers)


def embeddings(client, headers):
    return client.embeddings.create(**EMBED, encoding_format="float", extra_headers=headers)


def responses(client, headers):
    return client.responses.create(**EMBED, stream=True, extra_headers=headers)


RAW = {
    f"{path}, {how}, {client}": (path, content, passing_through, CLIENTS[client])
    for client in CLIENTS
    for path in ("chat/completions", "embeddings", "responses", "messages")
    for how, content in (("streamed", STREAM), ("whole", BODY))
}
BY_A_LIBRARY = {
    f"{make.__name__}, openai": ("chat/completions", BODY, asking(make), None)
    for make in (chat, chat_streamed, embeddings, responses)
}
EVERY = {**RAW, **BY_A_LIBRARY}
every_kind = pytest.mark.parametrize(
    ("path", "content", "make", "forward"), EVERY.values(), ids=EVERY
)
STREAMED = {name: kind for name, kind in RAW.items() if "chat/completions, streamed" in name}
each_stream = pytest.mark.parametrize(
    ("path", "content", "make", "forward"), STREAMED.values(), ids=STREAMED
)


def ask(endpoint, path, content, *layers, leaves_after=None, **headers):
    """The parts of an answer; who asks may leave after so many of them."""
    app = Starlette(
        routes=[Route("/v1/{path:path}", endpoint, methods=["POST"])], middleware=layers
    )
    sent = []

    async def main():
        left = asyncio.Event()
        asked = [{**REQUEST, "body": content}]

        async def receive():
            if asked:
                return asked.pop()
            await left.wait()
            return DISCONNECT

        async def send(message):
            sent.append(message)
            if len(sent) == leaves_after:
                left.set()

        scope = scope_of(f"/v1/{path}", "POST", **headers)
        scope["asgi"]["spec_version"] = "2.3"  # Who has gone is known at once, not by a send.
        await app(scope, receive, send)

    asyncio.run(main())
    assert sent[0]["status"] == 200
    return [each["body"] for each in sent[1:] if each["body"]]


def server_of(record):
    (found,) = [each for each in record.spans if each.kind is SpanKind.SERVER]
    return found


# ── GW-01, GW-02, GW-04, GW-06 ───────────────────────────────────────────────────────────────────


@every_kind
@pytest.mark.parametrize("headers", [{}, {"traceparent": CALLER}], ids=["unnamed", "named"])
def test_gw_01_gw_02_every_outgoing_kind_names_the_gateways_own_call(
    path, content, make, forward, headers, upstream, record
):
    ask(make(forward, upstream.url), path, content, **headers)
    (seen,) = upstream.requests
    _, trace_id, span_id, _ = seen["traceparent"].split("-")
    span = call_of(record)
    assert span_id == the_id(span)
    assert trace_id == f"{span.context.trace_id:032x}"
    assert (trace_id == CALLER.split("-")[1]) == bool(headers)


@every_kind
def test_gw_04_gw_06_a_route_of_any_kind_is_a_server_s_and_its_call_a_client_s(
    path, content, make, forward, upstream, record
):
    """And both have ended: nothing else is recorded."""
    ask(make(forward, upstream.url), path, content, traceparent=CALLER)
    server, call = server_of(record), call_of(record)
    assert parent_id(server) == CALLER.split("-")[2]
    assert parent_id(call) == the_id(server)
    assert server.name == "gateway /v1/{path}"
    kinds = [each.kind for each in record.spans if not each.name.startswith("phase ")]
    assert sorted(each.name for each in kinds) == ["CLIENT", "SERVER"]
    assert all(each.end_time for each in record.spans)


# ── GW-05 ────────────────────────────────────────────────────────────────────────────────────────


async def end_it_in_every_way(client, url):
    """Read to its end, closed twice over, left, and dropped."""
    async with client.stream("POST", url, content=STREAM) as answer:
        async for _ in answer.aiter_raw():
            pass
        await answer.aclose()
        await answer.aclose()
        await answer.stream.aclose()
    del answer
    gc.collect()


async def end_it_in_every_way_by_a_library(url):
    base_url = url.removesuffix("/chat/completions")
    async with openai.AsyncOpenAI(base_url=base_url, api_key="k") as client:
        async with await client.chat.completions.create(**CHAT, stream=True) as stream:
            async for _ in stream:
                pass
            await stream.response.aclose()
            await stream.close()
            await stream.close()
        del stream
        gc.collect()


def once(record, span):
    """Whether each of its phases, and itself, was counted once."""
    points = record.points()
    phases = [each for each in record.spans if each.name.startswith("phase ")]
    counted = {
        each[names.LLMLAT_PHASE_NAME]: round(total * 1e9)
        for each, total in points[LLMLAT_PHASE_DURATION.name]
    }
    lasted = {
        each.attributes[names.LLMLAT_PHASE_NAME]: each.end_time - each.start_time for each in phases
    }
    assert len(lasted) == len(phases) > 2
    assert counted == lasted
    whole = points.get(GEN_AI_CLIENT_INFERENCE_DURATION.name)
    return whole is None or round(whole[0][1] * 1e9) == span.end_time - span.start_time


def test_gw_05_a_call_that_is_ended_in_every_way_is_one_span_and_counted_once(upstream, record):
    async def main():
        async with httpx2.AsyncClient(trust_env=False) as client:
            await end_it_in_every_way(client, f"{upstream.url}/chat/completions")

    with served() as told:
        asyncio.run(main())
    assert once(record, call_of(record))
    assert (told.what.count("begins"), told.what.count("ended")) == (1, 1)


def test_gw_05_a_library_s_too(upstream, record):
    with served() as told:
        asyncio.run(end_it_in_every_way_by_a_library(f"{upstream.url}/chat/completions"))
    assert once(record, call_of(record))
    assert (told.what.count("begins"), told.what.count("ended")) == (1, 1)


# ── GW-10 ────────────────────────────────────────────────────────────────────────────────────────

LAYERS = {
    "nothing": (),
    "gzip": (Middleware(GZipMiddleware, minimum_size=1),),
}


@each_stream
@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_gw_10_a_head_that_comes_first_or_is_withheld_ends_no_phase(
    path, content, make, forward, layers, record
):
    """The upstream says at once that it accepts, and nothing else for a while."""
    quiet_ns = 60 * MS
    model = Server()
    model.events = (lambda: asyncio.run(asyncio.sleep(quiet_ns / 1e9)), *EVENTS)
    with serving(model):
        headers = {"accept-encoding": "gzip", "traceparent": CALLER}
        ask(make(forward, model.url), path, content, *layers, **headers)
    phases = {
        each.name.removeprefix("phase "): each.end_time - each.start_time
        for each in record.spans
        if each.name.startswith("phase ")
    }
    assert phases["upstream"] >= quiet_ns, "it lasts until there is an event"
    others = [phases.get(name, 0) for name in ("admission", "upstream_stream", "finalize")]
    assert sum(others) < quiet_ns, "and nobody's accepting was slow"


# ── ST-10 ────────────────────────────────────────────────────────────────────────────────────────


def test_st_10_a_caller_that_leaves_after_the_last_event_leaves_a_whole_call(upstream, record):
    """The application is cancelled while its library waits for what comes after it."""
    _, content, make, _ = BY_A_LIBRARY["chat_streamed, openai"]
    waiting = Server()
    waiting.events = (*EVENTS[:-1], lambda: asyncio.run(asyncio.sleep(0.2)))
    with serving(waiting):
        endpoint = make(None, waiting.url)
        parts = ask(endpoint, "chat/completions", content, leaves_after=len(EVENTS))
    assert len(parts) == len(EVENTS) - 1
    said = call_of(record).attributes
    assert said[names.LLMLAT_STREAM_END] == "complete"
    assert names.ERROR_TYPE not in said
    assert names.ERROR_TYPE not in server_of(record).attributes


@pytest.mark.parametrize("client", ["httpx-async", "httpx2-async", "aiohttp"])
def test_st_10_who_reads_no_events_knows_no_last_one(client, record):
    """Its call was over when it was left, and that is said; its caller knows how it ended."""
    waiting = Server()
    waiting.events = (*EVENTS, lambda: asyncio.run(asyncio.sleep(0.2)))
    with serving(waiting):
        endpoint = passing_through(CLIENTS[client], waiting.url)
        ask(endpoint, "chat/completions", STREAM, leaves_after=len(EVENTS) + 1)
    assert call_of(record).attributes[names.LLMLAT_STREAM_END] in {"closed_early", "cancelled"}
    assert names.ERROR_TYPE not in server_of(record).attributes
