"""Functions of somebody else, called within work of our own: plain, awaitable, or bound to come."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from types import CoroutineType, GeneratorType, ModuleType
from typing import Any, Protocol, TypeVar, cast

import wrapt

from llmlat_otel.core.guard import guarded, replaced

# Theory of operation
# ===================
#
# A scope is our own work around somebody else's function. It never knows whether that function is
# synchronous: `run_in` decides once, by what came back.
#
#   begin: wrapped() ── returned ──> delivered(result)
#             │            └── a coroutine ──> restart, begin: await ── returned ──> delivered
#             └── raised ────> failed, and the same exception, unchanged
#
# Whatever a scope does is done under the guard: this file and `streams` are all of our code that
# can raise into a caller. Nothing is current, and no context is attached, while the caller has
# control.

F = TypeVar("F", bound=Callable[..., Any])

Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
"""Called with the wrapped function, the instance it is bound to, args and kwargs."""


class Scope(Protocol):
    """Our own work around one call of a function; all of it is called under the guard."""

    @property
    def target(self) -> str:
        """What is being timed, for the count of faults."""

    def begin(self) -> None:
        """The function runs from here on."""

    def returned(self) -> None:
        """The function has handed back control."""

    def failed(self, error: BaseException) -> None:
        """The function has handed back control, for good, by an exception."""

    def restart(self) -> None:
        """Nothing has run yet: the function was asynchronous, and runs only now."""

    def delivered(self, result: Any) -> Any:
        """The function has returned; what the caller gets."""


def run_in(
    scope: Scope | None,
    wrapped: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Call a function within a scope, whatever kind of function it is.

    Args:
        scope: The scope; None if there is none, because it could not be made for example.
        wrapped: The function.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    if scope is None:
        return wrapped(*args, **kwargs)
    target = scope.target
    guarded(target, scope.begin)
    try:
        result = wrapped(*args, **kwargs)
    except BaseException as error:
        guarded(target, scope.failed, error)
        raise
    guarded(target, scope.returned)
    return replaced(target, result, _followed, scope)


def _followed(result: Any, scope: Scope) -> Any:
    """What the caller gets: what the scope makes of a result, now or when it has been awaited.

    Another coroutine can take the place of one; not of a task, which can be cancelled.
    """
    kind = type(result)
    if kind is not CoroutineType and not (kind is GeneratorType and inspect.isawaitable(result)):
        return scope.delivered(result)
    waiting = _Waiting()
    coroutine = _awaited(scope, waiting)
    guarded(scope.target, _name_after, coroutine, result)
    waiting.coroutine = result  # Nothing can fail any more: the one takes the other's place.
    return coroutine


async def _awaited(scope: Scope, waiting: _Waiting) -> Any:
    target = scope.target
    guarded(target, scope.restart)
    guarded(target, scope.begin)
    try:
        coroutine, waiting.coroutine = waiting.coroutine, None
        result = await coroutine
    except BaseException as error:
        guarded(target, scope.failed, error)
        raise
    guarded(target, scope.returned)
    return replaced(target, result, scope.delivered)


class _Waiting:
    """A coroutine that waits for the one that takes its place to run.

    If that never runs, Python warns of that one; it need not warn of both.
    """

    __slots__ = ("coroutine",)

    def __init__(self) -> None:
        self.coroutine: Any = None

    def __del__(self) -> None:
        if self.coroutine is not None:
            self.coroutine.close()


def _name_after(coroutine: Any, replaced: Any) -> None:
    """Warnings and the repr of tasks name a coroutine."""
    coroutine.__name__, coroutine.__qualname__ = replaced.__name__, replaced.__qualname__


class Sight:
    """A scope that does nothing but see what is delivered.

    Args:
        target: What is being timed.
        delivered: Sees it; what the caller gets in its place, if anything else.
    """

    __slots__ = ("delivered", "target")

    def __init__(self, target: str, delivered: Callable[[Any], Any]) -> None:
        self.target = target
        self.delivered = delivered

    def begin(self) -> None:
        """Nothing to do."""

    def returned(self) -> None:
        """Nothing to do."""

    def failed(self, error: BaseException) -> None:
        """Nothing to do."""

    def restart(self) -> None:
        """Nothing to do."""


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
            from pkgutil import resolve_name  # noqa: PLC0415 - 1 ms of an import, for few

            return resolve_name, (f"{self.__module__}:{self.__qualname__}",)
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


class _Copying:
    """`copy` asks the class, which always can; `itertools.tee` the object, which seldom can."""

    def __get__(self, proxy: Any, _: type) -> Any:
        return _copied if proxy is None else proxy.__wrapped__.__copy__


def _copied(proxy: Any) -> Any:
    return copy.copy(proxy.__wrapped__)


class Proxy(wrapt.BaseObjectProxy[Any]):
    """What every proxy has: it is shown, copied and pickled as what it wraps, if that can be.

    `type(proxy)` is all that tells the two apart: `proxy.__class__`, and so `isinstance`, does not.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        wrapped: dict[str, Any] = self.__wrapped__.__dict__
        return wrapped

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    __copy__ = _Copying()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.__wrapped__, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__wrapped__.__reduce_ex__(protocol)
