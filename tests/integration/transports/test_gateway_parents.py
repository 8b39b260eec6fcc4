"""Whom a gateway's request names, which requests are none of ours, and others beside us."""

import asyncio
from functools import partial
from typing import Any

import httpx
import openai
import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

import llmlat_otel
from llmlat_semconv import attributes as names
from tests.integration.transports.forwarding import (
    BODY,
    CLIENTS,
    call_of,
    calls,
    parent_id,
    phases_of,
    read,
    relay,
    served,
    the_id,
)

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHERS = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

each_client = pytest.mark.parametrize("forward", CLIENTS.values(), ids=CLIENTS)


@pytest.fixture
def url(upstream):
    return f"{upstream.url}/chat/completions"


# ── Whom the request names ───────────────────────────────────────────────────────────────────────


@each_client
def test_gw_01_the_callers_name_that_was_passed_on_is_replaced(upstream, url, record, forward):
    headers = {"TraceParent": CALLER, "tracestate": "caller=1"}
    relay(forward, url, headers=headers, traceparent=CALLER)
    (seen,) = upstream.requests
    assert seen["traceparent"].split("-")[2] == the_id(call_of(record))
    assert "tracestate" not in seen, "it is another trace here, and has none"
    assert headers["TraceParent"] == CALLER, "what the application has is its own"


@each_client
def test_another_name_stays(upstream, url, record, forward):
    headers = {"traceparent": OTHERS, "tracestate": "others=1"}
    relay(forward, url, headers=headers, traceparent=CALLER)
    assert {name: upstream.requests[0][name] for name in headers} == headers


@each_client
@pytest.mark.parametrize("name", [CALLER, OTHERS], ids=["the caller's", "another"])
def test_gw_01_of_a_library_in_a_gateway_too(upstream, url, record, call, forward, name):
    """It may be given the caller's headers to send along."""
    with served(CALLER):
        call(lambda: asyncio.run(read(forward, url, headers={"traceparent": name})))
    (seen,) = upstream.requests
    assert seen["traceparent"].split("-")[2] in {the_id(call_of(record)), OTHERS.split("-")[2]}
    assert (seen["traceparent"] == OTHERS) == (name == OTHERS)


# ── What is none of ours ─────────────────────────────────────────────────────────────────────────


def untouched(upstream, record):
    return record.spans == () and all("traceparent" not in each for each in upstream.requests)


@each_client
def test_without_a_request_that_is_served_there_is_no_gateway(upstream, url, record, forward):
    asyncio.run(read(forward, url))
    assert untouched(upstream, record)


@each_client
def test_what_is_asked_after_the_last_byte_is_none_of_the_requests(upstream, url, record, forward):
    with served() as told:
        told.is_over = True
        asyncio.run(read(forward, url))
    assert untouched(upstream, record)


@each_client
@pytest.mark.parametrize("path", ["/audit", "/threads/7/messages", "/forms/7/responses"])
def test_a_request_to_somebody_else_is_the_applications_own(upstream, record, forward, path):
    _, told = relay(forward, f"{upstream.url}{path}")
    assert untouched(upstream, record)
    assert told.what == []


@each_client
@pytest.mark.parametrize("operation", [llmlat_otel.agent, llmlat_otel.tool])
def test_an_agent_that_asks_itself_is_no_gateway(upstream, url, record, forward, operation):
    with served(), operation("own"):
        asyncio.run(read(forward, url))
    assert all("traceparent" not in each for each in upstream.requests)
    assert calls(record) == []


# ── Beside others ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def theirs(record):
    """OpenTelemetry's instrumentation of httpx, which leaves other methods than it has found."""
    llmlat_otel.uninstrument()
    methods = [
        (httpx.HTTPTransport, "handle_request"),
        (httpx.AsyncHTTPTransport, "handle_async_request"),
    ]
    found = [getattr(*each) for each in methods]
    instrumentor = HTTPXClientInstrumentor()
    yield partial(instrumentor.instrument, tracer_provider=record.tracer_provider)
    llmlat_otel.uninstrument()
    instrumentor.uninstrument()
    for (owner, name), method in zip(methods, found, strict=True):
        setattr(owner, name, method)


@pytest.mark.parametrize("order", ["first", "second"])
def test_a_span_of_the_transport_hangs_under_ours(upstream, url, record, theirs, order):
    installs = (llmlat_otel.instrument, theirs)
    for install in installs if order == "first" else reversed(installs):
        install()
    with served(CALLER), httpx.Client(trust_env=False) as client:
        client.post(url, content=BODY, headers={"traceparent": CALLER})
    (ours, transport) = calls(record)
    assert (ours.name, parent_id(transport)) == ("chat", the_id(ours))
    assert upstream.requests[0]["traceparent"].split("-")[2] == the_id(transport)


def test_a_call_of_a_library_in_a_gateway_stays_a_clients_and_tells(upstream, record):
    with served() as told, openai.OpenAI(base_url=upstream.url, api_key="k") as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
        chunks = list(client.chat.completions.create(**asked, stream=True))
    span = call_of(record)
    assert span.attributes[names.LLMLAT_BOUNDARY_NAME] == "client"
    assert {"send", "wait", "stream"} <= set(phases_of(record, span))
    assert told.what == ["begins", *["event"] * len(chunks), "ended"]
