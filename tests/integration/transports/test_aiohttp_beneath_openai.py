"""aiohttp beneath openai, by its `DefaultAioHttpClient`: attempts of httpx, measured by aiohttp."""

import asyncio
from typing import Any

import openai
import pytest

from llmlat_semconv import attributes as names

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
FIRST = ["prepare", "pool_wait", "connect", "send", "wait"]
AGAIN = ["prepare", "pool_wait", "send", "wait"]


def attempts(record):
    return [each for each in record.spans if each.name == "attempt m"]


def openai_client(upstream, **options):
    return openai.AsyncOpenAI(
        base_url=upstream.url, api_key="k", http_client=openai.DefaultAioHttpClient(), **options
    )


def the_id(span):
    return f"{span.get_span_context().span_id:016x}"


def parents(upstream):
    return [each["traceparent"].split("-")[2] for each in upstream.requests]


def test_openai_over_aiohttp_has_the_phases_of_its_transport(upstream, record, phases):
    async def main():
        async with openai_client(upstream) as client:
            await client.chat.completions.create(**ASK)
            stream = await client.chat.completions.create(**ASK, stream=True)
            assert len([chunk async for chunk in stream]) == 5

    asyncio.run(main())
    rest = ["first_content", "stream", "finalize"]
    assert phases() == [*FIRST, "finalize", *AGAIN, *rest], "the connection is used again"
    calls = [each for each in record.spans if each.name == "chat m"]
    assert calls[1].attributes[names.LLMLAT_STREAM_END] == "complete"
    assert parents(upstream) == [the_id(each) for each in calls]


def test_each_try_of_openai_is_an_attempt_of_its_own(upstream, record, phases):
    upstream.statuses = [503]

    async def main():
        async with openai_client(upstream) as client:
            await client.chat.completions.create(**ASK)

    asyncio.run(main())
    assert [each.attributes[names.LLMLAT_ATTEMPT_OUTCOME] for each in attempts(record)] == [
        "failed",
        "won",
    ]
    (chat,) = [each for each in record.spans if each.name == "chat m"]
    assert parents(upstream) == [the_id(chat), the_id(attempts(record)[1])]
    assert phases().count("wait") == 2


def test_a_connection_that_is_refused_is_an_attempt_that_failed(record, phases):
    async def main():
        transport = openai.DefaultAioHttpClient()
        url = "http://127.0.0.1:9/v1"
        client = openai.AsyncOpenAI(base_url=url, api_key="k", http_client=transport, max_retries=0)
        async with client:
            with pytest.raises(openai.APIConnectionError):
                await client.chat.completions.create(**ASK)

    asyncio.run(main())
    assert phases() == ["prepare", "pool_wait", "connect"]
    assert record.spans[-1].attributes[names.LLMLAT_PHASE_TRUNCATED]


@pytest.mark.parametrize("leave", ["close", "block"])
def test_a_stream_that_is_left_early_is_closed(upstream, record, leave):
    async def main():
        async with openai_client(upstream) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            if leave == "close":
                await anext(stream)
                await stream.close()
            else:
                async with stream:
                    await anext(stream)

    asyncio.run(main())
    (chat,) = [each for each in record.spans if each.name == "chat m"]
    assert chat.attributes[names.LLMLAT_STREAM_END] == "closed_early"


def test_a_body_that_is_read_unparsed_ends_the_call(upstream, record):
    async def main():
        async with openai_client(upstream) as client:
            create = client.chat.completions.with_streaming_response.create
            async with create(**ASK, stream=True) as raw:
                assert b"[DONE]" in await raw.read()

    asyncio.run(main())
    (chat,) = [each for each in record.spans if each.name == "chat m"]
    assert chat.attributes[names.LLMLAT_STREAM_END] == "complete"


def test_a_response_that_is_closed_behind_the_streams_back_is_closed_early(upstream, record):
    upstream.may_go_on.clear()

    async def main():
        async with openai_client(upstream) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            await anext(stream)
            await stream.response.aclose()
            (chat,) = [each for each in record.spans if each.name == "chat m"]
            assert chat.attributes[names.LLMLAT_STREAM_END] == "closed_early"

    asyncio.run(main())


def test_a_body_that_came_while_the_caller_was_busy_is_not_over(upstream, record):
    upstream.may_go_on.clear()

    async def main():
        async with openai_client(upstream) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            await anext(stream)
            upstream.may_go_on.set()
            await asyncio.sleep(0.05)
            assert len([chunk async for chunk in stream]) == 4

    asyncio.run(main())
    (chat,) = [each for each in record.spans if each.name == "chat m"]
    assert chat.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert chat.attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == 5
