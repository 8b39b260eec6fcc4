"""The span of one request in an engine: our own, or the one that the engine makes of it itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Span, SpanKind

from llmlat_otel.core import attributes as account
from llmlat_otel.core import propagation, server_spans
from llmlat_otel.core.attributes import NS_PER_S, Attributes, Request
from llmlat_otel.core.emit import Emitter, Finished, OpenSpan, open_span
from llmlat_otel.core.recording import Anchor, PhaseInterval, Recording
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.spans import engine_span_name
from llmlat_semconv.values import Boundary, OperationName, StreamEnd

ENGINE = Boundary.ENGINE


class EngineAccount(NamedTuple):
    """What there is to say of a request that an engine has answered, or has given up.

    All instants are on our own clock but those of `elsewhere`, of which only lengths are known.

    Attributes:
        operation: What was asked for.
        model: Its name, as callers ask for it; None where nobody has said.
        start_ns: When the request was accepted.
        end_ns: When its last output was handed over, or it was given up.
        phases: In the order of their starts.
        elsewhere: Phases on the clock of another host: lengths without a place in our time.
        facts: What else is known, by attribute.
        end: How it ended.
        error_type: What it failed with, if it did.
        provider: Who makes the engine, in OpenTelemetry's words or its own name.
    """

    operation: OperationName
    model: str | None
    start_ns: int
    end_ns: int
    phases: tuple[PhaseInterval, ...]
    facts: Attributes
    end: StreamEnd
    elsewhere: tuple[PhaseInterval, ...] = ()
    error_type: str | None = None
    provider: str | None = None


class Caller(NamedTuple):
    """Who asks an engine.

    Attributes:
        context: Whose current span is the caller's, if it has one.
        kind: Of the engine's span: SERVER where the caller is elsewhere, else INTERNAL.
    """

    context: Context
    kind: SpanKind

    @property
    def is_heard(self) -> bool:
        """Whether a request of this caller's may be recorded: the caller's own span is, or none."""
        named = trace.get_current_span(self.context).get_span_context()
        return not named.is_valid or named.trace_flags.sampled

    @property
    def headers(self) -> dict[str, str]:
        """The W3C headers that name the caller; none if it has no span."""
        named = trace.get_current_span(self.context).get_span_context()
        headers: dict[str, str] = {}
        said = propagation.traceparent_of(named), propagation.tracestate_of(named)
        propagation.inject(headers, *said)
        return headers


def caller(headers: Mapping[str, str] | None) -> Caller:
    """Who asks here and now.

    Args:
        headers: Those of an HTTP request that name its parent; None where it is none. Where
            somebody has a span of that request, this one is the caller.
    """
    if headers is None or server_spans.is_current_servers():
        return Caller(get_current(), SpanKind.INTERNAL)
    return Caller(server_spans.parent_of(headers), SpanKind.SERVER)


def write_engine(
    emitter: Emitter, request: EngineAccount, asked_by: Caller, anchor: Anchor
) -> Span:
    """Write a request as a span of our own, with its phases; the span, which has ended.

    Args:
        emitter: Knows where spans go.
        request: The account.
        asked_by: Whose request it was.
        anchor: How instants become wall time.
    """
    finished = _finished(request, anchor)
    every = account.of_operation(ENGINE, anchor)
    every.update(account.of_request(finished.request))
    name = engine_span_name(request.operation.value)
    output = emitter.output()
    context, kind = asked_by
    opened = open_span(output, name, every, context, request.start_ns, anchor, kind)
    try:
        opened.is_counted = True  # As a whole it is its caller's to count.
        emitter.finish(opened, {}, finished)
    finally:  # Where that has failed it is not left open.
        emitter.give_up(opened)
    return opened.span


def write_into(emitter: Emitter, request: EngineAccount, span: Span, anchor: Anchor) -> None:
    """Write a request's phases below the span that the engine itself makes of it.

    Args:
        emitter: Knows where spans go.
        request: The account.
        span: The engine's own, which has not ended.
        anchor: How instants become wall time.
    """
    output, inside = emitter.output(), trace.set_span_in_context(span)
    recorded = span.is_recording()
    span.set_attributes({**account.of_operation(ENGINE, anchor), **output.domain})
    opened = OpenSpan(span, inside, anchor, recorded, output, is_ours=False, is_counted=True)
    finished = _finished(_since_begin_of(span, request, anchor), anchor)
    emitter.finish(opened, {}, finished)


def _since_begin_of(span: Span, request: EngineAccount, anchor: Anchor) -> EngineAccount:
    """A request less what came before the engine's own span begins, in which it is to lie."""
    start_wall_ns = getattr(span, "start_time", None)
    if start_wall_ns is None:
        return request
    start_ns = max(request.start_ns, start_wall_ns - anchor.wall_ns + anchor.monotonic_ns)
    phases = tuple(
        each._replace(start_ns=max(each.start_ns, start_ns))
        for each in request.phases
        if each.end_ns > start_ns
    )
    if not phases:
        return request  # The wall clock was set meanwhile: where the span begins is not known.
    return request._replace(start_ns=start_ns, phases=phases)


def _finished(request: EngineAccount, anchor: Anchor) -> Finished:
    facts: Attributes = {**request.facts, **_lengths(request)}
    facts[names.LLMLAT_STREAM_END] = request.end.value
    recording = Recording(
        anchor, request.start_ns, request.end_ns, request.phases, 0, (), None, (), ()
    )
    return Finished(_asked(request), recording, facts, request.error_type)


def _asked(request: EngineAccount) -> Request:
    return Request(request.operation, request.provider, request.model, None, boundary=ENGINE)


def _lengths(request: EngineAccount) -> Mapping[str, float]:
    """Phases without a place, each phase's as one amount."""
    lengths: dict[Phase, int] = {}
    for each in request.elsewhere:
        lengths[each.phase] = lengths.get(each.phase, 0) + each.end_ns - each.start_ns
    return {duration_attribute(phase): length / NS_PER_S for phase, length in lengths.items()}
