"""Response bodies that tell of their reads: those that are iterated, and aiohttp's own kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any, Final

from llmlat_otel.core.guard import guarded, replaced
from llmlat_otel.core.wrapping import Proxy

_TARGET: Final = "body"


class Body(Proxy):
    """A response body that tells of its reads; of either kind, as the wrapped one is.

    Args:
        wrapped: The library's own body.
        received: Some of it has arrived; whether to be told of more. It does not raise.
    """

    def __init__(self, wrapped: Any, received: Callable[[], bool | None]) -> None:
        super().__init__(wrapped)
        self._self_received = received

    def __iter__(self) -> Any:
        return replaced(_TARGET, self.__wrapped__.__iter__(), _watched_reads, self._self_received)

    def __aiter__(self) -> Any:
        return replaced(_TARGET, self.__wrapped__.__aiter__(), _async_reads, self._self_received)


# What is iterated is a generator, or passes for one, where the body's own is: httpx closes what is.


def _watched_reads(parts: Iterator[Any], received: Callable[[], bool | None]) -> Iterator[Any]:
    if isinstance(parts, Generator):
        return _generated_reads(parts, received)
    return _Reads(parts, received)


def _async_reads(
    parts: AsyncIterator[Any], received: Callable[[], bool | None]
) -> AsyncIterator[Any]:
    if isinstance(parts, AsyncGenerator):
        return _AsyncGeneratorReads(parts, received)
    return _AsyncReads(parts, received)


def _generated_reads(
    parts: Generator[Any, Any, Any], received: Callable[[], bool | None]
) -> Iterator[Any]:
    """Once nobody wants to be told any more, it is the other generator that is read."""
    is_watched: bool | None = True
    while is_watched:
        try:
            part = next(parts)
        except StopIteration:
            return
        is_watched = received()
        try:
            yield part
        except GeneratorExit:
            parts.close()
            raise
    yield from parts


class _Reads:
    """The reads of a synchronous body; only its own library ever sees them."""

    __slots__ = ("_is_watched", "_read", "_received")

    def __init__(self, parts: Iterator[Any], received: Callable[[], bool | None]) -> None:
        self._read = parts.__next__
        self._received = received
        self._is_watched: bool | None = True

    def __iter__(self) -> _Reads:
        return self

    def __next__(self) -> Any:
        part = self._read()
        if self._is_watched:
            self._is_watched = self._received()
        return part


class _AsyncReads:
    """The reads of an asynchronous body."""

    __slots__ = ("_is_watched", "_read", "_received")

    def __init__(self, parts: AsyncIterator[Any], received: Callable[[], bool | None]) -> None:
        self._read = parts.__anext__
        self._received = received
        self._is_watched: bool | None = True

    def __aiter__(self) -> _AsyncReads:
        return self

    def __anext__(self) -> Any:
        return self._watched() if self._is_watched else self._read()

    async def _watched(self) -> Any:
        part = await self._read()
        self._is_watched = self._received()
        return part


class _AsyncGeneratorReads(_AsyncReads, AsyncGenerator[Any, Any]):
    """Those of an asynchronous generator: they are closed as one is."""

    __slots__ = ("_parts",)

    def __init__(
        self, parts: AsyncGenerator[Any, Any], received: Callable[[], bool | None]
    ) -> None:
        super().__init__(parts, received)
        self._parts = parts

    def asend(self, value: Any, /) -> Any:
        """The generator's own."""
        return self._parts.asend(value)

    def athrow(self, *error: Any) -> Any:
        """The generator's own."""
        return self._parts.athrow(*error)

    def aclose(self) -> Any:
        """The generator's own."""
        return self._parts.aclose()


def _told(name: str) -> Any:
    """A method that tells when it has read, or has failed to."""

    async def read(self: ReadableBody, *args: Any, **kwargs: Any) -> Any:
        try:
            data = await getattr(self.__wrapped__, name)(*args, **kwargs)
        except BaseException as error:
            guarded(_TARGET, self._self_failed, error)
            raise
        guarded(_TARGET, self._self_received, data)
        return data

    return read


def _lent(name: str) -> Any:
    """A method that reads by others of this object, in the place of those of the body."""

    def iterate(self: ReadableBody, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(self.__wrapped__), name)(self, *args, **kwargs)

    return iterate


class ReadableBody(Proxy):
    """aiohttp's `StreamReader`, which can be read in many ways, and tells of each read.

    Args:
        wrapped: The library's own body.
        received: Is told what has been read, which is empty at the end; called under the guard.
        failed: Is told of a read that has raised; called under the guard.
    """

    readany = _told("readany")
    readchunk = _told("readchunk")
    readexactly = _told("readexactly")
    readline = _told("readline")
    readuntil = _told("readuntil")

    __aiter__ = _lent("__aiter__")
    iter_any = _lent("iter_any")
    iter_chunked = _lent("iter_chunked")
    iter_chunks = _lent("iter_chunks")

    _self_read = _told("read")
    _self_read_all = _lent("read")

    def __init__(
        self,
        wrapped: Any,
        received: Callable[[Any], object],
        failed: Callable[[BaseException], object],
    ) -> None:
        super().__init__(wrapped)
        self._self_received = received
        self._self_failed = failed

    def read(self, n: int = -1) -> Any:
        """All of it is read bit by bit, and the first bit counts."""
        return self._self_read_all(n) if n < 0 else self._self_read(n)

    def read_nowait(self, *args: Any, **kwargs: Any) -> Any:
        """What is there already."""
        data = self.__wrapped__.read_nowait(*args, **kwargs)
        guarded(_TARGET, self._self_received, data)
        return data
