"""The SERVER span of a request: somebody else's that is there already, or one of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind

from llmlat_otel.core import attributes as account
from llmlat_otel.core import propagation
from llmlat_otel.core.attributes import NS_PER_S, Attributes
from llmlat_otel.core.emit import Emitter, OpenSpan, open_span
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.serving import Served
from llmlat_semconv import attributes as names
from llmlat_semconv.spans import gateway_span_name
from llmlat_semconv.values import Boundary

_METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
_OTHER: Final = "_OTHER"
_HTTP: Final = "HTTP"
_GATEWAY: Final = Boundary.GATEWAY.value
_SERVER: Final = SpanKind.SERVER
_ORDER_OF_RELAY: Final = 2


class Answer(NamedTuple):
    """What a request has come to; None where it is not known.

    Attributes:
        end_ns: When its last byte was sent, or that was given up.
        status: Of the response.
        error_type: What it failed with, if it did.
        is_whole: Whether the last byte was sent.
    """

    end_ns: int
    status: int | None
    error_type: str | None
    is_whole: bool


# Somebody else's


def is_current_servers(earlier: Served | None = None) -> bool:
    """Whether the current span is a request's; or is not sampled, nor is what is below it.

    Args:
        earlier: What was served here and is over, if that is known.
    """
    current = trace.get_current_span()
    context = current.get_span_context()
    if not context.is_valid or context.is_remote or _is_past(current, earlier):
        return False
    return not current.is_recording() or getattr(current, "kind", None) is _SERVER


def _is_past(span: Span, earlier: Served | None) -> bool:
    """Whether a span is of a request that is over.

    Servers begin a connection's next request in the context of the one before, and asyncio calls
    back in the context in which reading was resumed (python/cpython#140947).
    """
    if getattr(span, "end_time", None) is not None:
        return True
    if earlier is None or span.is_recording():
        return False
    return span.get_span_context().trace_id == earlier.trace_id


# Our own


def opened(
    emitter: Emitter, method: str, parent: Context, start_ns: int, anchor: Anchor
) -> OpenSpan:
    """Start a span of our own.

    Args:
        emitter: Knows where spans go.
        method: Of the request.
        parent: The context that it is started in.
        start_ns: When it was received.
        anchor: How its instants become wall time.
    """
    method = method if method in _METHODS else _OTHER
    attributes = account.of_clock(anchor)
    attributes[names.HTTP_REQUEST_METHOD] = method
    output, name = emitter.output(), _named(method, None)
    return open_span(output, name, attributes, parent, start_ns, anchor, _SERVER)


def parent_of(headers: Mapping[str, str], earlier: Served | None = None) -> Context:
    """What a request is below: its caller's span, else what is current here, else nothing.

    Args:
        headers: Those of the request that name its parent.
        earlier: What was served here and is over, if that is known.
    """
    here = get_current()
    if headers:
        named = propagation.extract(headers, here)
        if named is not here:
            return named
    if _is_past(trace.get_current_span(here), earlier):
        return trace.set_span_in_context(INVALID_SPAN, here)
    return here


def _named(method: str, route: str | None) -> str:
    """As OpenTelemetry names a request that is no gateway's."""
    known = _HTTP if method == _OTHER else method
    return known if route is None else f"{known} {route}"


# What is said


def describe_theirs(
    emitter: Emitter, opened: OpenSpan, served: Served, *, is_all_sent: bool
) -> None:
    """Say on somebody else's span what it does not say, if it is a gateway's.

    Args:
        emitter: Knows where spans go.
        opened: The span, which may end with the last byte.
        served: The request.
        is_all_sent: Whether all that came from upstream was sent down, or will not be.
    """
    if not served.is_gateways or not opened.is_recording:
        return
    durations = emitter.write_phases(opened, served.before_the_answer(), 0)
    if opened.span.is_recording():
        ours = account.of_operation(Boundary.GATEWAY, opened.anchor)
        held = _held(served) if is_all_sent else {}
        opened.span.set_attributes({**ours, **opened.output.domain, **held, **durations})


def finish_theirs(emitter: Emitter, opened: OpenSpan, served: Served, answer: Answer) -> None:
    """Write what is known only after the last byte; their span may have ended with it."""
    if not served.is_gateways or not opened.is_recording:
        return
    says = {**_held(served), **_write_relay(emitter, opened, served, answer)}
    if opened.span.is_recording():
        opened.span.set_attributes(says)


def finish(emitter: Emitter, opened: OpenSpan, served: Served, method: str, answer: Answer) -> None:
    """Write what there is to say of a request that is over; end its span, which is our own.

    Args:
        emitter: Knows where spans go.
        opened: The request's span.
        served: The request.
        method: Of the request.
        answer: What it has come to.
    """
    try:
        if opened.is_recording:
            _describe(emitter, opened, served, method, answer)
    finally:  # The application's own span processors may raise.
        emitter.end(opened, answer.end_ns, answer.error_type)


def _describe(
    emitter: Emitter, opened: OpenSpan, served: Served, method: str, answer: Answer
) -> None:
    route = account.text(served.route)
    says: Attributes = {}
    if route is not None:
        says[names.HTTP_ROUTE] = route
    if answer.status is not None:
        says[names.HTTP_RESPONSE_STATUS_CODE] = answer.status
    if served.is_gateways:
        name = gateway_span_name(route)
        says[names.LLMLAT_BOUNDARY_NAME] = _GATEWAY
        says.update(_held(served))
        says.update(emitter.write_phases(opened, served.before_the_answer(), 0))
        says.update(_write_relay(emitter, opened, served, answer))
    else:
        name = _named(method if method in _METHODS else _OTHER, route)
    opened.span.update_name(name)
    opened.span.set_attributes(says)


def _write_relay(
    emitter: Emitter, opened: OpenSpan, served: Served, answer: Answer
) -> Mapping[str, float]:
    down = served.after_the_answer(answer.end_ns, is_truncated=not answer.is_whole)
    return emitter.write_phases(opened, down, _ORDER_OF_RELAY)


def _held(served: Served) -> Attributes:
    held = served.hold_ns
    if held is None:
        return {}
    sum_ns, max_ns = held
    return {
        names.LLMLAT_RELAY_HOLD_SUM: sum_ns / NS_PER_S,
        names.LLMLAT_RELAY_HOLD_MAX: max_ns / NS_PER_S,
    }
