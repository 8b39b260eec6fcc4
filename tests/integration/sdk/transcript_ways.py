"""Shapes of a stream, and the ten ways out of each, synchronous and not."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tests.integration.sdk import transcript_values as show
from tests.integration.sdk.openai_server import CUT, RESPONSE_STREAM, STREAM, Server

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
RESPONSE: dict[str, Any] = {"model": "m", "input": "q"}

Note = Callable[[str, Any], None]
"""Writes down what was seen."""


class UserError(Exception):
    """Raised by the user's own code."""


class Shape(NamedTuple):
    """A way to ask for a stream.

    Attributes:
        name: For the transcript.
        open: Asks; what it gives is entered, or can be.
        read: Gets what is iterated from what was entered.
        has: Whether a client has it.
    """

    name: str
    open: Callable[[Any], Any]
    read: Callable[[Any], Any]
    has: Callable[[Any], bool] = lambda _: True


def itself(entered: Any) -> Any:
    return entered


def parse(entered: Any) -> Any:
    return entered.parse()


def lines(entered: Any) -> Any:
    return entered.iter_lines()


def helper(client: Any) -> Any:
    chat = client.chat.completions
    return (chat if hasattr(chat, "stream") else client.beta.chat.completions).stream(**CHAT)


def has_responses(client: Any) -> bool:
    return hasattr(client, "responses")


def raw(client: Any) -> Any:
    """The response is dropped as soon as it is parsed."""
    asked = client.chat.completions.with_raw_response.create(**CHAT, stream=True)
    return then(asked, parse)


def then(asked: Any, follow: Callable[[Any], Any]) -> Any:
    if not inspect.isawaitable(asked):
        return follow(asked)

    async def following() -> Any:
        return follow(await asked)

    return following()


SHAPES = (
    Shape("create", lambda client: client.chat.completions.create(**CHAT, stream=True), itself),
    Shape("raw", raw, itself),
    Shape(
        "streaming response, parsed",
        lambda client: client.chat.completions.with_streaming_response.create(**CHAT, stream=True),
        parse,
    ),
    Shape(
        "streaming response, lines",
        lambda client: client.chat.completions.with_streaming_response.create(**CHAT, stream=True),
        lines,
    ),
    Shape("chat helper", helper, itself),
    Shape(
        "responses",
        lambda client: client.responses.create(**RESPONSE, stream=True),
        itself,
        has_responses,
    ),
    Shape(
        "responses helper",
        lambda client: client.responses.stream(**RESPONSE),
        itself,
        has_responses,
    ),
)


# The ten ways. What is noted of each event is the event.


def full_read(client: Any, shape: Shape, note: Note) -> None:
    entered = shape.open(client).__enter__()
    note("entered", show.thing(entered))
    stream = shape.read(entered)
    note("stream", show.thing(stream))
    if shape.read is parse:
        note("the same", entered.parse() is stream)
    for event in stream:
        note("event", show.value(event))
    note("after", [show.response(entered), show.outcome(lambda: next(stream, "over"))])
    for name in ("get_final_completion", "get_final_response"):
        if hasattr(entered, name):
            note("final", show.value(getattr(entered, name)()))


def break_out(client: Any, shape: Shape, note: Note) -> None:
    for event in shape.read(shape.open(client).__enter__()):
        note("event", show.value(event))
        break


def early_return(client: Any, shape: Shape, note: Note) -> None:
    def first() -> Any:
        for event in shape.read(shape.open(client).__enter__()):
            return event
        return None

    note("event", show.value(first()))


def close(client: Any, shape: Shape, note: Note) -> None:
    entered = shape.open(client).__enter__()
    note("event", show.value(next(iter(shape.read(entered)))))
    note("closed", entered.close())
    note("again", entered.close())
    note("after", show.response(entered))


def leave_the_block(client: Any, shape: Shape, note: Note) -> None:
    with shape.open(client) as entered:
        for event in shape.read(entered):
            note("event", show.value(event))
            break
        note("within", show.response(entered))
    note("after", show.response(entered))


def exception_in_the_block(client: Any, shape: Shape, note: Note) -> None:
    try:
        with shape.open(client) as entered:
            note("event", show.value(next(iter(shape.read(entered)))))
            raise UserError("no")  # noqa: TRY301 - here is where users raise
    except UserError as raised:
        note("raised", show.error(raised))
    note("after", show.response(entered))


def exception_from_the_wire(client: Any, shape: Shape, note: Note) -> None:
    stream = shape.read(shape.open(client).__enter__())
    try:
        for event in stream:
            note("event", show.value(event))
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is noted
        note("raised", show.error(raised))


def interrupted(client: Any, shape: Shape, note: Note) -> None:
    try:
        for event in shape.read(shape.open(client).__enter__()):
            note("event", show.value(event))
    except KeyboardInterrupt as raised:
        note("raised", show.error(raised))


def never_iterated(client: Any, shape: Shape, note: Note) -> None:
    note("stream", show.kind(shape.read(shape.open(client).__enter__())))


def half_iterated(client: Any, shape: Shape, note: Note) -> None:
    stream = iter(shape.read(shape.open(client).__enter__()))
    note("iterator", [show.kind(stream), show.steady(repr(stream))])
    for _ in range(3):
        note("event", show.value(next(stream)))
    del stream


async def entered_async(client: Any, shape: Shape) -> Any:
    opened = shape.open(client)
    if inspect.isawaitable(opened):
        opened = await opened
    return await opened.__aenter__()


async def read_async(shape: Shape, entered: Any) -> Any:
    stream = shape.read(entered)
    return await stream if inspect.isawaitable(stream) else stream


async def full_read_async(client: Any, shape: Shape, note: Note) -> None:
    entered = await entered_async(client, shape)
    note("entered", show.thing(entered))
    stream = await read_async(shape, entered)
    note("stream", show.thing(stream))
    async for event in stream:
        note("event", show.value(event))
    note("after", show.response(entered))
    for name in ("get_final_completion", "get_final_response"):
        if hasattr(entered, name):
            note("final", show.value(await getattr(entered, name)()))


async def break_out_async(client: Any, shape: Shape, note: Note) -> None:
    async for event in await read_async(shape, await entered_async(client, shape)):
        note("event", show.value(event))
        break


async def early_return_async(client: Any, shape: Shape, note: Note) -> None:
    async def first() -> Any:
        async for event in await read_async(shape, await entered_async(client, shape)):
            return event
        return None

    note("event", show.value(await first()))


async def first_of(stream: Any) -> Any:
    return await aiter(stream).__anext__()


async def close_async(client: Any, shape: Shape, note: Note) -> None:
    entered = await entered_async(client, shape)
    note("event", show.value(await first_of(await read_async(shape, entered))))
    note("closed", await entered.close())
    note("again", await entered.close())
    note("after", show.response(entered))


async def block_of(client: Any, shape: Shape) -> Any:
    opened = shape.open(client)
    return await opened if inspect.iscoroutine(opened) else opened


async def leave_the_block_async(client: Any, shape: Shape, note: Note) -> None:
    async with await block_of(client, shape) as entered:
        async for event in await read_async(shape, entered):
            note("event", show.value(event))
            break
        note("within", show.response(entered))
    note("after", show.response(entered))


async def exception_in_the_block_async(client: Any, shape: Shape, note: Note) -> None:
    try:
        async with await block_of(client, shape) as entered:
            note("event", show.value(await first_of(await read_async(shape, entered))))
            raise UserError("no")  # noqa: TRY301 - here is where users raise
    except UserError as raised:
        note("raised", show.error(raised))
    note("after", show.response(entered))


async def exception_from_the_wire_async(client: Any, shape: Shape, note: Note) -> None:
    stream = await read_async(shape, await entered_async(client, shape))
    try:
        async for event in stream:
            note("event", show.value(event))
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is noted
        note("raised", show.error(raised))


async def cancelled_async(client: Any, shape: Shape, note: Note) -> None:
    reading = asyncio.Event()

    async def read() -> None:
        async for event in await read_async(shape, await entered_async(client, shape)):
            note("event", show.value(event))
            if is_second_text(event):
                reading.set()

    task = asyncio.create_task(read())
    await reading.wait()
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as raised:
        note("raised", show.error(raised))


def is_second_text(event: Any) -> bool:
    """Whether the server waits after this one."""
    return "'b'" in str(event) or '"b"' in str(event)


async def never_iterated_async(client: Any, shape: Shape, note: Note) -> None:
    note("stream", show.kind(await read_async(shape, await entered_async(client, shape))))


async def half_iterated_async(client: Any, shape: Shape, note: Note) -> None:
    stream = aiter(await read_async(shape, await entered_async(client, shape)))
    note("iterator", [show.kind(stream), show.steady(repr(stream))])
    for _ in range(3):
        note("event", show.value(await stream.__anext__()))
    del stream


SYNC_WAYS: tuple[Callable[[Any, Shape, Note], None], ...] = (
    full_read,
    break_out,
    early_return,
    close,
    leave_the_block,
    exception_in_the_block,
    exception_from_the_wire,
    interrupted,
    never_iterated,
    half_iterated,
)
ASYNC_WAYS: tuple[Callable[[Any, Shape, Note], Awaitable[None]], ...] = (
    full_read_async,
    break_out_async,
    early_return_async,
    close_async,
    leave_the_block_async,
    exception_in_the_block_async,
    exception_from_the_wire_async,
    cancelled_async,
    never_iterated_async,
    half_iterated_async,
)


def prepare(server: Server, way: str, wait: Callable[[], object]) -> None:
    """Have the server break the connection, or wait, where the way asks for it."""
    chat, responses = STREAM, RESPONSE_STREAM
    server.events, server.response_events = chat, responses
    if "wire" in way:
        server.events, server.response_events = (*chat[:3], CUT), (*responses[:4], CUT)
    if "cancelled" in way:
        server.events, server.response_events = (*chat[:4], wait), (*responses[:5], wait)
    if "interrupted" in way:
        server.events, server.response_events = (*chat[:3], wait), (*responses[:3], wait)


async def settle() -> None:
    """Let the loop close generators that were dropped, and the collector find what they held.

    Some hold others, which are found only when the first are closed.
    """
    for _ in range(5):
        await asyncio.sleep(0)  # A loop makes the tasks that close generators in its next round.
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        gc.collect()
