"""What users see of ollama with us is what they see without us, however they leave it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from typing import Any

import httpx
import ollama
import pytest

from llmlat_otel.core.guard import faults
from llmlat_semconv import attributes as names
from tests.llmlat_otel.instrumentors.ollama.answers import (
    ASK,
    CUT,
    STREAM,
    all_of,
    the_span,
)


def full_read(client):
    yield from client.chat(**ASK, stream=True)


def whole(client):
    yield client.chat(**ASK)


def positional(client):
    yield from client.chat("llama3.2", ASK["messages"], stream=True)


def broken_off(client):
    for each in client.chat(**ASK, stream=True):
        yield each
        break
    gc.collect()


def closed(client):
    stream = client.chat(**ASK, stream=True)
    yield next(stream)
    stream.close()
    yield next(stream, "over")


def thrown_into(client):
    stream = client.chat(**ASK, stream=True)
    yield next(stream)
    stream.throw(KeyError("theirs"))


def raised_in_the_loop(client):
    for each in client.chat(**ASK, stream=True):
        yield each
        raise KeyError("theirs")


def sent_into(client):
    stream = client.chat(**ASK, stream=True)
    yield next(stream)
    yield stream.send("ignored")
    yield inspect.isgenerator(stream), stream.__name__, iter(stream) is stream


def wrongly_called(client):
    yield client.chat(ASK["model"], ASK["messages"], "too much")


async def full_read_async(client):
    async for each in await client.chat(**ASK, stream=True):
        yield each


async def whole_async(client):
    yield await client.chat(**ASK)


async def closed_async(client):
    stream = await client.chat(**ASK, stream=True)
    yield await anext(stream)
    await stream.aclose()
    yield await anext(stream, "over")


async def thrown_into_async(client):
    stream = await client.chat(**ASK, stream=True)
    yield await anext(stream)
    await stream.athrow(KeyError("theirs"))


async def wrongly_called_async(client):
    yield await client.chat(ASK["model"], ASK["messages"], "too much")


async def cancelled_async(client):
    stream = await client.chat(**ASK, stream=True)
    yield await anext(stream)
    task = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    task.cancel()
    await task


def shown(event):
    return event.model_dump() if hasattr(event, "model_dump") else event


def error_shown(error):
    return type(error).__name__, str(error), repr(error.__cause__), error.__suppress_context__


def seen_of(way, client):
    seen: list[Any] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            seen.extend(shown(each) for each in way(client))
        except Exception as error:  # noqa: BLE001 - what escapes is part of what was seen
            seen.append(error_shown(error))
        gc.collect()
    return seen, [str(each.message) for each in warned]


async def seen_of_async(way, client):
    seen: list[Any] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            async for each in way(client):
                seen.append(shown(each))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the same
            seen.append(error_shown(error))
        gc.collect()
    return seen, [str(each.message) for each in warned]


def transcript(way, server, client, async_client):
    """What a user sees, and the server."""
    if inspect.isasyncgenfunction(way):
        seen = asyncio.run(seen_of_async(way, async_client))
    else:
        seen = seen_of(way, client)
    sent = [(each.method, str(each.url), each.content) for each in server.requests]
    kept = [
        {name: value for name, value in each.headers.items() if name != "traceparent"}
        for each in server.requests
    ]
    closed_counts = [each.closed_count for each in server.bodies]
    server.requests.clear()
    server.bodies.clear()
    return seen, sent, kept, closed_counts


def fails(server):
    server.status = 404


def is_not_there(server):
    server.error = httpx.ConnectError("refused")


def breaks_off(server):
    server.chunks = (*STREAM[:1], CUT)


def says_that_it_failed(server):
    server.chunks = (*STREAM[:1], {"error": "llama runner process no longer running"})


WAYS = {
    each.__name__: each
    for each in (
        *(full_read, whole, positional, broken_off, closed, thrown_into, raised_in_the_loop),
        *(sent_into, wrongly_called, full_read_async, whole_async, closed_async),
        *(thrown_into_async, wrongly_called_async, cancelled_async),
    )
}
FAULTS = (None, fails, is_not_there, breaks_off, says_that_it_failed)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
def test_users_see_what_they_see_without_us(
    server, client, async_client, instrumentors, record, way, fault
):
    if fault is not None:
        fault(server)
    before = faults()
    without = transcript(WAYS[way], server, client, async_client)
    assert record.spans == ()
    for each in instrumentors:
        each.instrument()
    try:
        within = transcript(WAYS[way], server, client, async_client)
    finally:
        for each in instrumentors:
            each.uninstrument()
    assert within == without
    assert faults() == before
    operations = [each for each in record.spans if not each.name.startswith("phase")]
    assert len(operations) == 1


@pytest.mark.parametrize(
    ("fault", "end", "error"),
    [
        (fails, "failed", "ollama._types.ResponseError"),
        (is_not_there, "failed", "httpx.ConnectError"),
        (breaks_off, "failed", "httpx.ReadError"),
        (says_that_it_failed, "failed", "ollama._types.ResponseError"),
    ],
)
@pytest.mark.parametrize("kind", ["client", "async_client"])
def test_a_stream_that_fails_says_so(request, server, timed, record, kind, fault, end, error):
    fault(server)
    with pytest.raises((ollama.ResponseError, httpx.TransportError)):
        all_of(request.getfixturevalue(kind), stream=True)
    attributes = the_span(record).attributes
    assert (attributes[names.LLMLAT_STREAM_END], attributes[names.ERROR_TYPE]) == (end, error)


@pytest.mark.parametrize(
    ("way", "end"),
    [
        ("broken_off", "abandoned"),
        ("closed", "closed_early"),
        ("raised_in_the_loop", "abandoned"),
        ("closed_async", "closed_early"),
        ("cancelled_async", "cancelled"),
    ],
)
def test_a_stream_that_is_left_says_how(server, client, async_client, timed, record, way, end):
    transcript(WAYS[way], server, client, async_client)
    attributes = the_span(record).attributes
    assert attributes[names.LLMLAT_STREAM_END] == end
    assert attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == 1
    assert attributes[names.GEN_AI_RESPONSE_MODEL] == "llama3.2"


def test_a_fault_of_ours_is_nobodys_but_ours(client, instrumentors, record, monkeypatch):
    for each in instrumentors:
        each.instrument()
    before = faults()
    monkeypatch.setattr("llmlat_otel.instrumentors.ollama.read_ollama_durations", lambda *_: 1 / 0)
    try:
        assert len(all_of(client, stream=True)) == 3
        assert all_of(client).message.content == "The sky"
    finally:
        for each in instrumentors:
            each.uninstrument()
    assert sum(faults().values()) > sum(before.values())
