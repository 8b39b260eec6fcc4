"""ollama's own client: what its calls ask for, and what their responses say."""

from __future__ import annotations

import asyncio
import gc
import inspect

import httpx
import ollama
import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from llmlat_otel.core.instrumentor import State
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, reported_duration_attribute, reported_evidence_attribute
from tests.llmlat_otel.instrumentors.ollama.answers import (
    ASK,
    EMBEDDED,
    LAST,
    PLACE,
    STREAM,
    TOOL,
    all_of,
    said,
    the_span,
)


def reports(span):
    return {
        phase.value: span.attributes[reported_duration_attribute(phase)]
        for phase in Phase
        if reported_duration_attribute(phase) in span.attributes
    }


def check_reported(span):
    attributes = span.attributes
    assert reports(span) == {"load": 0.001334875, "prefill": 0.342546, "decode": 4.535599}
    assert attributes[reported_evidence_attribute(Phase.LOAD)] == "bounded"
    assert attributes[names.LLMLAT_DECODE_TOKENS] == 281
    assert attributes[names.GEN_AI_USAGE_INPUT_TOKENS] == 26
    assert attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 282
    assert attributes[names.GEN_AI_RESPONSE_MODEL] == "llama3.2"
    assert attributes[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)


def check_asked(span, *, streamed):
    attributes = span.attributes
    assert attributes[names.GEN_AI_PROVIDER_NAME] == "ollama"
    assert attributes[names.GEN_AI_REQUEST_STREAM] is streamed
    assert attributes[names.SERVER_ADDRESS] == "127.0.0.1"
    assert attributes[names.SERVER_PORT] == 11434


both = pytest.mark.parametrize("kind", ["client", "async_client"])


@both
def test_a_response_that_comes_whole(request, timed, record, kind):
    all_of(request.getfixturevalue(kind))
    span = the_span(record)
    check_asked(span, streamed=False)
    check_reported(span)


@both
def test_a_stream(request, timed, record, kind):
    all_of(request.getfixturevalue(kind), stream=True)
    span = the_span(record)
    check_asked(span, streamed=True)
    check_reported(span)
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert span.attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == 3
    assert span.attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] == 0.06


def test_a_stream_begins_when_it_is_first_pulled(client, clock, timed, record):
    stream = client.chat(**ASK, stream=True)
    clock.advance(1_000 * MS)
    start_ns = clock.monotonic_ns
    with record.tracer_provider.get_tracer("app").start_as_current_span("reading") as reading:
        next(stream)
        stream.close()
    (span,) = [each for each in record.spans if each.name == "chat llama3.2"]
    assert span.attributes[names.LLMLAT_CLOCK_MONOTONIC_START] == start_ns
    assert span.parent.span_id == reading.get_span_context().span_id


@both
def test_the_request_names_its_span(request, server, timed, record, kind):
    all_of(request.getfixturevalue(kind), stream=True)
    span_id = f"{the_span(record).get_span_context().span_id:016x}"
    assert server.requests[0].headers["traceparent"].split("-")[2] == span_id


@pytest.mark.parametrize("leave", [lambda stream: stream.close(), lambda stream: None])
def test_a_stream_that_is_never_pulled_is_no_call(client, server, timed, record, leave):
    leave(client.chat(**ASK, stream=True))
    gc.collect()
    assert server.requests == []
    assert record.spans == ()


def test_an_asynchronous_one_that_is_never_pulled_neither(async_client, server, timed, record):
    async def main():
        stream = await async_client.chat(**ASK, stream=True)
        await stream.aclose()
        await async_client.chat(**ASK, stream=True)
        gc.collect()

    asyncio.run(main())
    assert server.requests == []
    assert record.spans == ()


def test_a_request_beside_a_stream_is_none_of_its_own(client, server, timed, record):
    stream = client.chat(**ASK, stream=True)
    next(stream)
    client.ps()
    list(stream)
    assert "traceparent" not in server.requests[1].headers
    check_reported(the_span(record))


def test_a_stream_that_is_not_sampled_is_named_to_the_peer(client, server, timed, clock):
    with recorded(clock=clock, sampler=ALWAYS_OFF) as nothing:
        assert len(all_of(client, stream=True)) == 3
    assert server.requests[0].headers["traceparent"].endswith("-00")
    assert nothing.spans == ()


def test_a_stream_whose_making_is_suppressed_is_no_call(client, server, timed, record):
    with suppress_instrumentation():
        all_of(client, stream=True)
    assert record.spans == ()
    assert "traceparent" not in server.requests[0].headers


def test_what_has_not_all_that_ollama_sends_is_somebody_elses(client, server, timed, record):
    server.chunks = (*STREAM[:-1], {**said(), **LAST, "total_duration": None})
    all_of(client, stream=True)
    assert reports(the_span(record)) == {}


def test_a_completion(client, server, timed, record):
    server.chunks = (
        {"model": "llama3.2", "response": "", "thinking": "hm", "done": False},
        {"model": "llama3.2", "response": "The", "done": False},
        {"model": "llama3.2", "response": "", **LAST},
    )
    list(client.generate("llama3.2", "why?", stream=True))
    span = the_span(record, "text_completion llama3.2")
    check_reported(span)
    assert span.attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] == 0.07


def test_embeddings(client, server, timed, record):
    server.whole = EMBEDDED
    client.embed("all-minilm", "why?")
    span = the_span(record, "embeddings all-minilm")
    assert reports(span) == {"load": 0.0010195}
    assert span.attributes[names.GEN_AI_USAGE_INPUT_TOKENS] == 8
    assert names.GEN_AI_USAGE_OUTPUT_TOKENS not in span.attributes


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"content": "The"}, "text"),
        ({"tool_calls": [TOOL]}, "tool_call"),
        ({"content": "The", "tool_calls": [TOOL]}, "text"),
        ({"thinking": "hm"}, None),
        ({}, None),
    ],
)
def test_what_is_content(client, server, timed, record, message, kind):
    server.chunks = (said(**message), {**said(), **LAST})
    all_of(client, stream=True)
    assert the_span(record).attributes.get(names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND) == kind


def test_a_stream_without_its_last_chunk_is_incomplete(client, server, timed, record):
    server.chunks = STREAM[:-1]
    all_of(client, stream=True)
    span = the_span(record)
    assert span.attributes[names.LLMLAT_STREAM_END] == "incomplete"
    assert reports(span) == {}
    assert span.attributes[names.GEN_AI_RESPONSE_MODEL] == "llama3.2"


def test_a_model_that_is_asked_to_load_and_no_more(client, server, timed, record):
    server.whole = {**said(), "done": True, "done_reason": "load"}
    client.chat("llama3.2")
    assert reports(the_span(record)) == {}


def test_functions_of_the_package_are_methods_of_its_own_client(server, timed, record, monkeypatch):
    own = ollama.Client(PLACE, transport=httpx.MockTransport(server.answer))
    monkeypatch.setattr(ollama._client, "_client", own._client)
    list(ollama.chat(**ASK, stream=True))
    check_reported(the_span(record))


def test_each_target_is_there_and_put_back(instrumentors):
    ours, _ = instrumentors
    before = ollama.Client.chat, ollama.AsyncClient.chat, ollama.generate
    ours.instrument()
    assert {each.state for each in ours.states()} == {State.WRAPPED}
    assert inspect.iscoroutinefunction(ollama.AsyncClient.chat)
    assert inspect.signature(ollama.Client.chat) == inspect.signature(before[0])
    ours.uninstrument()
    assert (ollama.Client.chat, ollama.AsyncClient.chat, ollama.generate) == before
