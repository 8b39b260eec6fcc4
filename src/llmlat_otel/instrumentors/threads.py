"""Threads: the current span goes with them, and an operation says which of them it waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from llmlat_otel.core import flows
from llmlat_otel.core.carrying import TARGET, carried_work, carry_into, put_back, where_spans_are
from llmlat_otel.core.guard import guarded, replaced
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.joins import enclosing


def _submit(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `ThreadPoolExecutor.submit`, and with it `map` and `loop.run_in_executor`."""
    carried = guarded(TARGET, carried_work, args[0]) if args else None
    if carried is None:
        return wrapped(*args, **kwargs)
    function, flow = carried
    future = wrapped(function, *args[1:], **kwargs)
    guarded(TARGET, flows.finishes, flow, future)
    return future


def _start(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Thread.start`."""
    if guarded(TARGET, carry_into, instance) is None:
        return wrapped(*args, **kwargs)
    try:
        return wrapped(*args, **kwargs)
    except BaseException:
        guarded(TARGET, put_back, instance)
        raise


def _waiting(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps what waits for a future or a thread: its `result`, its `join`."""
    if guarded(TARGET, enclosing) is None:
        return wrapped(*args, **kwargs)
    try:
        return wrapped(*args, **kwargs)
    finally:
        guarded(TARGET, _waited_for, (instance,))


def _wait(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `concurrent.futures.wait`."""
    result = wrapped(*args, **kwargs)
    guarded(TARGET, _waited_for_done, result)
    return result


def _waited_for_done(result: Any) -> None:
    _waited_for(result.done)


def _as_completed(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `concurrent.futures.as_completed`, which is a generator."""
    futures = wrapped(*args, **kwargs)
    return futures if guarded(TARGET, enclosing) is None else replaced(TARGET, futures, _each)


def _each(futures: Iterable[Any]) -> Iterator[Any]:
    for future in futures:
        guarded(TARGET, _waited_for, (future,))
        yield future


def _waited_for(things: Iterable[Any]) -> None:
    operation = enclosing()
    if operation is not None:
        operation.waited_for([each for each in things if flows.is_over(each)])


TARGETS: Final = (
    Target("concurrent.futures.thread", "ThreadPoolExecutor.submit", _submit, where_spans_are),
    Target("threading", "Thread.start", _start, where_spans_are),
    Target("threading", "Thread.join", _waiting, where_spans_are),
    Target("concurrent.futures._base", "Future.result", _waiting, where_spans_are),
    Target("concurrent.futures._base", "Future.exception", _waiting, where_spans_are),
    *(
        Target(module, attribute, wrapper)
        for module in ("concurrent.futures", "concurrent.futures._base")
        for attribute, wrapper in (("wait", _wait), ("as_completed", _as_completed))
    ),
)
