"""Responses of openai that are read without being parsed, where no transport tells us of it.

The transport is a mock: what ends a call is noticed by what was handed to the caller, or not at
all.
"""

import asyncio
import gc
import json
from typing import Any

import httpx2
import openai
import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from tests.integration.sdk.openai_server import MODEL, STREAM, USAGE

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": True}
PARTS = [b"data: %b\n\n" % json.dumps(event).encode() for event in STREAM] + [b"data: [DONE]\n\n"]
SSE = {"content-type": "text/event-stream"}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}
WHOLE = {**MODEL, "object": "chat.completion", "choices": [CHOICE], "usage": USAGE}


class UserError(Exception):
    """Raised by the user's own code."""


def parts(error=None):
    yield from PARTS[:3] if error else PARTS
    if error:
        raise error


async def parts_async(error=None, wait=None):
    for part in parts(error):
        yield part
        if wait is not None:
            await wait.wait()


def client_of(content, **options):
    answer = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=SSE, content=content()))
    return openai.OpenAI(
        base_url="http://a.test/v1",
        api_key="k",
        max_retries=0,
        http_client=httpx2.Client(transport=answer),
        **options,
    )


def async_client_of(content):
    answer = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=SSE, content=content()))
    return openai.AsyncOpenAI(
        base_url="http://a.test/v1",
        api_key="k",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=answer),
    )


def streaming(client, **asked):
    return client.chat.completions.with_streaming_response.create(**{**ASK, **asked})


def raw(client):
    return client.chat.completions.with_raw_response.create(**ASK)


def operation(record):
    (span,) = [each for each in record.spans if each.name == "chat m"]
    return span


def check(record, end, error=None):
    attributes = operation(record).attributes
    assert attributes[names.LLMLAT_STREAM_END] == end
    assert attributes.get(names.ERROR_TYPE) == error
    absent = {
        names.LLMLAT_STREAM_CHUNK_COUNT,
        names.LLMLAT_STREAM_GAP_MAX,
        names.LLMLAT_STREAM_GAP_BUCKET_COUNTS,
        names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT,
    }
    assert absent & set(attributes) == set(), "nobody told its events apart"


READS = ["iter_lines", "iter_bytes", "iter_text", "read", "text", "json"]


@pytest.mark.parametrize("read", READS)
def test_wr_04_a_body_that_is_read_whole_is_complete_and_counted_once(record, read):
    with streaming(client_of(parts)) as response:
        if read == "json":  # There is none in a stream of events.
            with pytest.raises(json.JSONDecodeError):
                response.json()
        else:
            got = getattr(response, read)()
            assert len(got if isinstance(got, (bytes, str)) else list(got)) > 0
    check(
        record,
        *(("failed", "json.decoder.JSONDecodeError") if read == "json" else ("complete",)),
    )


@pytest.mark.parametrize("read", READS)
def test_wr_04_an_asynchronous_body_too(record, read):
    async def main():
        async with streaming(async_client_of(parts_async)) as response:
            if read.startswith("iter"):
                assert [part async for part in getattr(response, read)()]
            elif read != "json":
                assert await getattr(response, read)()
            else:
                with pytest.raises(json.JSONDecodeError):
                    await response.json()

    asyncio.run(main())
    check(
        record,
        *(("failed", "json.decoder.JSONDecodeError") if read == "json" else ("complete",)),
    )


def test_a_body_that_is_read_is_a_stream_from_its_first_to_its_last_read(record):
    with streaming(client_of(parts)) as response:
        list(response.iter_lines())
    phases = [each.name.split()[1] for each in record.spans if each.name.startswith("phase")]
    assert phases == ["prepare", "stream", "finalize"], "and of the transport nothing is known"


def close(response):
    next(response.iter_lines())
    response.close()


def leave(response):
    next(response.iter_lines())


def never_read(response):
    pass


def fail(response):
    next(response.iter_lines())
    raise UserError


CLOSINGS = [close, leave, never_read, fail]


@pytest.mark.parametrize("way", CLOSINGS)
def test_st_01_a_response_that_is_closed_or_whose_block_is_left_is_closed_early(record, way):
    try:
        with streaming(client_of(parts)) as response:
            way(response)
    except UserError:
        assert way is fail
    check(record, "closed_early")


async def close_async(response):
    await aiter(response.iter_lines()).__anext__()
    await response.close()


async def leave_async(response):
    await aiter(response.iter_lines()).__anext__()


async def never_read_async(response):
    pass


async def fail_async(response):
    await aiter(response.iter_lines()).__anext__()
    raise UserError


@pytest.mark.parametrize("way", [close_async, leave_async, never_read_async, fail_async])
def test_st_01_an_asynchronous_one_too(record, way):
    async def main():
        try:
            async with streaming(async_client_of(parts_async)) as response:
                await way(response)
        except UserError:
            assert way is fail_async

    asyncio.run(main())
    check(record, "closed_early")


def test_leaving_off_is_not_the_end_of_a_response_that_is_still_held(record):
    with streaming(client_of(parts)) as response:
        for _ in response.iter_bytes():
            break
        gc.collect()
        assert record.spans == ()
    check(record, "closed_early")


def test_st_02_a_response_that_is_dropped_is_abandoned_and_not_before_what_reads_it(record):
    lines = streaming(client_of(parts)).__enter__().iter_lines()
    assert next(lines)
    gc.collect()
    assert record.spans == ()
    del lines
    gc.collect()
    check(record, "abandoned")


@pytest.mark.parametrize("make", [lambda client: streaming(client).__enter__(), raw])
def test_st_02_a_response_that_nobody_reads_is_abandoned(record, make):
    make(client_of(parts))
    gc.collect()
    check(record, "abandoned")


def test_a_response_whose_own_response_was_closed_is_closed_early(record):
    response = raw(client_of(parts))
    response.http_response.close()
    del response
    gc.collect()
    check(record, "closed_early")


def test_an_error_from_the_wire(record):
    broken = client_of(lambda: parts(httpx2.ReadError("no")))
    with streaming(broken) as response, pytest.raises(httpx2.ReadError):
        list(response.iter_lines())
    check(record, "failed", "httpx2.ReadError")


def test_a_reading_that_is_cancelled(record):
    async def main():
        reading = asyncio.Event()

        async def read():
            slow = async_client_of(lambda: parts_async(wait=asyncio.Event()))
            async with streaming(slow) as response:
                async for _ in response.iter_lines():
                    reading.set()

        task = asyncio.create_task(read())
        await reading.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    check(record, "cancelled", "asyncio.exceptions.CancelledError")


def whole():
    yield json.dumps(WHOLE).encode()


def test_a_whole_response_that_is_read_as_bytes_is_no_stream(record):
    with streaming(client_of(whole), stream=False) as response:
        assert json.loads(response.read()) == WHOLE
        assert response.json() == WHOLE
        assert response.parse().id == MODEL["id"]
    attributes = operation(record).attributes
    assert names.LLMLAT_STREAM_END not in attributes
    assert names.ERROR_TYPE not in attributes


def test_a_stream_that_is_parsed_where_no_transport_tells_us_of_it(record):
    stream = raw(client_of(parts)).parse()
    gc.collect()
    assert len(list(stream)) == len(STREAM)
    attributes = operation(record).attributes
    assert attributes[names.LLMLAT_STREAM_END] == "complete"
    assert attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == len(STREAM)


def test_the_phases_of_a_call_never_overlap_whatever_reads_it(record):
    with streaming(client_of(parts)) as response:
        assert len(list(response.parse())) == len(STREAM)
        with pytest.raises(httpx2.StreamConsumed):
            list(response.iter_bytes())
    assert operation(record).attributes[names.LLMLAT_STREAM_END] == "complete"
    phases = [each.name.split()[1] for each in record.spans if each.name.startswith("phase")]
    assert phases == [each.value for each in (Phase.PREPARE, Phase.FIRST_CONTENT)] + [
        "stream",
        "finalize",
    ]
