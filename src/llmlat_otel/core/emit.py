"""Emission: recordings become spans and metrics; the only caller of OpenTelemetry's signal APIs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.context import Context, get_current
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from llmlat_otel.core import attributes as account
from llmlat_otel.core.attributes import NS_PER_S, Attributes, Request
from llmlat_otel.core.points import METRICS, points
from llmlat_otel.core.recording import Anchor, Attempt, PhaseInterval, Recording
from llmlat_otel.settings import PhasesMode, Settings
from llmlat_semconv import attributes as names
from llmlat_semconv.events import LLMLAT_TOOL_CALL
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.spans import attempt_span_name, inference_span_name, phase_span_name
from llmlat_semconv.values import AttemptReason, Boundary, OperationName
from llmlat_semconv.version import CONTRACT_VERSION, SCHEMA_URL

SCOPE: Final = "llmlat_otel"
SCOPE_VERSION: Final = version("llmlat-otel")

_SCOPE_ATTRIBUTES: Final = {names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION}
_PHASE_SPAN_NAMES: Final = {phase: phase_span_name(phase.value) for phase in Phase}
_INFERENCES: Final = frozenset(
    {OperationName.CHAT, OperationName.TEXT_COMPLETION, OperationName.GENERATE_CONTENT}
)


class _Output(NamedTuple):
    """Where spans go.

    Attributes:
        tracer: Starts them.
        domain: Names the clock domain on each; nothing where the provider's resource names it.
    """

    tracer: Tracer
    domain: Attributes

    def start(
        self,
        name: str,
        attributes: Attributes,
        context: Context | None,
        start_ns: int,
        anchor: Anchor,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """Start a span at a monotonic instant; `attributes` is added to."""
        attributes[names.LLMLAT_CLOCK_MONOTONIC_START] = start_ns
        attributes.update(self.domain)
        start_time = anchor.wall_at(start_ns)
        return self.tracer.start_span(name, context, kind, attributes, start_time=start_time)

    def opened(self, span: Span, context: Context | None, anchor: Anchor) -> OpenSpan:
        """A span of ours that was started in a context, with what its children need."""
        inside = trace.set_span_in_context(span, context)
        return OpenSpan(span, inside, anchor, span.is_recording(), self)


@dataclass(slots=True)
class OpenSpan:
    """A span under way, with the context in which it is the current one.

    Attributes:
        span: The span.
        context: For its children.
        anchor: How its instants become wall time.
        is_recording: False if it is not sampled: nothing below it is worth the making.
        output: Where its children go.
        is_ours: False if another instrumentation opened it, and ends it.
    """

    span: Span
    context: Context
    anchor: Anchor
    is_recording: bool
    output: _Output
    is_ours: bool = True

    @property
    def traceparent(self) -> str | None:
        """The W3C header that names this span as the parent; None if there is no trace."""
        context = self.span.get_span_context()
        if not context.is_valid:
            return None
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def within_current(self) -> Context:
        """The current context, whatever others have set in it, with this as the current span."""
        return trace.set_span_in_context(self.span)

    @property
    def tracestate(self) -> str:
        """The W3C header that goes with it; empty if there is none."""
        state = self.span.get_span_context().trace_state
        return state.to_header() if state else ""


class Finished(NamedTuple):
    """What there is to say of a call that is over.

    Attributes:
        request: What it asked for.
        recording: Its account.
        facts: What the library's response says (usage, model, finish reasons).
        error_type: What it failed with, if it did.
    """

    request: Request
    recording: Recording
    facts: Mapping[str, account.Value]
    error_type: str | None


class Emitter:
    """Writes recordings to the tracer provider that the application has set.

    Args:
        settings: How phases are written.
        domain_id: The clock domain of all instants that are passed in.
        make_provider: Makes a provider of our own, for as long as the application has set none; it
            never becomes the global one, so the application's own still wins when it is set later.
            The resource of this provider names the clock domain.
        tracer_provider: Used instead of the application's, in tests.
        meter_provider: Used instead of the application's, in tests.
    """

    def __init__(
        self,
        settings: Settings,
        domain_id: str,
        make_provider: Callable[[], TracerProvider | None] | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._settings = settings
        self._domain: Attributes = {names.LLMLAT_CLOCK_DOMAIN_ID: domain_id}
        self._fixed = tracer_provider
        self._lock = threading.Lock()
        self._make_provider = make_provider
        self._fallback: TracerProvider | None = None
        self._provider: TracerProvider | None = None
        self._output = _Output(trace.NoOpTracer(), {})
        self._fixed_meters = meter_provider
        self._meters: MeterProvider | None = None
        self._histograms: Mapping[str, Histogram] = {}

    # Which tracer, and which histograms

    def _current_output(self) -> _Output:
        provider = self._fixed or trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            provider = self._own_provider() or provider
        if provider is not self._provider:
            tracer = provider.get_tracer(SCOPE, SCOPE_VERSION, SCHEMA_URL, _SCOPE_ATTRIBUTES)
            self._output = _Output(tracer, {} if provider is self._fallback else self._domain)
            self._provider = provider
        return self._output

    def _own_provider(self) -> TracerProvider | None:
        with self._lock:
            if self._make_provider is not None:
                make, self._make_provider = self._make_provider, None
                self._fallback = make()
            return self._fallback

    def _current_histograms(self) -> Mapping[str, Histogram]:
        """The contract's instruments; none as long as nobody has set where their points go."""
        provider = self._fixed_meters or metrics.get_meter_provider()
        if provider is not self._meters:
            self._histograms = _histograms(provider)
            self._meters = provider
        return self._histograms

    # Spans under way

    def open_operation(
        self, name: str, attributes: Mapping[str, account.Value], start_ns: int, anchor: Anchor
    ) -> OpenSpan:
        """Start an operation of the application (an agent, a tool) under the current span."""
        every = account.of_operation(Boundary.AGENT, anchor)
        every.update(attributes)
        output = self._current_output()
        span = output.start(name, every, None, start_ns, anchor)
        return output.opened(span, None, anchor)

    def open_inference(
        self, request: Request, context: Context, start_ns: int, anchor: Anchor
    ) -> OpenSpan:
        """Start the span of a model call; if its GenAI span is already current, take that one.

        Args:
            request: What the call asks for.
            context: The context in which the call was entered.
            start_ns: When it was entered.
            anchor: The recording's anchor.
        """
        theirs = trace.get_current_span()
        if _is_inference(theirs):
            theirs.set_attributes({**account.of_operation(Boundary.CLIENT, anchor), **self._domain})
            return self.current(anchor)
        every = account.of_operation(Boundary.CLIENT, anchor)
        every.update(account.of_request(request))
        name = inference_span_name(request.operation.value, request.model)
        output = self._current_output()
        span = output.start(name, every, context, start_ns, anchor, SpanKind.CLIENT)
        return output.opened(span, context, anchor)

    def open_attempt(
        self,
        operation: OpenSpan,
        request: Request,
        number: int,
        start_ns: int,
        reason: AttemptReason = AttemptReason.RETRY,
    ) -> OpenSpan:
        """Start the span of a request that is sent for an operation."""
        name, attributes = (
            attempt_span_name(request.model),
            account.of_attempt_start(number, reason),
        )
        context, anchor, output = operation.context, operation.anchor, operation.output
        span = output.start(name, attributes, context, start_ns, anchor, SpanKind.CLIENT)
        return output.opened(span, context, anchor)

    # Spans that end

    def finish(
        self, operation: OpenSpan, attempts: Mapping[int, OpenSpan], finished: Finished
    ) -> None:
        """Write a finished call: its phases, attempts, events and metrics; end its span.

        Args:
            operation: Its span.
            attempts: The spans of attempts that were opened while it ran, by number.
            finished: What there is to say of it.
        """
        recording, error_type = finished.recording, finished.error_type
        try:
            if operation.is_recording:
                self._write(operation, attempts, finished)
        finally:  # The application's own span processors may raise.
            self.end(operation, recording.end_ns, error_type)
        histograms = self._current_histograms()
        if histograms:
            for metric, seconds, attributes in points(
                finished.request, recording, error_type, whole_call=operation.is_ours
            ):
                histograms[metric].record(seconds, attributes)

    def end(self, opened: OpenSpan, end_ns: int, error_type: str | None) -> None:
        """End a span of ours at a monotonic instant; others end theirs."""
        if not opened.is_ours:
            return
        if error_type is not None:
            opened.span.set_attribute(names.ERROR_TYPE, error_type)
            opened.span.set_status(Status(StatusCode.ERROR))
        opened.span.end(opened.anchor.wall_at(end_ns))

    def current(self, anchor: Anchor) -> OpenSpan:
        """The current span, whoever opened it."""
        span = trace.get_current_span()
        output = self._current_output()
        return OpenSpan(span, get_current(), anchor, span.is_recording(), output, is_ours=False)

    def write_phase(self, parent: OpenSpan, interval: PhaseInterval) -> None:
        """Write one phase that the application has timed itself."""
        if parent.is_recording:
            durations: dict[str, float] = {}
            self._write_phase(parent, interval, None, durations)
            if parent.span.is_recording():
                parent.span.set_attributes(durations)

    def add_event(self, opened: OpenSpan, name: str, at_ns: int) -> None:
        """Add an event at a monotonic instant."""
        if opened.span.is_recording():
            opened.span.add_event(name, timestamp=opened.anchor.wall_at(at_ns))

    def _write(
        self, operation: OpenSpan, attempts: Mapping[int, OpenSpan], finished: Finished
    ) -> None:
        recording = finished.recording
        attributes = account.of_recording(recording, self._settings.stall_threshold_ns)
        if operation.is_ours:
            attributes.update(finished.facts)
            attributes.update(account.of_call(recording))
        parents = self._attempt_spans(operation, attempts, finished)
        attributes.update(self._write_phases(operation, parents, recording))
        if operation.span.is_recording():
            operation.span.set_attributes(attributes)
            self._write_tool_calls(operation, recording)

    def _write_tool_calls(self, operation: OpenSpan, recording: Recording) -> None:
        for each in recording.tool_calls:
            operation.span.add_event(
                LLMLAT_TOOL_CALL,
                {names.GEN_AI_TOOL_CALL_ID: each.call_id},
                operation.anchor.wall_at(each.complete_ns),
            )

    def _attempt_spans(
        self, operation: OpenSpan, opened: Mapping[int, OpenSpan], finished: Finished
    ) -> Mapping[int, OpenSpan]:
        """A span for each attempt, once there is a second; the first one's from its record."""
        made = finished.recording.attempts
        if len(made) < 2:
            return {}
        return {
            each.number: opened.get(each.number)
            or self.open_attempt(
                operation, finished.request, each.number, each.start_ns, each.reason
            )
            for each in made
        }

    def _write_phases(
        self, operation: OpenSpan, attempts: Mapping[int, OpenSpan], recording: Recording
    ) -> Mapping[str, float]:
        """Write phases under their attempts and end these; the operation's own as returned."""
        of_operation: dict[str, float] = {}
        of_attempts: dict[int, dict[str, float]] = {number: {} for number in attempts}
        for sequence, phase in enumerate(recording.phases):
            parent = attempts.get(phase.attempt, operation)
            durations = of_attempts.get(phase.attempt, of_operation)
            self._write_phase(parent, phase, sequence, durations)
        for attempt in recording.attempts if attempts else ():
            self._end_attempt(attempts[attempt.number], attempt, of_attempts[attempt.number])
        return of_operation

    def _end_attempt(
        self, opened: OpenSpan, attempt: Attempt, durations: Mapping[str, float]
    ) -> None:
        opened.span.set_attributes({**account.of_attempt(attempt), **durations})
        self.end(opened, attempt.end_ns, attempt.error_type)

    def _write_phase(
        self,
        parent: OpenSpan,
        interval: PhaseInterval,
        sequence: int | None,
        durations: dict[str, float],
    ) -> None:
        """Write a phase as a span of its own, or else add it to what its parent is to say."""
        mode = self._settings.phases
        if mode is PhasesMode.OFF:
            return
        duration_ns = interval.end_ns - interval.start_ns
        if mode is PhasesMode.SPANS and duration_ns >= self._settings.phase_min_ns:
            _write_phase_span(parent, interval, sequence)
        else:
            # A phase may come twice in one attempt, after a redirect for example.
            name = duration_attribute(interval.phase)
            durations[name] = durations.get(name, 0.0) + duration_ns / NS_PER_S


def _write_phase_span(parent: OpenSpan, interval: PhaseInterval, sequence: int | None) -> None:
    name, attributes = _PHASE_SPAN_NAMES[interval.phase], account.of_phase(interval, sequence)
    span = parent.output.start(name, attributes, parent.context, interval.start_ns, parent.anchor)
    span.end(parent.anchor.wall_at(interval.end_ns))


def _is_inference(span: Span) -> bool:
    """Whether a current span is a GenAI span of the call that is being made."""
    if not span.is_recording():
        return False
    attributes: Mapping[str, object] | None = getattr(span, "attributes", None)
    return attributes is not None and attributes.get(names.GEN_AI_OPERATION_NAME) in _INFERENCES


def _histograms(provider: MeterProvider) -> Mapping[str, Histogram]:
    """The contract's instruments; none of the API's own providers, which record nothing."""
    if type(provider).__module__.startswith(MeterProvider.__module__):
        return {}
    meter = provider.get_meter(SCOPE, SCOPE_VERSION, SCHEMA_URL)
    return {
        each.name: meter.create_histogram(
            each.name,
            each.unit,
            each.description,
            explicit_bucket_boundaries_advisory=each.boundaries,
        )
        for each in METRICS
    }
