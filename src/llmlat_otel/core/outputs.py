"""Outputs: where spans and points go, which is wherever the application has said."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, Tracer, TracerProvider

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.points import METRICS
from llmlat_otel.core.recording import Anchor
from llmlat_otel.version import VERSION
from llmlat_semconv import attributes as names
from llmlat_semconv.version import CONTRACT_VERSION, SCHEMA_URL

SCOPE: Final = "llmlat_otel"

_SCOPE_ATTRIBUTES: Final = {names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION}


class Output(NamedTuple):
    """Where spans go.

    Attributes:
        tracer: Starts them.
        domain: Names the clock domain on each; nothing where the provider's resource names it.
        made: Counts those that are recorded; a few may be missed where threads meet.
    """

    tracer: Tracer
    domain: Attributes
    made: list[int]

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
        span = self.tracer.start_span(name, context, kind, attributes, start_time=start_time)
        try:
            if span.is_recording():
                self.made[0] += 1
        except BaseException:
            span.end()  # Nobody else knows of it.
            raise
        return span


class Outputs:
    """The tracer and the instruments of the providers in force.

    Args:
        domain_id: The clock domain, named on each span.
        make_provider: Makes a tracer provider of our own whose resource names the clock domain.
        tracer_provider: Used instead of the application's, in tests.
        meter_provider: Used instead of the application's, in tests.
    """

    def __init__(
        self,
        domain_id: str,
        make_provider: Callable[[], TracerProvider | None] | None,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
    ) -> None:
        self.domain: Attributes = {names.LLMLAT_CLOCK_DOMAIN_ID: domain_id}
        self._fixed = tracer_provider
        self._lock = threading.RLock()  # Exporters log as they are made, and handlers do anything.
        self._make_provider = make_provider
        self._fallback: TracerProvider | None = None
        self._provider: TracerProvider | None = None
        self._made = [0]
        self._output = Output(trace.NoOpTracer(), {}, self._made)
        self._fixed_meters = meter_provider
        self._meters: MeterProvider | None = None
        self._histograms: Mapping[str, Histogram] = {}

    def spans(self) -> Output:
        """Where spans go now."""
        provider = self._fixed or trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            provider = self._own_provider() or provider
        if provider is not self._provider:
            tracer = provider.get_tracer(SCOPE, VERSION, SCHEMA_URL, _SCOPE_ATTRIBUTES)
            domain = {} if provider is self._fallback else self.domain
            self._output = Output(tracer, domain, self._made)
            self._provider = provider
        return self._output

    def their_provider(self) -> TracerProvider | None:
        """The provider that the application has set; None if it has set none."""
        provider = trace.get_tracer_provider()
        return None if isinstance(provider, trace.ProxyTracerProvider) else provider

    def spans_made(self) -> int:
        """How many spans have been started and are recorded."""
        return self._made[0]

    def _own_provider(self) -> TracerProvider | None:
        with self._lock:
            if self._make_provider is not None:
                make, self._make_provider = self._make_provider, None
                self._fallback = make()
            return self._fallback

    def histograms(self) -> Mapping[str, Histogram]:
        """The contract's instruments; none as long as nobody has set where their points go."""
        provider = self._fixed_meters or metrics.get_meter_provider()
        if provider is not self._meters:
            self._histograms = _histograms(provider)
            self._meters = provider
        return self._histograms


def _histograms(provider: MeterProvider) -> Mapping[str, Histogram]:
    """The contract's instruments; none of the API's own providers, which record nothing."""
    if type(provider).__module__.startswith(MeterProvider.__module__):
        return {}
    meter = provider.get_meter(SCOPE, VERSION, SCHEMA_URL)
    return {
        each.name: meter.create_histogram(
            each.name,
            each.unit,
            each.description,
            explicit_bucket_boundaries_advisory=each.boundaries,
        )
        for each in METRICS
    }
