"""Propagation: traceparent in and out, and the current span across threads."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation import set_span_in_context

if TYPE_CHECKING:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

P = ParamSpec("P")
R = TypeVar("R")

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_NAMES: Final = {each.encode(): each for each in (TRACEPARENT, TRACESTATE)}
_PLAIN: Final = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


def enter(context: Context) -> Context:
    """Make a context current; the one before it, for `leave`."""
    before = contexts.get_current()
    contexts.attach(context)
    return before


def leave(context: Context, before: Context | None) -> bool:
    """Make the one before current again, if the one that was entered still is; whether it was.

    It is not where a coroutine or generator is closed elsewhere than it ran; detaching by token
    logs an error there (open-telemetry/opentelemetry-python#2606).
    """
    if before is None or contexts.get_current() is not context:
        return False
    contexts.attach(before)
    return True


def traceparent_of(span: SpanContext) -> str | None:
    """The W3C header that names a span as the parent; None if there is no trace."""
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


def tracestate_of(span: SpanContext) -> str:
    """The W3C header that goes with it; empty if there is none."""
    return span.trace_state.to_header() if span.trace_state else ""


def inject(
    headers: MutableMapping[str, str],
    traceparent: str | None,
    tracestate: str,
    replaces: str | None = None,
) -> None:
    """Name the parent of what the peer does; what is there already stays. No baggage goes along.

    Args:
        headers: Of the request; looked up without regard to case by the library's own type.
        traceparent: W3C header value; None leaves the headers alone.
        tracestate: W3C header value; empty if there is none.
        replaces: The value that does not stay: who asked a gateway, and not what the gateway does,
            is named by headers that it has passed on.
    """
    named = headers.get(TRACEPARENT)
    if traceparent is None or (named is not None and named != replaces):
        return
    if named is not None:
        headers.pop(TRACESTATE, None)
    headers[TRACEPARENT] = traceparent
    if tracestate and TRACESTATE not in headers:
        headers[TRACESTATE] = tracestate


def named_in(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Those of an ASGI request's headers that name its parent; a list may come in several of them.

    Args:
        headers: As a server passes them on, names in lower case.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        if name in _NAMES:
            known, said = _NAMES[name], value.decode("latin-1")
            found[known] = f"{found[known]},{said}" if known in found else said
    return found


def extract(headers: Mapping[str, str], context: Context) -> Context:
    """A context with the span that a caller's headers name; the given one if they name none.

    Args:
        headers: Of a request, by their names in lower case.
        context: What else it is to have.
    """
    named = _PLAIN.fullmatch(headers.get(TRACEPARENT, ""))
    if named is None or TRACESTATE in headers:
        return _trace_context().extract(headers, context)
    # What nearly every request has. OpenTelemetry's own reads it to the same end in twice the time,
    # which was a tenth of all that a request took that is not sampled.
    trace_id, span_id, flags = named.groups()
    parent = SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
    if not parent.is_valid:
        return context
    return set_span_in_context(NonRecordingSpan(parent), context)


@functools.cache
def _trace_context() -> TraceContextTextMapPropagator:
    # 2 ms of an import that only those need who serve requests.
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator()


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function run under the span that is current now, in whichever thread it runs.

    Only OpenTelemetry's context is carried, for the time of each run; other context variables
    stay as that thread has them. If there is nothing to carry, it is the function itself.

    Args:
        function: Any but a coroutine function; what that returns runs in its task's own context.
    """
    context = contexts.get_current()
    if not context:
        return function

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        before = enter(context)
        try:
            return function(*args, **kwargs)
        finally:
            leave(context, before)

    return carried
