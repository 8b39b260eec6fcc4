"""Ten ways out of a stream, sync and async: one ended span each, and nothing else changes."""

import asyncio
import gc
import threading
import time
from typing import Any

import httpx2
import openai
import pytest

from llmlat_semconv import attributes as names

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": True}


class UserError(Exception):
    """Raised by the user's own code."""


def full_read(client):
    chunks = list(client.chat.completions.create(**ASK))
    assert len(chunks) == 6


def break_out(client):
    for _ in client.chat.completions.create(**ASK):
        break


def early_return(client):
    def first():
        for chunk in client.chat.completions.create(**ASK):
            return chunk
        return None

    assert first() is not None


def close(client):
    stream = client.chat.completions.create(**ASK)
    next(stream)
    stream.close()
    assert stream.response.is_closed


def leave_the_block(client):
    with client.chat.completions.create(**ASK) as stream:
        for _ in stream:
            break
    assert stream.response.is_closed


def exception_in_the_block(client):
    with pytest.raises(UserError), client.chat.completions.create(**ASK) as stream:
        next(stream)
        raise UserError
    assert stream.response.is_closed


def exception_from_the_wire(client):
    with pytest.raises(openai.APIConnectionError):
        list(client.chat.completions.create(**ASK))


def interrupted(client):
    def body():
        yield b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
        yield b'"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
        raise KeyboardInterrupt

    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers=headers, content=body())
    )
    other = openai.OpenAI(
        base_url=client.base_url, api_key="k", http_client=httpx2.Client(transport=transport)
    )
    stream = other.chat.completions.create(**ASK)
    assert next(stream).choices[0].delta.content == "a"
    with pytest.raises(KeyboardInterrupt):
        next(stream)


def never_iterated(client):
    client.chat.completions.create(**ASK)
    gc.collect()


def half_iterated(client):
    stream = client.chat.completions.create(**ASK)
    for _ in range(3):
        next(stream)
    del stream
    gc.collect()


async def full_read_async(client):
    chunks = [chunk async for chunk in await client.chat.completions.create(**ASK)]
    assert len(chunks) == 6


async def break_out_async(client):
    async for _ in await client.chat.completions.create(**ASK):
        break


async def early_return_async(client):
    async def first():
        async for chunk in await client.chat.completions.create(**ASK):
            return chunk
        return None

    assert await first() is not None


async def close_async(client):
    stream = await client.chat.completions.create(**ASK)
    await stream.__anext__()
    await stream.close()
    assert stream.response.is_closed


async def leave_the_block_async(client):
    async with await client.chat.completions.create(**ASK) as stream:
        async for _ in stream:
            break
    assert stream.response.is_closed


async def exception_in_the_block_async(client):
    with pytest.raises(UserError):
        async with await client.chat.completions.create(**ASK) as stream:
            await stream.__anext__()
            raise UserError
    assert stream.response.is_closed


async def exception_from_the_wire_async(client):
    with pytest.raises(openai.APIConnectionError):
        [chunk async for chunk in await client.chat.completions.create(**ASK)]


async def cancelled_async(client):
    async def read(reading):
        async for chunk in await client.chat.completions.create(**ASK):
            if chunk.choices and chunk.choices[0].delta.content == "b":
                reading.set()

    reading = asyncio.Event()
    task = asyncio.create_task(read(reading))
    await reading.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def never_iterated_async(client):
    await client.chat.completions.create(**ASK)
    gc.collect()


async def half_iterated_async(client):
    stream = await client.chat.completions.create(**ASK)
    for _ in range(3):
        await stream.__anext__()
    del stream
    gc.collect()


WAYS = [
    (full_read, "complete", 6),
    (break_out, "abandoned", 1),
    (early_return, "abandoned", 1),
    (close, "closed_early", 1),
    (leave_the_block, "closed_early", 1),
    (exception_in_the_block, "closed_early", 1),
    (exception_from_the_wire, "failed", 3),
    (interrupted, "failed", 1),
    (never_iterated, "abandoned", 0),
    (half_iterated, "abandoned", 3),
]
ASYNC_WAYS = [
    (full_read_async, "complete", 6),
    (break_out_async, "abandoned", 1),
    (early_return_async, "abandoned", 1),
    (close_async, "closed_early", 1),
    (leave_the_block_async, "closed_early", 1),
    (exception_in_the_block_async, "closed_early", 1),
    (exception_from_the_wire_async, "failed", 3),
    (cancelled_async, "cancelled", 4),
    (never_iterated_async, "abandoned", 0),
    (half_iterated_async, "abandoned", 3),
]


async def settle():
    """Let the loop close generators that were dropped, and the collector find what they held."""
    for _ in range(2):
        await asyncio.sleep(0)  # A loop makes the tasks that close generators in its next round.
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        gc.collect()


def prepare(server, way, cut, release):
    if "wire" in way.__name__:
        server.events = (*server.events[:3], cut)
    if "cancelled" in way.__name__:
        server.events = (*server.events[:4], release.wait)


def check(record, end, chunk_count, logged):
    (span,) = [each for each in record.spans if each.name == "chat m"]
    assert span.attributes[names.LLMLAT_STREAM_END] == end
    assert span.attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == chunk_count
    assert (names.ERROR_TYPE in span.attributes) == (end in {"failed", "cancelled"})
    assert all(span.start_time <= each.start_time for each in record.spans)
    assert all(each.end_time <= span.end_time for each in record.spans)
    assert [each for each in logged if each.levelname in {"WARNING", "ERROR"}] == []


@pytest.fixture
def release():
    """Lets a server go on that waits for the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize(("way", "end", "chunk_count"), WAYS, ids=str)
def test_st_02_each_way_out_is_one_span(
    way, end, chunk_count, server, client, record, cut, release, caplog
):
    prepare(server, way, cut, release)
    way(client)
    check(record, end, chunk_count, caplog.records)


@pytest.mark.parametrize(("way", "end", "chunk_count"), ASYNC_WAYS, ids=str)
def test_st_02_each_way_out_is_one_span_async(
    way, end, chunk_count, server, make_async_client, record, cut, release, caplog
):
    async def main():
        async with make_async_client() as client:
            await way(client)
            await settle()
            release.set()
        # Where a loop is shut down openai's generators close each other, and asyncio logs that one
        # is running: with us or without, and so no part of this.
        return tuple(caplog.records)

    prepare(server, way, cut, release)
    check(record, end, chunk_count, asyncio.run(main()))


def test_an_abandoned_call_ends_at_its_last_event_not_when_it_is_collected(client, record):
    stream = client.chat.completions.create(**ASK)
    next(stream)
    received_ns = time.time_ns()
    for _ in range(200):
        gc.collect(0)
    del stream
    gc.collect()
    (span,) = [each for each in record.spans if each.name == "chat m"]
    assert span.end_time <= received_ns + 1_000_000
