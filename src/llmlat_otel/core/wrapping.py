"""The one call path: plain, awaitable, stream, context manager, raw response, abandoned."""

from __future__ import annotations

import _thread
import gc
import inspect
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import GeneratorType, ModuleType
from typing import Any, Protocol, TypeVar, cast

import wrapt

# Theory of operation
# ===================
#
# A scope is our own work around somebody else's function. It never knows whether that function is
# synchronous: `run_in` decides once, by what came back.
#
#   with scope: wrapped()  ── returned ──> scope.delivered(result)
#        │                └── awaitable ─> with scope: await ──> scope.delivered(result)
#        └── raised ────> the same exception, unchanged
#
# What is delivered may go on living: a stream is handed over inside a proxy that measures each pull
# with a `Pull`, which is again the same for both kinds of stream. Nothing is current, and no
# context is attached, while the caller has control.

F = TypeVar("F", bound=Callable[..., Any])
Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
"""Called with the wrapped function, the instance it is bound to, args and kwargs."""


class Scope(Protocol):
    """Our own work around one call of a function. None of its methods raises."""

    def __enter__(self) -> object:
        """The function runs from here on."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """The function has handed back control; for good, if by an exception."""

    def restart(self) -> None:
        """Nothing has run yet: the function was asynchronous, and runs only now."""

    def delivered(self, result: Any) -> Any:
        """The function has returned; what the caller gets."""


class Pull(Protocol):
    """Our own work around each step of a stream. None of its methods raises."""

    def __enter__(self) -> object:
        """The caller asks for the next event."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """The event is there; or the stream is over, if by an exception."""

    def received(self, event: Any) -> None:
        """The event that was there."""

    def closed(self, error: BaseException | None) -> None:
        """The caller has closed the stream, because of an exception of its own or not."""

    def abandoned(self) -> None:
        """The caller has dropped the stream."""


def run_in(
    scope: Scope, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Call a function within a scope, whatever kind of function it is."""
    with scope:
        result = wrapped(*args, **kwargs)
    if _is_awaitable(result):
        return _awaited(scope, result)
    return scope.delivered(result)


async def _awaited(scope: Scope, awaitable: Awaitable[Any]) -> Any:
    scope.restart()
    with scope:
        result = await awaitable
    return scope.delivered(result)


def then(result: Any, follow: Callable[[Any], Any]) -> Any:
    """Apply a function to a result, now or when it has been awaited."""
    if _is_awaitable(result):
        return _then(result, follow)
    return follow(result)


def _is_awaitable(result: Any) -> bool:
    """`inspect.isawaitable`, which takes longer, asks an abstract base class what this asks."""
    kind = type(result)
    return hasattr(kind, "__await__") or (kind is GeneratorType and inspect.isawaitable(result))


async def _then(awaitable: Awaitable[Any], follow: Callable[[Any], Any]) -> Any:
    return follow(await awaitable)


def wrap(function: F, wrapper: Wrapper) -> F:
    """Wrap a function so that it still looks like itself (`inspect.iscoroutinefunction` too)."""
    return cast(F, wrapt.FunctionWrapper(function, wrapper))


def when_imported(module: str, hook: Callable[[ModuleType], None]) -> None:
    """Call a hook with a module once it is imported; at once if it already is."""
    wrapt.register_post_import_hook(hook, module)


class _Collection(threading.local):
    """Whether this thread is collecting garbage."""

    is_running = False

    def changed(self, phase: str, _: Mapping[str, int]) -> None:
        self.is_running = phase == "start"


_collection = _Collection()
gc.callbacks.append(_collection.changed)


def _when_dropped(thing: object, follow: Callable[[], None]) -> None:
    """Call a function when an object is dropped, or at exit if it never is."""
    weakref.finalize(thing, _dropped, follow)


def _dropped(follow: Callable[[], None]) -> None:
    """Follow up a drop, in a thread of its own if the garbage collector has found the object.

    Garbage is collected wherever memory is allocated, perhaps within one of the locks that ending
    a span or recording a metric takes: to wait for it there would be to wait forever.
    """
    if _collection.is_running:
        _thread.start_new_thread(follow, ())
    else:
        follow()


def is_stream(result: Any) -> bool:
    """Whether a result is an iterator, synchronous or not."""
    kind = type(result)
    return hasattr(kind, "__next__") or hasattr(kind, "__anext__")


def stream(wrapped: Any, pull: Pull) -> Any:
    """A stream that measures its pulls, and otherwise is the one that is wrapped."""
    kind = AsyncStream if hasattr(type(wrapped), "__anext__") else SyncStream
    return kind(wrapped, pull)


class _Stream(wrapt.BaseObjectProxy[Any]):
    """What both kinds of stream share: how they end other than by being read."""

    def __init__(self, wrapped: Any, pull: Pull, step: Callable[[], Any]) -> None:
        super().__init__(wrapped)
        self._self_pull = pull
        self._self_step = step
        _when_dropped(self, pull.abandoned)

    def close(self, *args: Any, **kwargs: Any) -> Any:
        return then(self.__wrapped__.close(*args, **kwargs), self._self_closed)

    @property
    def aclose(self) -> Callable[..., Any]:
        inner = self.__wrapped__.aclose

        def aclose(*args: Any, **kwargs: Any) -> Any:
            return then(inner(*args, **kwargs), self._self_closed)

        return aclose

    def _self_closed(self, result: Any) -> Any:
        self._self_pull.closed(None)
        return result


class SyncStream(_Stream):
    """A synchronous stream, measured at the pull."""

    def __init__(self, wrapped: Any, pull: Pull) -> None:
        super().__init__(wrapped, pull, wrapped.__next__)

    def __iter__(self) -> SyncStream:
        return self

    def __next__(self) -> Any:
        pull = self._self_pull
        with pull:
            event = self._self_step()
        pull.received(event)
        return event

    def __enter__(self) -> Any:
        entered = self.__wrapped__.__enter__()
        return self if entered is self.__wrapped__ else entered

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        try:
            return self.__wrapped__.__exit__(kind, error, traceback)
        finally:
            self._self_pull.closed(error)


class AsyncStream(_Stream):
    """An asynchronous stream, measured at the pull."""

    def __init__(self, wrapped: Any, pull: Pull) -> None:
        super().__init__(wrapped, pull, wrapped.__anext__)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Any:
        pull = self._self_pull
        with pull:
            event = await self._self_step()
        pull.received(event)
        return event

    async def __aenter__(self) -> Any:
        entered = await self.__wrapped__.__aenter__()
        return self if entered is self.__wrapped__ else entered

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        try:
            return await self.__wrapped__.__aexit__(kind, error, traceback)
        finally:
            self._self_pull.closed(error)


class RawResponse(wrapt.BaseObjectProxy[Any]):
    """A response that is parsed, or read, after it was handed over.

    Args:
        wrapped: The library's own response.
        parsing: The scope of each `parse`.
        abandoned: The caller has dropped the response.
    """

    def __init__(self, wrapped: Any, parsing: Scope, abandoned: Callable[[], None]) -> None:
        super().__init__(wrapped)
        self._self_parsing = parsing
        _when_dropped(self, abandoned)

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        """What the library parses, measured from here on if it is a stream."""
        return run_in(self._self_parsing, self.__wrapped__.parse, args, kwargs)


class Body(wrapt.BaseObjectProxy[Any]):
    """A response body that tells of its reads; of either kind, as the wrapped one is.

    Args:
        wrapped: The library's own body.
        received: Some of it has arrived; whether to be told of more. It does not raise.
    """

    def __init__(self, wrapped: Any, received: Callable[[], bool | None]) -> None:
        super().__init__(wrapped)
        self._self_received = received

    def __iter__(self) -> _Reads:
        return _Reads(self.__wrapped__.__iter__(), self._self_received)

    def __aiter__(self) -> _AsyncReads:
        return _AsyncReads(self.__wrapped__.__aiter__(), self._self_received)


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

    def __anext__(self) -> Awaitable[Any]:
        return self._watched() if self._is_watched else self._read()

    async def _watched(self) -> Any:
        part = await self._read()
        self._is_watched = self._received()
        return part
