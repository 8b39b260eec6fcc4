"""The one call path: plain, awaitable, stream, context manager, raw response, abandoned."""

from __future__ import annotations

import copy
import inspect
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import CoroutineType, GeneratorType, ModuleType
from typing import Any, Protocol, TypeVar, cast

import wrapt

from llmlat_otel.core.drops import when_dropped

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
    if _is_coroutine(result):
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


def _is_coroutine(result: Any) -> bool:
    """Whether another coroutine can take its place: no task, which can be cancelled, can it."""
    kind = type(result)
    return kind is CoroutineType or (kind is GeneratorType and inspect.isawaitable(result))


def _is_awaitable(result: Any) -> bool:
    """`inspect.isawaitable`, which takes longer, asks an abstract base class what this asks."""
    return hasattr(type(result), "__await__") or _is_coroutine(result)


async def _then(awaitable: Awaitable[Any], follow: Callable[[Any], Any]) -> Any:
    return follow(await awaitable)


def wrap(function: F, wrapper: Wrapper) -> F:
    """Wrap a function so that it still looks like itself (`inspect.iscoroutinefunction` too)."""
    return cast(F, _Function(function, wrapper))


class _BoundFunction(wrapt.BoundFunctionWrapper[Any, Any]):
    """A wrapped method; copied and pickled as methods are, by what it is bound to."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        receiver = getattr(self, "__self__", None)
        return self if receiver is None else getattr(copy.deepcopy(receiver, memo), self.__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        receiver = getattr(self, "__self__", None)
        if receiver is None:
            return pkgutil.resolve_name, (f"{self.__module__}:{self.__qualname__}",)
        return getattr, (receiver, self.__name__)


class _Function(wrapt.FunctionWrapper[Any, Any]):
    """A wrapped function; copied and pickled as functions are, by its name."""

    __bound_function_wrapper__ = _BoundFunction

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__qualname__


def when_imported(module: str, hook: Callable[[ModuleType], None]) -> None:
    """Call a hook with a module once it is imported; at once if it already is."""
    wrapt.register_post_import_hook(hook, module)


def is_stream(result: Any) -> bool:
    """Whether a result is an iterator, synchronous or not."""
    kind = type(result)
    return hasattr(kind, "__next__") or hasattr(kind, "__anext__")


def stream(wrapped: Any, pull: Pull) -> Any:
    """A stream that measures its pulls, and otherwise is the one that is wrapped."""
    kind = AsyncStream if hasattr(type(wrapped), "__anext__") else SyncStream
    return kind(wrapped, pull)


class _Proxy(wrapt.BaseObjectProxy[Any]):
    """What every proxy has: it is copied and pickled as what it wraps, if that can be."""

    def __copy__(self) -> Any:
        return copy.copy(self.__wrapped__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.__wrapped__, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__wrapped__.__reduce_ex__(protocol)


class _Stream(_Proxy):
    """What both kinds of stream share: how they end other than by being read."""

    def __init__(self, wrapped: Any, pull: Pull, step: Callable[[], Any]) -> None:
        super().__init__(wrapped)
        self._self_pull = pull
        self._self_step = step
        when_dropped(self, pull.abandoned)

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

    @property
    def send(self) -> Callable[..., Any]:
        """A generator's own, where it is one."""
        return self._self_stepped(self.__wrapped__.send)

    @property
    def throw(self) -> Callable[..., Any]:
        """A generator's own, where it is one."""
        return self._self_stepped(self.__wrapped__.throw)

    def _self_stepped(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A generator's other ways to go on: pulls like the usual one."""

        def stepped(*args: Any) -> Any:
            with self._self_pull:
                event = step(*args)
            self._self_pull.received(event)
            return event

        return stepped

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

    @property
    def asend(self) -> Callable[..., Any]:
        """A generator's own, where it is one."""
        return self._self_stepped(self.__wrapped__.asend)

    @property
    def athrow(self) -> Callable[..., Any]:
        """A generator's own, where it is one."""
        return self._self_stepped(self.__wrapped__.athrow)

    def _self_stepped(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A generator's other ways to go on: pulls like the usual one."""

        async def stepped(*args: Any) -> Any:
            with self._self_pull:
                event = await step(*args)
            self._self_pull.received(event)
            return event

        return stepped

    async def __aenter__(self) -> Any:
        entered = await self.__wrapped__.__aenter__()
        return self if entered is self.__wrapped__ else entered

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        try:
            return await self.__wrapped__.__aexit__(kind, error, traceback)
        finally:
            self._self_pull.closed(error)


class RawResponse(_Proxy):
    """A response that is parsed, or read, after it was handed over.

    Args:
        wrapped: The library's own response.
        parsing: The scope of each `parse`.
        abandoned: The caller has dropped the response.
    """

    def __init__(self, wrapped: Any, parsing: Scope, abandoned: Callable[[], None]) -> None:
        super().__init__(wrapped)
        self._self_parsing = parsing
        when_dropped(self, abandoned)

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        """What the library parses, measured from here on if it is a stream."""
        return run_in(self._self_parsing, self.__wrapped__.parse, args, kwargs)


class Body(_Proxy):
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
