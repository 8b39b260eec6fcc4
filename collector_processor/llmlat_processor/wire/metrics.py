"""Metrics to OTLP bytes: cumulative, with the instant since when they have been counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    HistogramDataPoint,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Exemplar as ExemplarMessage
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from llmlat_processor.model.families import Distribution, Exemplar, Family, Number
from llmlat_processor.wire.encode import Request
from llmlat_processor.wire.values import any_value
from llmlat_processor.written import OWN_SCOPE

MOST_BYTES: Final = 4_000_000
"""Servers refuse more than 4 MiB by default."""

_HEADS: Final = 16
"""Most bytes that a message needs around it in another one."""

_Point: TypeAlias = NumberDataPoint | HistogramDataPoint
_Batch: TypeAlias = list[tuple[Family, _Point]]


def encode_metrics(
    families: Iterable[Family],
    resource: Mapping[str, str],
    now_ns: int,
    *,
    limit_bytes: int = MOST_BYTES,
) -> Iterator[Request]:
    """Requests of an OTLP metrics service, none of them larger than the limit.

    Args:
        families: what to send; what has no series yet is left out.
        resource: who tells it: attributes, the service's name among them.
        now_ns: the instant of the numbers: wall time.
        limit_bytes: most that the peer accepts; a point that is larger than it goes alone.

    Yields:
        ExportMetricsServiceRequest; its `spans` are points.
    """
    who = Resource(attributes=_pairs(resource.items()))
    empty = size = _request([], who).ByteSize() + 4 * _HEADS
    batch: _Batch = []
    for family in families:
        envelope = _metric(family, []).ByteSize() + 2 * _HEADS
        size += envelope
        for point in family.points:
            message = _message(point, family, now_ns)
            needs = message.ByteSize() + _HEADS
            if batch and size + needs > limit_bytes:
                yield Request(_request(batch, who).SerializeToString(), len(batch))
                batch, size = [], empty + envelope
            batch.append((family, message))
            size += needs
    if batch:
        yield Request(_request(batch, who).SerializeToString(), len(batch))


def _request(batch: _Batch, who: Resource) -> ExportMetricsServiceRequest:
    metrics = [_metric(rows[0][0], [message for _, message in rows]) for rows in _by_family(batch)]
    scope = ScopeMetrics(scope=InstrumentationScope(name=OWN_SCOPE), metrics=metrics)
    return ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(resource=who, scope_metrics=[scope])]
    )


def _by_family(batch: _Batch) -> Iterator[_Batch]:
    """The points of a batch, together where they are of one family; they stand together."""
    for _, rows in groupby(batch, key=lambda row: row[0].metric.name):
        yield list(rows)


def _metric(family: Family, points: Sequence[_Point]) -> MetricMessage:
    metric = family.metric
    message = MetricMessage(name=metric.name, unit=metric.unit, description=metric.description)
    if metric.instrument == "histogram":
        message.histogram.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        message.histogram.data_points.extend(
            point for point in points if isinstance(point, HistogramDataPoint)
        )
        return message
    numbers = [point for point in points if isinstance(point, NumberDataPoint)]
    if metric.instrument == "counter":
        message.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        message.sum.is_monotonic = True
        message.sum.data_points.extend(numbers)
    else:
        message.gauge.data_points.extend(numbers)
    return message


def _message(point: Number | Distribution, family: Family, now_ns: int) -> _Point:
    attributes = _pairs(point.labels)
    if isinstance(point, Distribution):
        return HistogramDataPoint(
            attributes=attributes,
            start_time_unix_nano=family.start_ns,
            time_unix_nano=now_ns,
            count=point.count,
            sum=point.total,
            bucket_counts=point.counts,
            explicit_bounds=family.metric.boundaries,
            exemplars=[_exemplar(one) for one in point.exemplars if one is not None],
        )
    message = NumberDataPoint(
        attributes=attributes,
        start_time_unix_nano=family.start_ns,
        time_unix_nano=now_ns,
        exemplars=[] if point.exemplar is None else [_exemplar(point.exemplar)],
    )
    if isinstance(point.value, int):
        message.as_int = point.value
    else:
        message.as_double = point.value
    return message


def _exemplar(exemplar: Exemplar) -> ExemplarMessage:
    return ExemplarMessage(
        time_unix_nano=exemplar.at_ns,
        as_double=exemplar.value,
        trace_id=exemplar.trace_id,
        span_id=exemplar.span_id,
    )


def _pairs(labels: Iterable[tuple[str, str | bool]]) -> list[KeyValue]:
    return [KeyValue(key=name, value=any_value(value)) for name, value in labels]
