"""What was reported of other instrumentations' streams, done with ours over a real connection."""

import asyncio
import gc
import inspect
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion
from opentelemetry import trace

import llmlat_otel
from llmlat_otel.core.guard import faults
from llmlat_otel.testing import recorded
from llmlat_semconv import attributes as names
from tests.integration.sdk.openai_server import RESPONSE_STREAM, STREAM, chunk

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
OURS = str(Path(llmlat_otel.__file__).parent)


def operations(record):
    return [each for each in record.spans if each.name == "chat m"]


def operation(record):
    (span,) = operations(record)
    return span


def leave_after_two(client):
    with client.chat.completions.create(**ASK, stream=True) as stream:
        for number, _ in enumerate(stream):
            if number == 2:
                break


def close_after_two(client):
    stream = client.chat.completions.create(**ASK, stream=True)
    for _ in range(3):
        next(stream)
    stream.close()


async def leave_after_two_async(client):
    async with await client.chat.completions.create(**ASK, stream=True) as stream:
        for _ in range(3):
            await stream.__anext__()


async def close_after_two_async(client):
    stream = await client.chat.completions.create(**ASK, stream=True)
    for _ in range(3):
        await stream.__anext__()
    await stream.close()


def check_left_early(record):
    attributes = operation(record).attributes
    assert attributes[names.LLMLAT_STREAM_END] == "closed_early"
    assert attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == 3
    assert attributes[names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] > 0
    assert attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] > 0
    assert attributes[names.GEN_AI_RESPONSE_MODEL] == "m-2"
    assert names.GEN_AI_USAGE_OUTPUT_TOKENS not in attributes, "it had not come yet"


@pytest.mark.parametrize("way", [leave_after_two, close_after_two])
def test_st_01_a_stream_that_is_left_early_says_what_it_has_seen(client, record, way):
    way(client)
    check_left_early(record)


@pytest.mark.parametrize("way", [leave_after_two_async, close_after_two_async])
def test_st_01_an_asynchronous_one_too(make_async_client, record, way):
    async def main():
        async with make_async_client() as client:
            await way(client)

    asyncio.run(main())
    check_left_early(record)


def test_st_04_a_plain_loop_to_the_end_is_one_span_with_usage_and_finish_reason(client, record):
    for _ in client.chat.completions.create(**ASK, stream=True):
        pass
    attributes = operation(record).attributes
    assert attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 2
    assert attributes[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)


def check_incomplete(span):
    assert span.attributes[names.LLMLAT_STREAM_END] == "incomplete"
    assert names.GEN_AI_RESPONSE_FINISH_REASONS not in span.attributes
    assert names.GEN_AI_USAGE_OUTPUT_TOKENS not in span.attributes
    assert names.ERROR_TYPE not in span.attributes
    assert not span.status.description
    assert span.status.is_unset


def test_st_11_a_chat_without_a_finish_reason_is_incomplete(server, client, record):
    server.events = (chunk({"role": "assistant", "content": ""}), chunk({"content": "a"}))
    assert len(list(client.chat.completions.create(**ASK, stream=True))) == 2
    check_incomplete(operation(record))


def test_st_11_a_response_without_its_last_event_is_incomplete(server, client, record):
    server.response_events = RESPONSE_STREAM[:-1]
    events = list(client.responses.create(model="m", input="q", stream=True))
    assert len(events) == len(RESPONSE_STREAM) - 1
    check_incomplete(operation(record))


def test_wr_01_a_helper_finds_the_response_that_it_closes(make_async_client, record):
    async def main():
        async with make_async_client() as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            assert type(stream.response) is httpx2.Response
            await stream.close()
            await stream.aclose()
            assert stream.response.is_closed
            async with client.chat.completions.stream(**ASK) as helper:
                await aiter(helper).__anext__()
                assert type(helper._response) is httpx2.Response
            assert helper._response.is_closed

    asyncio.run(main())
    ends = [each.attributes[names.LLMLAT_STREAM_END] for each in operations(record)]
    assert ends == ["closed_early", "closed_early"]


def test_wr_02_a_stream_that_is_closed_gives_its_connection_back(make_async_client, record):
    async def main():
        async with make_async_client() as client:
            async with await client.chat.completions.create(**ASK, stream=True) as stream:
                await stream.__anext__()
            assert client._client._transport._pool.connections == []

    asyncio.run(main())


def test_wr_03_a_stream_has_all_that_the_library_gives_it(make_async_client, record):
    async def main():
        async with (
            make_async_client() as client,
            await client.chat.completions.create(**ASK, stream=True) as stream,
        ):
            assert [event async for event in stream]
            assert stream.response.headers["content-type"] == "text/event-stream"
            public = {name for name in dir(openai.AsyncStream) if not name.startswith("_")}
            assert public <= set(dir(stream))

    asyncio.run(main())


def test_wr_06_a_raw_response_is_as_it_was_and_says_what_its_parsing_says(client, record):
    raw = client.chat.completions.with_raw_response.create(**ASK)
    assert raw.headers["content-type"] == "application/json"
    assert raw.http_response.status_code == 200
    assert isinstance(raw.parse(), ChatCompletion)
    assert raw.parse() is raw.parse()
    attributes = operation(record).attributes
    assert attributes[names.GEN_AI_RESPONSE_MODEL] == "m-2"
    assert attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 2


def test_wr_06_a_raw_response_that_is_not_parsed_says_nothing(client, record):
    raw = client.chat.completions.with_raw_response.create(**ASK)
    assert raw.text
    del raw
    attributes = operation(record).attributes
    assert names.GEN_AI_RESPONSE_MODEL not in attributes
    assert names.LLMLAT_STREAM_END not in attributes


def raw(client):
    return list(client.chat.completions.with_raw_response.create(**ASK, stream=True).parse())


def streaming(client):
    create = client.chat.completions.with_streaming_response.create
    with create(**ASK, stream=True) as response:
        return list(response.parse())


async def raw_async(client):
    response = await client.chat.completions.with_raw_response.create(**ASK, stream=True)
    return [event async for event in response.parse()]


async def streaming_async(client):
    create = client.chat.completions.with_streaming_response.create
    async with create(**ASK, stream=True) as response:
        return [event async for event in await response.parse()]


@pytest.mark.parametrize("way", [raw, streaming, raw_async, streaming_async])
def test_wr_08_a_response_that_is_parsed_to_a_stream_is_measured(
    server, client, make_async_client, record, way
):
    async def main():
        async with make_async_client() as asynchronous:
            return await way(asynchronous)

    events = asyncio.run(main()) if inspect.iscoroutinefunction(way) else way(client)
    assert len(events) == len(STREAM)
    attributes = operation(record).attributes
    assert attributes[names.LLMLAT_STREAM_END] == "complete"
    assert attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] > 0
    assert attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 2


# What our code does for each chunk


def calls_of_ours(work):
    """How often which of our functions is called by some work."""
    called: Counter[str] = Counter()

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            called[frame.f_code.co_name] += 1

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


def test_wr_11_the_2000th_chunk_takes_as_much_work_as_the_10th(server, client, instrumented):
    server.events = (*(chunk({"content": "a"}) for _ in range(2_010)), chunk({}, "stop"))
    before = faults()
    # The clock stands still: a gap that is not like the one before takes a step more, once.
    with recorded(), client.chat.completions.create(**ASK, stream=True) as stream:
        for _ in range(9):
            next(stream)
        tenth = calls_of_ours(lambda: next(stream))
        for _ in range(1_990):
            next(stream)
        last = calls_of_ours(lambda: next(stream))
    assert tenth == last
    assert 0 < tenth.total() <= 12
    assert faults() == before


def test_wr_11_nothing_of_ours_grows_with_the_stream(server, client, record):
    server.events = (*(chunk({"content": "a"}) for _ in range(2_010)), chunk({}, "stop"))
    with client.chat.completions.create(**ASK, stream=True) as stream:
        next(stream)
        tracemalloc.start()
        try:
            for _ in range(10):
                next(stream)
            before = of_ours()
            for _ in range(1_990):
                next(stream)
            assert of_ours() - before < 1_000, "some numbers got longer"
        finally:
            tracemalloc.stop()


def of_ours():
    """Bytes that our code holds."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    ours = snapshot.filter_traces([tracemalloc.Filter(True, f"{OURS}/*")])
    return sum(each.size for each in ours.statistics("filename"))


# Contexts


def test_cx_01_a_generator_that_is_collected_elsewhere_leaves_every_context_as_it_was(
    make_async_client, record, caplog
):
    tracer = record.tracer_provider.get_tracer("app")

    async def answer(client):
        async for event in await client.chat.completions.create(**ASK, stream=True):
            yield event

    async def collect(held):
        held.clear()
        gc.collect()
        for _ in range(10):
            await asyncio.sleep(0)

    async def main():
        async with make_async_client() as client:
            with tracer.start_as_current_span("theirs") as theirs:
                held = [answer(client)]
                assert await held[0].__anext__()
                assert trace.get_current_span() is theirs
                await asyncio.create_task(collect(held))
                assert trace.get_current_span() is theirs
            gc.collect()
            return [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}]

    assert asyncio.run(main()) == []
    span = operation(record)
    assert span.attributes[names.LLMLAT_STREAM_END] in {"abandoned", "cancelled"}
    assert span.parent is not None


def test_cx_02_a_hundred_loops_that_are_left_early_are_a_hundred_spans_and_no_line(
    make_async_client, record, caplog
):
    async def final(client):
        async for event in await client.chat.completions.create(**ASK, stream=True):
            if event.choices and event.choices[0].delta.content == "b":
                return event
        return None

    async def main():
        async with make_async_client() as client:
            for _ in range(100):
                assert await final(client) is not None
                gc.collect(1)
                await asyncio.sleep(0)
            return [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}]

    assert asyncio.run(main()) == []
    ends = [each.attributes[names.LLMLAT_STREAM_END] for each in operations(record)]
    assert ends == ["abandoned"] * 100
