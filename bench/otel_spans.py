"""Spans into a sink that drops them, and the same spans made with OpenTelemetry's SDK alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import set_span_in_context

from llmlat_otel.core.clock import Clock
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import PhasesMode, Settings


class Keeper(SpanProcessor):
    """Keeps the spans that have ended, in that order."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep it."""
        self.spans.append(span)


class Nowhere(SpanExporter):
    """Exports to nobody."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Drop them."""
        del spans
        return SpanExportResult.SUCCESS


def dropping_provider(processor: SpanProcessor | None = None) -> TracerProvider:
    """A provider that records every span and, unless told otherwise, drops it."""
    provider = TracerProvider(resource=Resource({}), shutdown_on_exit=False)
    provider.add_span_processor(processor or SpanProcessor())
    return provider


def runtime_of(
    mode: PhasesMode,
    *,
    metrics: bool = False,
    provider: TracerProvider | None = None,
    phase_min_ns: int = 0,
) -> Runtime:
    """The SDK as an application would run it.

    Args:
        mode: how phases are written.
        metrics: whether the application has set a meter provider.
        provider: where the spans go; nowhere by default.
        phase_min_ns: how long a phase is that has a span of its own; by default each is.
    """
    settings = Settings(phases=mode, phase_min_ns=phase_min_ns)
    clock = Clock()
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False) if metrics else None
    tracers = provider or dropping_provider()
    emitter = Emitter(settings, clock.domain_id, tracer_provider=tracers, meter_provider=meters)
    return Runtime(settings, clock, emitter)


def spans_of(mode: PhasesMode, call: Callable[[], object]) -> Sequence[ReadableSpan]:
    """The spans that one call gives, its operation first."""
    keeper = Keeper()
    with running(runtime_of(mode, provider=dropping_provider(keeper))):
        call()
    return sorted(keeper.spans, key=lambda span: span.parent is not None)


def plain_maker(
    spans: Sequence[ReadableSpan], processor: SpanProcessor | None = None
) -> Callable[[], None]:
    """Makes the same operation and phases: as many spans, with the same names and attributes."""
    tracer = dropping_provider(processor).get_tracer(__name__)
    # A span's own attributes take twice as long to copy as the dictionary that one is made of.
    operation, *phases = [(span.name, span.kind, dict(span.attributes or {})) for span in spans]

    def make() -> None:
        name, kind, attributes = operation
        parent = tracer.start_span(name, None, kind, attributes, start_time=1)
        context = set_span_in_context(parent)
        for name, kind, attributes in phases:
            tracer.start_span(name, context, kind, attributes, start_time=1).end(2)
        parent.end(2)

    return make
