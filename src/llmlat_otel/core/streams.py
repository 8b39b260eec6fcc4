"""What a call gives out and is not over with: streams, and responses that are read later."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from llmlat_otel.core.guard import guarded, replaced
from llmlat_otel.core.steps import Pull, in_place_of, stopped
from llmlat_otel.core.wrapping import Proxy, Scope, run_in, wrap

# Theory of operation
# ===================
#
# What goes on living is handed over inside a proxy, which tells a `Pull` of each step:
#
#   next(stream):   begin ── an event ──> received(event)
#                     ├── it is over ───> completed
#                     └── it raised ────> failed, and the same exception, unchanged
#   stream.close(), or leaving its block: begin ── returned ──> closed
#
# A proxy can do what the object within can do, and nothing else: its class is put together from the
# abilities that the object has (some are streams of both kinds, and what can `send` passes for a
# generator). What such an object gives out to be iterated in its stead is a part of it: it is
# measured by the same pull, and keeps the whole alive, but closing or dropping it is not closing or
# dropping the whole.


def is_stream(result: Any) -> bool:
    """Whether a result is an iterator, or an asynchronous one, or gives one out."""
    kind = type(result)
    return hasattr(kind, "__next__") or hasattr(kind, "__aiter__") or hasattr(kind, "__anext__")


def stream(wrapped: Any, pull: Pull, whole: object = None) -> Any:
    """A stream that measures its pulls, and otherwise is the one that is wrapped.

    Args:
        wrapped: The library's own stream.
        pull: Is told of each step.
        whole: What it is a part of, if it is one.
    """
    kind = type(wrapped)
    parts = [part for name, part in _PROTOCOLS if hasattr(kind, name)]
    parts += [part for name, part in _METHODS if hasattr(wrapped, name)]
    return _kind(tuple(parts))(wrapped, pull, whole)


@cache
def _kind(parts: tuple[type, ...]) -> Any:
    """The class of proxies with these abilities."""
    return type("MeasuredStream", (*parts, _Stream), {})


_Stepping = tuple[str, Callable[[], None], Callable[[Any], None], Callable[[], Any]]
"""For each step: the target, what it begins with, what receives its event, and the step itself."""


class _Stream(Proxy):
    """What every stream has: it can be closed, if the one within can."""

    def __init__(self, wrapped: Any, pull: Pull, whole: object) -> None:
        super().__init__(wrapped)
        self._self_pull = pull
        self._self_whole = whole
        # Together, since an attribute of a proxy takes long to look up, and these are per chunk.
        parts = pull.target, pull.begin, pull.received
        self._self_next = (*parts, getattr(wrapped, "__next__", None))
        self._self_anext = (*parts, getattr(wrapped, "__anext__", None))

    def _self_ending(self, close: Any) -> Any:
        if self._self_whole is not None:
            return close
        return _method(close, _Closing, self._self_pull, self, None)

    def _self_left(self, leave: Any, leaving: tuple[Any, Any, Any]) -> Any:
        if self._self_whole is not None:
            return leave(*leaving)
        pull = self._self_pull
        return run_in(guarded(pull.target, _Closing, pull, self, leaving[1]), leave, leaving, {})

    def _self_iterated(self, iterator: Any) -> Any:
        if iterator is self.__wrapped__:
            return self
        pull = self._self_pull
        return in_place_of(iterator, pull, self) or stream(iterator, pull, self)


class _Steps:
    """The steps of a synchronous stream."""

    __slots__ = ()
    _self_pull: Pull
    _self_next: _Stepping
    __wrapped__: Any

    def __next__(self) -> Any:
        target, begin, received, step = self._self_next
        guarded(target, begin)
        try:
            event = step()
        except BaseException as error:
            guarded(target, stopped, self._self_pull, error)
            raise
        guarded(target, received, event)
        return event


class _AsyncSteps:
    """The steps of an asynchronous stream."""

    __slots__ = ()
    _self_pull: Pull
    _self_anext: _Stepping
    __wrapped__: Any

    async def __anext__(self) -> Any:
        target, begin, received, step = self._self_anext
        guarded(target, begin)
        try:
            event = await step()
        except BaseException as error:
            guarded(target, stopped, self._self_pull, error)
            raise
        guarded(target, received, event)
        return event


async def _awaited(step: Callable[..., Any], *args: Any) -> Any:
    return await step(*args)


def _way_on(name: str) -> property:
    """A generator's other way to its next step."""

    def method(self: _Stream) -> Any:
        step, pull = getattr(self.__wrapped__, name), self._self_pull
        return replaced(pull.target, step, _method, _Step, pull, self)

    return property(method)


def _awaited_way_on(name: str) -> property:
    """An asynchronous generator's, whose own methods return what is no coroutine."""

    def method(self: _Stream) -> Any:
        step, pull = partial(_awaited, getattr(self.__wrapped__, name)), self._self_pull
        return replaced(pull.target, step, _method, _Step, pull, self)

    return property(method)


def _ending(name: str) -> property:
    """What closes a stream."""

    def method(self: _Stream) -> Any:
        close = getattr(self.__wrapped__, name)
        return replaced(self._self_pull.target, close, self._self_ending)

    return property(method)


class _Iterated:
    """A synchronous stream that is, or gives out, an iterator."""

    __slots__ = ()
    _self_pull: Pull
    _self_iterated: Callable[[Any], Any]
    __wrapped__: Any

    def __iter__(self) -> Any:
        iterator = self.__wrapped__.__iter__()
        return replaced(self._self_pull.target, iterator, self._self_iterated)


class _AsyncIterated:
    """An asynchronous stream that is, or gives out, an iterator."""

    __slots__ = ()
    _self_pull: Pull
    _self_iterated: Callable[[Any], Any]
    __wrapped__: Any

    def __aiter__(self) -> Any:
        iterator = self.__wrapped__.__aiter__()
        return replaced(self._self_pull.target, iterator, self._self_iterated)


class _Block:
    """A stream that can be entered."""

    __slots__ = ()
    _self_left: Callable[[Any, tuple[Any, Any, Any]], Any]
    __wrapped__: Any

    def __enter__(self) -> Any:
        entered = self.__wrapped__.__enter__()
        return self if entered is self.__wrapped__ else entered

    def __exit__(self, *leaving: Any) -> Any:
        return self._self_left(self.__wrapped__.__exit__, leaving)


class _AsyncBlock:
    """A stream that can be entered with `async with`."""

    __slots__ = ()
    _self_left: Callable[[Any, tuple[Any, Any, Any]], Any]
    __wrapped__: Any

    async def __aenter__(self) -> Any:
        entered = await self.__wrapped__.__aenter__()
        return self if entered is self.__wrapped__ else entered

    def __aexit__(self, *leaving: Any) -> Any:
        return self._self_left(self.__wrapped__.__aexit__, leaving)


_PROTOCOLS: Final[tuple[tuple[str, type], ...]] = (
    ("__next__", _Steps),
    ("__anext__", _AsyncSteps),
    ("__iter__", _Iterated),
    ("__aiter__", _AsyncIterated),
    ("__enter__", _Block),
    ("__aenter__", _AsyncBlock),
)
_METHODS: Final[tuple[tuple[str, type], ...]] = tuple(
    (next(iter(methods)), type("_Able", (), {"__slots__": (), **methods}))
    for methods in (
        {"send": _way_on("send"), "throw": _way_on("throw")},
        {"asend": _awaited_way_on("asend"), "athrow": _awaited_way_on("athrow")},
        {"close": _ending("close")},
        {"aclose": _ending("aclose")},
    )
)


def _reading(name: str, make_scope: Callable[..., Scope], *more: object) -> property:
    """A method that reads or closes the body, where there is one."""

    def method(self: RawResponse) -> Any:
        found, pull = getattr(self.__wrapped__, name), self._self_reading
        return replaced(pull.target, found, _method, make_scope, pull, self, *more)

    return property(method)


class RawResponse(Proxy):
    """A response that is parsed, or its body read, after it was handed over.

    Args:
        wrapped: The library's own response.
        parsing: The scope of each `parse`.
        reading: Is told of whatever else reads the body: its parts, its end, its being closed.
    """

    def __init__(self, wrapped: Any, parsing: Scope, reading: Pull) -> None:
        super().__init__(wrapped)
        self._self_parsing = parsing
        self._self_reading = reading

    @property
    def parse(self) -> Any:
        """What the library parses, measured from here on if it is a stream."""
        parsing = self._self_parsing
        return replaced(parsing.target, self.__wrapped__.parse, _method, _Parsing, parsing, self)


# Scopes, of all that is called on a proxy other than its next step. Each keeps the proxy alive:
# what is called on an object that nobody holds is still under way.


def _method(method: Any, make_scope: Callable[..., Scope], *args: Any) -> Any:
    """A method that runs in a scope and still looks like itself; what is none, a text, as it is."""
    if not callable(method):
        return method
    scope = make_scope(*args)

    def scoped(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
        return run_in(scope, wrapped, args, kwargs)

    return wrap(method, scoped)


class _Parsing:
    """The parsing of a response."""

    def __init__(self, parsing: Scope, response: object) -> None:
        self.target = parsing.target
        self.begin = parsing.begin
        self.returned = parsing.returned
        self.failed = parsing.failed
        self.restart = parsing.restart
        self.delivered = parsing.delivered
        self._response = response


class _Step:
    """A step other than the usual one."""

    def __init__(self, pull: Pull, whole: object) -> None:
        self.target = pull.target
        self.begin = pull.begin
        self.returned = pull.returned
        self._pull = pull
        self._whole = whole

    def failed(self, error: BaseException) -> None:
        stopped(self._pull, error)

    def restart(self) -> None:
        """Nothing to start again."""

    def delivered(self, result: Any) -> Any:
        self._pull.received(result)
        return result


class _Closing(_Step):
    """The closing of a stream, or the leaving of its block, because of an error or not."""

    def __init__(self, pull: Pull, whole: object, error: BaseException | None) -> None:
        super().__init__(pull, whole)
        self._error = error

    def delivered(self, result: Any) -> Any:
        self._pull.closed(self._error)
        return result


class _Reading(_Step):
    """A reading of a response's body: all of it, or part by part."""

    def delivered(self, result: Any) -> Any:
        if is_stream(result):
            return stream(result, self._pull, self._whole)
        self._pull.received(result)
        self._pull.completed()
        return result


for _name in ("iter_bytes", "iter_text", "iter_lines", "read", "text", "json"):
    setattr(RawResponse, _name, _reading(_name, _Reading))
for _name in ("close", "aclose"):
    setattr(RawResponse, _name, _reading(_name, _Closing, None))
