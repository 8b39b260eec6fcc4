"""Programs that leave something behind: calls that are read to their end, and streams that are not.

Each makes a client, and so many calls with it, and keeps nothing. What is weakly referred to
meanwhile (clients, messages, streams, responses, chunks) is gone afterwards, unless somebody keeps
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count, cycle, islice
from typing import Any, Final
from weakref import WeakValueDictionary

from bench.bare_library import bare_client, bare_client_async
from bench.chat import MODEL, async_client, client, read, read_async, reads_of, settle, whole_reads

_STREAMED: Final = reads_of(3)
_WHOLE: Final = whole_reads()


class Watch:
    """Objects of the user's, for as long as anybody keeps them."""

    def __init__(self) -> None:
        self._things: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._numbers = count()

    def add(self, *things: object) -> None:
        """Watch these from now on."""
        for each in things:
            self._things[next(self._numbers)] = each

    def alive(self) -> list[str]:
        """What they are, those that are still there."""
        return [type(each).__name__ for each in self._things.values()]


class Messages(list[Any]):
    """Messages that can be watched."""


class _Holder:
    """Holds a stream, and itself: the garbage collector alone can find it."""

    def __init__(self, stream: object) -> None:
        self.stream = stream
        self.self = self


def _messages(watch: Watch) -> Any:
    messages = Messages([{"role": "user", "content": "Hi"}])
    watch.add(messages)
    return messages


# Calls that are read to their end


def streamed(times: int, watch: Watch) -> None:
    """Streams of openai, synchronous."""
    openai = client(_STREAMED)
    watch.add(openai)
    for _ in range(times):
        messages = _messages(watch)
        stream = openai.chat.completions.create(model=MODEL, messages=messages, stream=True)
        watch.add(stream, stream.response)
        read(stream)


def whole(times: int, watch: Watch) -> None:
    """Responses of openai that come whole, synchronous."""
    openai = client(_WHOLE)
    watch.add(openai)
    for _ in range(times):
        watch.add(openai.chat.completions.create(model=MODEL, messages=_messages(watch)))


def streamed_async(times: int, watch: Watch) -> None:
    """Streams of openai, asynchronous."""

    async def calls() -> None:
        openai = async_client(_STREAMED)
        watch.add(openai)
        for _ in range(times):
            stream = await openai.chat.completions.create(
                model=MODEL, messages=_messages(watch), stream=True
            )
            watch.add(stream, stream.response)
            await read_async(stream)
        await settle()

    asyncio.run(calls())


def whole_async(times: int, watch: Watch) -> None:
    """Responses of openai that come whole, asynchronous."""

    async def calls() -> None:
        openai = async_client(_WHOLE)
        watch.add(openai)
        for _ in range(times):
            messages = _messages(watch)
            watch.add(await openai.chat.completions.create(model=MODEL, messages=messages))

    asyncio.run(calls())


def bare(times: int, watch: Watch) -> None:
    """Streams of the library that does nothing, synchronous."""
    library = bare_client(3)
    watch.add(library)
    for _ in range(times):
        stream = library.create(model=MODEL, stream=True)
        watch.add(stream)
        read(stream)


def bare_async(times: int, watch: Watch) -> None:
    """Streams of the library that does nothing, asynchronous."""

    async def calls() -> None:
        library = bare_client_async(3)
        watch.add(library)
        for _ in range(times):
            stream = await library.create(model=MODEL, stream=True)
            watch.add(stream)
            await read_async(stream)

    asyncio.run(calls())


# Streams that are not


def _drop(stream: Any, watch: Watch) -> None:
    watch.add(next(stream))


def _drop_loop(stream: Any, watch: Watch) -> None:
    for chunk in stream:
        watch.add(chunk)
        break


def _drop_unread(stream: Any, watch: Watch) -> None:
    del stream, watch


def _drop_in_cycle(stream: Any, watch: Watch) -> None:
    holder = _Holder(stream)
    watch.add(holder, next(stream))


_DROPS: Final[tuple[Callable[[Any, Watch], None], ...]] = (
    _drop,
    _drop_loop,
    _drop_unread,
    _drop_in_cycle,
)


def dropped(times: int, watch: Watch) -> None:
    """Streams of openai that are dropped, half-way or before: one in four to be found by the GC."""
    openai = client(_STREAMED)
    watch.add(openai)
    for drop in islice(cycle(_DROPS), times):
        messages = _messages(watch)
        stream = openai.chat.completions.create(model=MODEL, messages=messages, stream=True)
        watch.add(stream, stream.response)
        drop(stream, watch)


async def _drop_async(stream: Any, watch: Watch) -> None:
    watch.add(await anext(stream))


async def _drop_loop_async(stream: Any, watch: Watch) -> None:
    async for chunk in stream:
        watch.add(chunk)
        break


async def _drop_unread_async(stream: Any, watch: Watch) -> None:
    del stream, watch


async def _drop_in_cycle_async(stream: Any, watch: Watch) -> None:
    holder = _Holder(stream)
    watch.add(holder, await anext(stream))


_ASYNC_DROPS: Final = (
    _drop_async,
    _drop_loop_async,
    _drop_unread_async,
    _drop_in_cycle_async,
)


def dropped_async(times: int, watch: Watch) -> None:
    """The same, asynchronous."""

    async def calls() -> None:
        openai = async_client(_STREAMED)
        watch.add(openai)
        for drop in islice(cycle(_ASYNC_DROPS), times):
            stream = await openai.chat.completions.create(
                model=MODEL, messages=_messages(watch), stream=True
            )
            watch.add(stream, stream.response)
            await drop(stream, watch)
            del stream
            await settle()

    asyncio.run(calls())


def bare_dropped(times: int, watch: Watch) -> None:
    """Streams of the library that does nothing, dropped likewise."""
    library = bare_client(3)
    watch.add(library)
    for drop in islice(cycle(_DROPS), times):
        stream = library.create(model=MODEL, stream=True)
        watch.add(stream)
        drop(stream, Watch())  # Its chunks are there for good.
