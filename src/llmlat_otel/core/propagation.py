"""Propagation: traceparent in and out, and the current span across threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, MutableMapping
from typing import Final, TypeVar

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

R = TypeVar("R")

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_propagator = TraceContextTextMapPropagator()


def enter(context: Context) -> Context:
    """Make a context current; the one before it, for `leave`."""
    before = contexts.get_current()
    contexts.attach(context)
    return before


def leave(context: Context, before: Context | None) -> None:
    """Make the one before current again, if the one that was entered still is.

    It is not where a coroutine or generator is closed elsewhere than it ran; detaching by token
    logs an error there (open-telemetry/opentelemetry-python#2606).
    """
    if before is not None and contexts.get_current() is context:
        contexts.attach(before)


def inject(headers: MutableMapping[str, str], traceparent: str | None, tracestate: str) -> None:
    """Name the parent of what the peer does; a parent that is already named stays.

    Args:
        headers: Of the request; looked up without regard to case by the library's own type.
        traceparent: W3C header value; None leaves the headers alone.
        tracestate: W3C header value; empty if there is none.
    """
    if traceparent is None or TRACEPARENT in headers:
        return
    headers[TRACEPARENT] = traceparent
    if tracestate:
        headers[TRACESTATE] = tracestate


def extract(headers: Mapping[str, str]) -> Context:
    """The context that a caller's headers name; the current one if they name none."""
    return _propagator.extract({name.lower(): value for name, value in headers.items()})


def carry(function: Callable[..., R]) -> Callable[..., R]:
    """Make a function run under the span that is current now, in whichever thread it runs.

    Only OpenTelemetry's context is carried, for the time of each run; other context variables
    stay as that thread has them.
    """
    context = contexts.get_current()

    @functools.wraps(function)
    def carried(*args: object, **kwargs: object) -> R:
        before = enter(context)
        try:
            return function(*args, **kwargs)
        finally:
            leave(context, before)

    return carried
