"""Reference programs: calls of a model, and the ways out of them."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any, Final

import httpcore2
import httpx2
import openai
from opentelemetry import trace

from llmlat_semconv import attributes as names
from tests.integration.seams import network as net
from tests.integration.seams.app import ASK, DONE, STREAM, App, UserError, programs

# Ways to ask


async def whole(app: App) -> None:
    client = app.client(net.whole(net.COMPLETION))
    app.say(await app.settled(client.chat.completions.create(**ASK)))


async def full_read(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    stream = await app.settled(client.chat.completions.create(**STREAM))
    await app.read(stream)
    app.say(stream.response.is_closed, await app.step(stream))


async def other_content(app: App) -> None:
    client = app.client(net.streamed(*net.OTHER_CHUNKS))
    await app.read(await app.settled(client.chat.completions.create(**STREAM)))


async def raw_whole(app: App) -> None:
    client = app.client(net.whole(net.COMPLETION))
    raw = await app.settled(client.chat.completions.with_raw_response.create(**ASK))
    app.say(raw, raw.status_code, raw.headers["content-type"], raw.text)
    app.say(raw.parse(), raw.parse() is raw.parse())


async def raw_stream(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    raw = await app.settled(client.chat.completions.with_raw_response.create(**STREAM))
    stream = raw.parse()
    app.say(raw, raw.parse() is stream)
    await app.read(stream)


async def streaming_whole(app: App) -> None:
    client = app.client(net.whole(net.COMPLETION))
    create = client.chat.completions.with_streaming_response.create
    async with app.within(create(**ASK)) as raw:
        app.say(raw, raw.status_code, await app.settled(raw.parse()))
        app.say(raw.is_closed)


async def streaming_stream(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    create = client.chat.completions.with_streaming_response.create
    async with app.within(create(**STREAM)) as raw:
        await app.read(await app.settled(raw.parse()))
    app.say(raw.is_closed)


async def streaming_lines(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    create = client.chat.completions.with_streaming_response.create
    async with app.within(create(**STREAM)) as raw:
        lines = raw.iter_lines()
        while (line := await app.step(lines)) is not DONE:
            app.say(line)


async def streaming_left_unread(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    async with app.within(client.chat.completions.with_streaming_response.create(**STREAM)) as raw:
        app.say(raw.headers["content-type"])
    app.say(raw.is_closed)


async def helper(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    async with app.within(client.chat.completions.stream(**ASK)) as stream:
        while (event := await app.step(stream)) is not DONE:
            app.say(event)
        app.say(await app.settled(stream.get_final_completion()))


async def helper_left_early(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    async with app.within(client.chat.completions.stream(**ASK)) as stream:
        app.say(await app.step(stream))


# Ways out


async def dropped(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    stream = await app.settled(client.chat.completions.create(**STREAM))
    for _ in range(3):
        app.say(await app.step(stream))
    del stream
    gc.collect()


async def dropped_in_a_cycle(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    cycle = [await app.settled(client.chat.completions.create(**STREAM))]
    app.say(await app.step(cycle[0]))
    cycle.append(cycle)
    del cycle
    gc.collect()


async def never_iterated(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    app.say(await app.settled(client.chat.completions.create(**STREAM)))
    gc.collect()


async def raw_dropped(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    app.say(await app.settled(client.chat.completions.with_raw_response.create(**STREAM)))
    gc.collect()


async def closed(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    stream = await app.settled(client.chat.completions.create(**STREAM))
    app.say(await app.step(stream))
    app.say(await app.settled(stream.close()), stream.response.is_closed)
    app.say(await app.settled(stream.close()))


async def left_early(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    created = await app.settled(client.chat.completions.create(**STREAM))
    async with app.within(created) as stream:
        app.say(stream is created, await app.step(stream))
    app.say(stream.response.is_closed)


async def error_in_the_block(app: App) -> None:
    async def block() -> None:
        client = app.client(net.streamed(*net.CHUNKS))
        created = await app.settled(client.chat.completions.create(**STREAM))
        async with app.within(created) as stream:
            app.say(await app.step(stream))
            raise UserError

    await app.trial(block)


async def error_from_the_wire(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS[:3], httpcore2.ReadError("cut")))
    await app.trial(app.read, await app.settled(client.chat.completions.create(**STREAM)))


async def interrupted(app: App) -> None:
    if app.is_async:  # An event loop does not let it pass.
        return
    client = app.client(net.streamed(*net.CHUNKS[:3], KeyboardInterrupt()))
    await app.trial(app.read, await app.settled(client.chat.completions.create(**STREAM)))


async def cancelled(app: App) -> None:
    if not app.is_async:
        return
    client = app.client(net.streamed(*net.CHUNKS[:3], asyncio.CancelledError()))
    stream = await client.chat.completions.create(**STREAM)
    reading = asyncio.create_task(app.read(stream))
    await asyncio.wait([reading])
    app.say(reading.cancelled())


async def cancelled_before_it_began(app: App) -> None:
    if not app.is_async:
        return
    client = app.client(net.whole(net.COMPLETION))
    task = asyncio.create_task(client.chat.completions.create(**ASK))
    task.cancel()
    await asyncio.wait([task])
    app.say(task.cancelled())
    client.chat.completions.create(**ASK).close()


# What the server, the network and the transport do


async def refused(app: App) -> None:
    error = net.whole({"error": {"message": "no"}}, 400)
    client = app.client(error, error)
    await app.trial(client.chat.completions.create, **ASK)
    await app.trial(client.chat.completions.with_raw_response.create, **STREAM)


async def retried(app: App) -> None:
    busy = net.whole({"error": {"message": "no"}}, 503, **{"retry-after-ms": "1"})
    client = app.client(busy, httpcore2.ConnectError("down"), net.streamed(*net.CHUNKS))
    client = client.with_options(max_retries=3)
    client._calculate_retry_timeout = lambda *_: 0.0
    await app.read(await app.settled(client.chat.completions.create(**STREAM)))


async def given_up(app: App) -> None:
    busy = net.whole({"error": {"message": "no"}}, 503, **{"retry-after-ms": "1"})
    client = app.client(busy, busy, max_retries=1)
    client._calculate_retry_timeout = lambda *_: 0.0
    await app.trial(client.chat.completions.create, **ASK)


async def unreachable(app: App) -> None:
    client = app.client(httpcore2.ConnectError("down"), max_retries=0)
    await app.trial(client.chat.completions.create, **ASK)


async def redirected(app: App) -> None:
    moved = net.whole({}, 307, location="/v1/elsewhere")
    client = app.client(moved, net.whole(net.COMPLETION))
    app.say(await app.settled(client.chat.completions.create(**ASK)))


async def wrong_arguments(app: App) -> None:
    await app.trial(app.client().chat.completions.create, model="m")


class _Traced(httpx2.Client):
    """Has a trace extension of its own, and sends each request twice."""

    events: list[str]

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        self.events = []
        request.extensions["trace"] = lambda name, _: self.events.append(name)
        super().send(request, **options).close()
        return super().send(request, **options)


class _AsyncTraced(httpx2.AsyncClient):
    events: list[str]

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        async def trace_event(name: str, _: Any) -> None:
            self.events.append(name)

        self.events = []
        request.extensions["trace"] = trace_event
        await (await super().send(request, **options)).aclose()
        return await super().send(request, **options)


async def traced_by_itself(app: App) -> None:
    kind = _AsyncTraced if app.is_async else _Traced
    client = app.client(net.streamed(*net.CHUNKS), net.streamed(*net.CHUNKS), kind=kind)
    headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    create = client.chat.completions.create
    await app.read(await app.settled(create(**STREAM, extra_headers=headers)))
    app.say(client._client.events)


# Others in the same program


async def under_another_instrumentation(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS))
    attributes = {names.GEN_AI_OPERATION_NAME: "chat"}
    span = trace.get_tracer("theirs").start_span("chat m", attributes=attributes)
    with trace.use_span(span, end_on_exit=True):
        await app.read(await app.settled(client.chat.completions.create(**STREAM)))
        app.say(trace.get_current_span() is span)


async def in_a_thread(app: App) -> None:
    def work() -> None:
        client = openai.OpenAI(api_key="k", http_client=net.client(app.network))
        app.say(client.chat.completions.create(**ASK))

    app.network.answers.append(net.whole(net.COMPLETION))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def copied(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS), net.streamed(*net.CHUNKS))
    stream = await app.settled(client.chat.completions.create(**STREAM))
    raw = await app.settled(client.chat.completions.with_raw_response.create(**STREAM))
    for each in (stream, raw, client.chat.completions.create):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            await app.trial(_copied, duplicate, each)
    await app.settled(stream.close())


def _copied(duplicate: Callable[[Any], Any], thing: Any) -> Any:
    return duplicate(thing).__class__.__name__


async def taken_back(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS), net.whole(net.COMPLETION))
    app.llmlat.instrument()
    stream = await app.settled(client.chat.completions.create(**STREAM))
    app.say(await app.step(stream))
    app.llmlat.uninstrument()
    app.say(await app.settled(client.chat.completions.create(**ASK)))
    await app.read(stream)
    app.llmlat.instrument()


async def two_at_once(app: App) -> None:
    answers = [net.streamed(*net.CHUNKS), net.streamed(*net.CHUNKS)]
    client = app.client(*answers)
    first = await app.settled(client.chat.completions.create(**STREAM))
    second = await app.settled(client.chat.completions.create(**STREAM))
    while (event := await app.step(first)) is not DONE:
        app.say(event, await app.step(second))
    app.say(await app.step(second))


PROGRAMS: Final = programs(vars())
