"""The test kit: a clock that is set by hand, what was recorded as plain values, fake streams."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from llmlat_otel.core.clock import Clock
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import Settings

__all__ = [
    "MS",
    "CountingIds",
    "FakeAsyncStream",
    "FakeStream",
    "ManualClock",
    "Recorded",
    "recorded",
]

MS: Final = 1_000_000
"""Nanoseconds in a millisecond."""


class ManualClock(Clock):
    """A clock that stands still until it is told to move.

    Args:
        monotonic_ns: Where the monotonic clock starts.
        wall_ns: Where the wall clock starts, since the Unix epoch.
    """

    __slots__ = ("monotonic_ns", "wall_ns")

    def __init__(
        self, monotonic_ns: int = 1_000_000_000, wall_ns: int = 1_700_000_000_000_000_000
    ) -> None:
        self.monotonic_ns = monotonic_ns
        self.wall_ns = wall_ns
        super().__init__(lambda: self.monotonic_ns, lambda: self.wall_ns, domain_id="manual")

    def advance(self, duration_ns: int) -> None:
        """Let time pass, on both clocks."""
        self.monotonic_ns += duration_ns
        self.wall_ns += duration_ns

    def step_wall(self, step_ns: int) -> None:
        """Step the wall clock alone, as an NTP correction does."""
        self.wall_ns += step_ns


class CountingIds(IdGenerator):
    """Trace and span ids 1, 2, 3; each once, whichever threads ask."""

    def __init__(self) -> None:
        self._traces = itertools.count(1)
        self._spans = itertools.count(1)

    def generate_trace_id(self) -> int:
        """The next trace id."""
        return next(self._traces)

    def generate_span_id(self) -> int:
        """The next span id."""
        return next(self._spans)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded inside `recorded()`.

    Attributes:
        clock: The clock that it was timed by.
        tracer_provider: For spans of the test's own.
    """

    clock: Clock
    tracer_provider: TracerProvider
    _exporter: InMemorySpanExporter
    _reader: InMemoryMetricReader

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Spans that have ended, in the order of their start, then of their id."""
        return tuple(sorted(self._exporter.get_finished_spans(), key=_order))

    def tree(self) -> list[dict[str, Any]]:
        """The same spans as plain values, for snapshots.

        Each is a dict of name, id, parent, kind, start_ns and end_ns (since the clock's first
        anchor), attributes, and, where there are any, error and events.
        """
        origin_ns = min((span.start_time or 0 for span in self.spans), default=0)
        return [_plain(span, origin_ns) for span in self.spans]

    def points(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """Sums of the histograms, with the attributes that they are counted by."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        for resource in data.resource_metrics if data is not None else ():
            for metric in (each for scope in resource.scope_metrics for each in scope.metrics):
                found[metric.name] = [
                    (dict(point.attributes or {}), point.sum)
                    for point in metric.data.data_points
                    if isinstance(point, HistogramDataPoint)
                ]
        return found


@contextmanager
def recorded(
    *,
    clock: Clock | None = None,
    settings: Settings | None = None,
    sampler: Sampler = ALWAYS_ON,
) -> Iterator[Recorded]:
    """Record what the SDK emits, apart from any provider that is set.

    Args:
        clock: What calls are timed by; a `ManualClock` by default.
        settings: Of the SDK; its defaults by default.
        sampler: Decides which traces are recorded.
    """
    exporter = InMemorySpanExporter()
    reader = InMemoryMetricReader()
    provider = TracerProvider(
        sampler=sampler, id_generator=CountingIds(), resource=Resource({}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader], resource=Resource({}), shutdown_on_exit=False)
    clock = clock or ManualClock()
    settings = settings or Settings()
    emitter = Emitter(settings, clock.domain_id, tracer_provider=provider, meter_provider=meters)
    with running(Runtime(settings, clock, emitter)):
        yield Recorded(clock, provider, exporter, reader)


class FakeStream:
    """A synchronous stream that takes its time on a manual clock.

    Args:
        clock: Is moved by each pull.
        events: What is pulled: for each event how long the pull takes (ns), and the event. An
            exception in an event's place is raised.
    """

    def __init__(self, clock: ManualClock, events: Iterable[tuple[int, Any]]) -> None:
        self._clock = clock
        self._events = iter(events)
        self.close_count = 0

    def __iter__(self) -> FakeStream:
        """Itself."""
        return self

    def __next__(self) -> Any:
        """The next event."""
        duration_ns, event = next(self._events)
        self._clock.advance(duration_ns)
        if isinstance(event, BaseException):
            raise event
        return event

    def __enter__(self) -> FakeStream:
        """Itself."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Count the close."""
        self.close_count += 1


class FakeAsyncStream:
    """The same, asynchronous."""

    def __init__(self, clock: ManualClock, events: Iterable[tuple[int, Any]]) -> None:
        self._stream = FakeStream(clock, events)

    @property
    def close_count(self) -> int:
        """How often it was closed."""
        return self._stream.close_count

    def __aiter__(self) -> FakeAsyncStream:
        """Itself."""
        return self

    async def __anext__(self) -> Any:
        """The next event."""
        try:
            return next(self._stream)
        except StopIteration:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> FakeAsyncStream:
        """Itself."""
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Count the close."""
        self._stream.close()


def _order(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    return span.start_time or 0, context.span_id if context is not None else 0


def _plain(span: ReadableSpan, origin_ns: int) -> dict[str, Any]:
    context = span.get_span_context()
    plain: dict[str, Any] = {
        "name": span.name,
        "id": context.span_id if context is not None else None,
        "parent": span.parent.span_id if span.parent is not None else None,
        "kind": span.kind.name,
        "start_ns": (span.start_time or 0) - origin_ns,
        "end_ns": (span.end_time or 0) - origin_ns,
        "attributes": dict(span.attributes or {}),
    }
    if not span.status.is_ok:
        plain["error"] = True
    if span.events:
        plain["events"] = [
            (each.name, each.timestamp - origin_ns, dict(each.attributes or {}))
            for each in span.events
        ]
    return plain
