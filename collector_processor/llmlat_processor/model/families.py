"""Metrics at an instant, frozen: what is fetched and what is sent are written from the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from llmlat_semconv.metrics import Metric

Labels: TypeAlias = tuple[tuple[str, str | bool], ...]
"""Attributes of a series, name and value; always in the same order within a family."""

OVERFLOW: Final[Labels] = (("otel.metric.overflow", True),)
"""Of the one series that counts for all those that there is no room for (OpenTelemetry's word)."""


class Exemplar(NamedTuple):
    """One of the observations that were counted, and where to look at it.

    Attributes:
        value: what was observed, in the metric's unit.
        at_ns: when.
        trace_id: the trace that it was observed in.
        span_id: the span that it is about.
    """

    value: float
    at_ns: int
    trace_id: bytes
    span_id: bytes


@dataclass(frozen=True, slots=True)
class Number:
    """A counter or a gauge.

    Attributes:
        labels: which one.
        value: in the metric's unit.
        exemplar: the last one that was counted, where that is known.
    """

    labels: Labels
    value: float
    exemplar: Exemplar | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram.

    Attributes:
        labels: which one.
        counts: observations per bucket: one for each boundary (at it or below it) and one for all
            above the last.
        total: sum of what was observed, in the metric's unit.
        exemplars: the last one of each bucket.
    """

    labels: Labels
    counts: tuple[int, ...]
    total: float
    exemplars: tuple[Exemplar | None, ...]

    @property
    def count(self) -> int:
        """How often something was observed."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one metric, from the start until now.

    Attributes:
        metric: name, unit, boundaries and what it means.
        start_ns: since when it has been counted: wall time.
        points: numbers for a counter or a gauge, distributions for a histogram.
    """

    metric: Metric
    start_ns: int
    points: tuple[Number | Distribution, ...]
