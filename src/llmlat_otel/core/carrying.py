"""Carrying: the current span goes with the work that is handed to another thread.

    pool.submit(work)     under the span, for as long as the work runs; the pool's own threads,
                          which live on, have no span of ours
    Thread(...).start()   under the span, for as long as the thread runs
    the same, daemon      under the span, for as long as the span's block runs

Only OpenTelemetry's context is carried: other context variables stay as the thread has them, and a
call that is made there is one of its own. Without a current span nothing is done at all.

A thread may be started by the first request that needs it and then serve others, whose parent must
not be that first request. Pools and servers that are known to do so are not carried into
(`SERVICES`). Otherwise Python's own word is taken: a daemon thread is one that nobody waits for. It
may well be a service, and so it has the span only while that is there for it, and does not keep it
in memory.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from types import FunctionType
from typing import Final, ParamSpec, TypeVar, cast

from opentelemetry.context import Context, get_current

from llmlat_otel.core import flows, propagation
from llmlat_otel.core.flows import Flow
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import runtime
from llmlat_otel.core.wrapping import F, Wrapper, wrap

P = ParamSpec("P")
R = TypeVar("R")

TARGET: Final = "threads"

SERVICES: Final = (
    "anyio.",
    "asyncio.base_events.",
    "concurrent.futures.",
    "gunicorn.",
    "hypercorn.",
    "logging.",
    "multiprocessing.",
    "opentelemetry.",
    "socketserver.",
    "uvicorn.",
    "uvloop.",
)
"""Modules whose threads serve whoever comes: pools, servers, exporters."""

_NOTHING: Final = Context()


def where_spans_are(original: F, wrapper: Wrapper) -> F:
    """Wrap a method of the standard library that all of a program uses: nearly free without a span.

    It is a plain function, where the original is one.
    """
    if type(original) is not FunctionType:  # Somebody else has wrapped it.
        return wrap(original, wrapper)

    @functools.wraps(original)
    def method(self: object, /, *args: object, **kwargs: object) -> object:
        if not guarded(TARGET, get_current):
            return original(self, *args, **kwargs)
        return wrapper(original.__get__(self), self, args, kwargs)

    return cast(F, method)


def carried_work(function: Callable[P, R]) -> tuple[Callable[P, R], Flow] | None:
    """A function that runs under the current span, and how it is known; None without a span."""
    context = get_current()
    if not runtime().emitter.is_within_span():
        return None
    flow = Flow(flows.current())
    return functools.partial(_run, flow, context, function), flow


def carry_into(thread: threading.Thread) -> Flow | None:
    """Have a thread that is about to start run under the current span, if it is to.

    `run` of the one object is replaced until it is called, whatever class defines it.
    """
    context = get_current()
    own = vars(thread)
    if "run" in own or is_service(thread) or not runtime().emitter.is_within_span():
        return None
    flow = Flow()
    lent = Lent(context) if thread.daemon else context
    own["run"] = functools.partial(_run_thread, weakref.ref(thread), flow, lent)
    return flow


def put_back(thread: threading.Thread) -> None:
    """Have a thread run as it would have; it could not be started."""
    vars(thread).pop("run", None)


def is_service(thread: threading.Thread) -> bool:
    """Whether a thread serves whoever comes, as far as is known."""
    function = getattr(thread, "_target", None) or type(thread).run
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and f"{module}.".startswith(SERVICES)


def _run_thread(known: weakref.ref[threading.Thread], flow: Flow, context: Context) -> None:
    thread = known()
    if thread is not None:
        vars(thread).pop("run", None)  # Not under the guard: left there, it would call itself.
        _run(flow, context, thread.run)


def _run(
    flow: Flow, context: Context, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    before = guarded(TARGET, propagation.enter, context)
    doing = guarded(TARGET, flow.begin)
    try:
        return function(*args, **kwargs)
    finally:
        if doing is not None:
            guarded(TARGET, flow.end, doing)
        guarded(TARGET, propagation.leave, context, before)


class Lent(Context):
    """A context that is empty once its block is over, and does not keep it in memory.

    What asks for it in a way that is not foreseen finds it empty.

    Args:
        context: The context of a block that is running.
    """

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._lender = weakref.ref(context)
        self._emitter = runtime().emitter
        self._has_end = self._emitter.is_running(context)

    def _whole(self) -> Context:
        context = self._lender()
        if context is None or (self._has_end and not self._emitter.is_running(context)):
            return _NOTHING
        return context

    def get(self, key: str, default: object = None) -> object:
        """As a dict."""
        return self._whole().get(key, default)

    def copy(self) -> dict[str, object]:
        """As a dict: what is copied is the copier's to keep."""
        return self._whole().copy()

    def __getitem__(self, key: str) -> object:
        return self._whole()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._whole()

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """As a dict."""
        return self._whole().keys()

    def items(self) -> ItemsView[str, object]:  # type: ignore[override]
        """As a dict."""
        return self._whole().items()

    def values(self) -> ValuesView[object]:  # type: ignore[override]
        """As a dict."""
        return self._whole().values()
