"""A stream that is left once it has said that it ends: nothing of it is missed, and it is whole."""

import asyncio
import gc
import threading
from typing import Any

import pytest

from llmlat_semconv import attributes as names
from tests.integration.sdk.openai_server import MODEL, RESPONSE_STREAM, chunk

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
CHOICE = {"index": 0, "logprobs": None}


def text(said, reason=None, index=0):
    choices = [{**CHOICE, "index": index, "text": said, "finish_reason": reason}]
    return {**MODEL, "object": "text_completion", "choices": choices}


def of(index, delta, reason=None):
    """A chunk of one choice of several."""
    choices = [{"index": index, "delta": delta, "finish_reason": reason}]
    return {**MODEL, "object": "chat.completion.chunk", "choices": choices}


CHUNKS = (
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "a"}),
    chunk({"content": "b"}),
    chunk({}, "stop"),
)
TEXTS = (text("a"), text("b"), text("", "stop"))


def chat(client):
    return client.chat.completions.create(**CHAT, stream=True)


def helper(client):
    return client.chat.completions.stream(**CHAT)


def parsed(client):
    return client.chat.completions.with_streaming_response.create(**CHAT, stream=True)


def completion(client):
    return client.completions.create(model="m", prompt="q", stream=True)


def response(client):
    return client.responses.create(model="m", input="q", stream=True)


KINDS = {
    "chat": (chat, CHUNKS),
    "chat, by its helper": (helper, CHUNKS),
    "chat, parsed later": (parsed, CHUNKS),
    "text": (completion, TEXTS),
    "responses": (response, RESPONSE_STREAM),
}
each_kind = pytest.mark.parametrize(("ask", "events"), KINDS.values(), ids=KINDS)


class UserError(Exception):
    """Raised by the user's own code."""


@pytest.fixture
def release(server):
    """Until it is set, neither [DONE] nor the end of the response comes."""
    event = threading.Event()
    yield event
    event.set()


def prepare(server, events, release):
    server.events = server.response_events = (*events, release.wait)


def is_last(event):
    """Whether it says that the response ends with it."""
    if getattr(event, "type", None) == "chunk":  # of a helper, which tells of other things too
        event = event.chunk
    choices = getattr(event, "choices", None)
    if choices is not None:
        return any(each.finish_reason for each in choices)
    return event.type == "response.completed"


def until_its_end(stream):
    for event in stream:
        if is_last(event):
            return


async def until_its_end_async(stream):
    async for event in stream:
        if is_last(event):
            return


def operation(record):
    (span,) = [each for each in record.spans if each.name.endswith(" m")]
    return span


def check_whole(record):
    span = operation(record)
    said = span.attributes
    assert said[names.LLMLAT_STREAM_END] == "complete"
    assert said[names.LLMLAT_STREAM_UNREAD] is True, "its last byte was never seen"
    assert names.ERROR_TYPE not in said
    assert span.status.is_unset
    assert said[names.GEN_AI_RESPONSE_FINISH_REASONS] in {("stop",), ("completed",)}
    phases = [each for each in record.spans if each.name.startswith("phase ")]
    assert [each.name for each in phases][-1] in {"phase stream", "phase finalize"}
    assert not any(each.attributes.get(names.LLMLAT_PHASE_TRUNCATED) for each in phases)


# ── Left by whoever has read enough ──────────────────────────────────────────────────────────────


def close(stream):
    until_its_end(stream)
    stream.close()


def close_its_response(stream):
    until_its_end(stream)
    (stream._response if hasattr(stream, "_response") else stream.response).close()


def fail(stream):
    until_its_end(stream)
    raise UserError


@each_kind
@pytest.mark.parametrize("leave", [until_its_end, close, close_its_response, fail])
def test_st_10_a_stream_that_is_left_after_its_last_event_is_complete(
    ask, events, leave, server, client, record, release
):
    prepare(server, events, release)
    try:
        with ask(client) as entered:
            leave(entered.parse() if ask is parsed else entered)
    except UserError:
        assert leave is fail
    check_whole(record)


@pytest.mark.parametrize("kind", ["chat", "text", "responses"])
def test_st_10_so_is_one_that_is_dropped_then(kind, server, client, record, release):
    ask, events = KINDS[kind]
    prepare(server, events, release)
    until_its_end(ask(client))
    gc.collect()
    check_whole(record)


async def close_async(stream):
    await until_its_end_async(stream)
    await stream.close()


async def fail_async(stream):
    await until_its_end_async(stream)
    raise UserError


async def cancel(stream):
    """As a server does with what answers a caller that has gone."""
    ended = asyncio.Event()

    async def read():
        async for event in stream:
            if is_last(event):
                ended.set()

    reading = asyncio.ensure_future(read())
    await ended.wait()
    await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


@each_kind
@pytest.mark.parametrize("leave", [until_its_end_async, close_async, fail_async, cancel])
def test_st_10_an_asynchronous_one_too(
    ask, events, leave, server, make_async_client, record, release
):
    async def main():
        async with make_async_client() as client:
            asked = ask(client)
            async with await asked if asyncio.iscoroutine(asked) else asked as entered:
                await leave(await entered.parse() if ask is parsed else entered)

    prepare(server, events, release)
    try:
        asyncio.run(main())
    except UserError:
        assert leave is fail_async
    check_whole(record)


# ── Left before it ───────────────────────────────────────────────────────────────────────────────


@each_kind
def test_st_10_a_stream_that_is_left_one_event_earlier_is_not(
    ask, events, server, client, record, release
):
    prepare(server, events[:-1], release)
    seen = iter(range(len(events) - 2))
    with ask(client) as entered:
        for _ in zip(seen, entered.parse() if ask is parsed else entered, strict=False):
            pass
    said = operation(record).attributes
    assert said[names.LLMLAT_STREAM_END] == "closed_early"
    assert names.GEN_AI_RESPONSE_FINISH_REASONS not in said


def test_st_10_what_breaks_after_the_last_event_has_failed_all_the_same(
    server, client, record, cut
):
    """The caller gets the exception, whatever it has read by then."""
    server.events = (*CHUNKS, cut)
    with pytest.raises(Exception, match=r"(?i)connection|peer|incomplete"):
        list(chat(client))
    assert operation(record).attributes[names.LLMLAT_STREAM_END] == "failed"


# ── Several choices ──────────────────────────────────────────────────────────────────────────────

TWO = (of(0, {"content": "a"}), of(1, {"content": "b"}), of(0, {}, "stop"), of(1, {}, "length"))
ONE_BY_ONE = (TWO[0], TWO[2], TWO[1], TWO[3])


def chat_of_two(client, **more):
    return client.chat.completions.create(**CHAT, stream=True, **more or {"n": 2})


def left_after(stream, events):
    for _ in range(events):
        next(stream)
    stream.close()


@pytest.mark.parametrize("asked", [{"n": 2}, {"extra_body": {"n": 2}}], ids=str)
@pytest.mark.parametrize("events", [TWO, ONE_BY_ONE], ids=["side by side", "one by one"])
@pytest.mark.parametrize("read", range(1, 5))
def test_st_10_of_several_choices_all_have_to_have_ended(
    asked, events, read, server, client, record, release
):
    prepare(server, events, release)
    left_after(chat_of_two(client, **asked), read)
    end = operation(record).attributes[names.LLMLAT_STREAM_END]
    assert end == ("complete" if read == 4 else "closed_early")


@pytest.mark.parametrize(("prompt", "read"), [(["p", "q"], 2), ([1, 2], 1), ([[1], [2]], 2)])
def test_st_10_of_several_prompts_too(prompt, read, server, client, record, release):
    prepare(server, (text("a", "stop"), text("b", "stop", index=1)), release)
    asked = {"model": "m", "prompt": prompt, "stream": True}
    left_after(client.completions.create(**asked), 1)
    ends = ["complete" if read == 1 else "closed_early"]
    if read == 2:
        left_after(client.completions.create(**asked), 2)
        ends.append("complete")
    spans = [each for each in record.spans if each.name.endswith(" m")]
    assert [each.attributes[names.LLMLAT_STREAM_END] for each in spans] == ends


@pytest.mark.parametrize(
    ("events", "end"),
    [(TWO, "complete"), (TWO[:3], "incomplete"), ((TWO[0], TWO[2]), "complete")],
    ids=["both", "one of them breaks off", "a server that gives one, whatever it is asked for"],
)
def test_st_11_of_several_choices_each_that_has_begun_has_to_end(
    events, end, server, client, record
):
    server.events = events
    assert len(list(chat_of_two(client))) == len(events)
    assert operation(record).attributes[names.LLMLAT_STREAM_END] == end
