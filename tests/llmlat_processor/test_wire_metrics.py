"""Metrics to OTLP: the same numbers as in the text, cumulative, in requests of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from llmlat_processor.metrics.own import CPU, READY
from llmlat_processor.model.families import OVERFLOW, Distribution, Exemplar, Family, Number
from llmlat_processor.wire import Request
from llmlat_processor.wire.metrics import encode_metrics
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import LLMLAT_FINDING_COUNT
from tests.llmlat_processor.metrics.samples import (
    NOW_NS,
    SPAN_ID,
    START_NS,
    TRACE_ID,
    every_family,
    observations,
    observed,
)
from tests.llmlat_processor.otlp import pairs

RESOURCE = {names.SERVICE_NAME: "llmlat-processor", names.SERVICE_INSTANCE_ID: "a"}


def encoded(families: Sequence[Family], limit_bytes: int = 4_000_000) -> list[Request]:
    return list(encode_metrics(families, RESOURCE, NOW_NS, limit_bytes=limit_bytes))


def read(requests: Sequence[Request]) -> list[Metric]:
    """All metrics; one that is in two requests is there twice."""
    metrics: list[Metric] = []
    for request in requests:
        (of_resource,) = ExportMetricsServiceRequest.FromString(request.content).resource_metrics
        assert list(of_resource.resource.attributes) == pairs(RESOURCE)
        (of_scope,) = of_resource.scope_metrics
        assert of_scope.scope.name == "llmlat_processor"
        metrics += of_scope.metrics
    return metrics


def points(metric: Metric) -> int:
    return sum(len(data.data_points) for data in (metric.sum, metric.gauge, metric.histogram))


def test_everything_that_is_told_can_be_read() -> None:
    families = every_family()
    requests = encoded(families)
    metrics = read(requests)

    assert [(one.name, one.unit, one.description) for one in metrics] == [
        (one.metric.name, one.metric.unit, one.metric.description) for one in families
    ]
    assert [points(one) for one in metrics] == [len(one.points) for one in families]
    assert sum(request.spans for request in requests) == sum(map(points, metrics))


def test_a_counter_is_a_monotonic_sum_since_the_start() -> None:
    seen = Exemplar(1, NOW_NS - 1, TRACE_ID, SPAN_ID)
    labels = ((names.LLMLAT_FINDING_KIND, "clock_step"),)
    (metric,) = read(encoded([Family(LLMLAT_FINDING_COUNT, START_NS, (Number(labels, 3, seen),))]))

    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == (
        AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    (point,) = metric.sum.data_points
    assert (point.start_time_unix_nano, point.time_unix_nano) == (START_NS, NOW_NS)
    assert point.as_int == 3
    assert list(point.attributes) == pairs(dict(labels))
    (exemplar,) = point.exemplars
    assert (exemplar.trace_id, exemplar.span_id) == (TRACE_ID, SPAN_ID)
    assert (exemplar.time_unix_nano, exemplar.as_double) == (NOW_NS - 1, 1)


def test_whole_numbers_stay_whole_and_seconds_do_not() -> None:
    ready, cpu = read(
        encoded(
            [Family(READY, START_NS, (Number((), 1),)), Family(CPU, START_NS, (Number((), 1.5),))]
        )
    )

    assert ready.gauge.data_points[0].as_int == 1
    assert cpu.sum.data_points[0].as_double == 1.5


def test_a_histogram_has_its_boundaries_and_an_exemplar_a_bucket() -> None:
    family = observed([("decode", "app", 0.3), ("decode", "app", 200)], 5)
    (metric,) = read(encoded([family]))

    assert metric.histogram.aggregation_temporality == (
        AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    (point,) = metric.histogram.data_points
    assert (point.count, point.sum) == (2, 200.3)
    assert tuple(point.explicit_bounds) == family.metric.boundaries
    assert (sum(point.bucket_counts), point.bucket_counts[-1]) == (2, 1)
    assert [one.as_double for one in point.exemplars] == [0.3, 200]


def test_what_is_over_is_marked_with_a_truth() -> None:
    (metric,) = read(encoded([Family(LLMLAT_FINDING_COUNT, START_NS, (Number(OVERFLOW, 4),))]))

    (attribute,) = metric.sum.data_points[0].attributes
    assert (attribute.key, attribute.value.bool_value) == ("otel.metric.overflow", True)


def test_a_metric_without_series_is_not_sent() -> None:
    assert encoded([Family(LLMLAT_FINDING_COUNT, START_NS, ())]) == []


@pytest.mark.parametrize("limit_bytes", [1, 700, 2_000, 10_000])
def test_requests_stay_within_the_limit_and_lose_nothing(limit_bytes: int) -> None:
    whole = encoded(every_family())
    requests = encoded(every_family(), limit_bytes)

    assert len(requests) > 1
    assert all(len(one.content) <= limit_bytes or one.spans == 1 for one in requests)
    assert sum(one.spans for one in requests) == whole[0].spans
    assert sum(map(points, read(requests))) == whole[0].spans


@given(observations)
def test_sums_and_counts_are_those_that_were_observed(rows: list[tuple[str, str, float]]) -> None:
    family = observed(rows, 5)
    found = [point for metric in read(encoded([family])) for point in metric.histogram.data_points]

    told = [point for point in family.points if isinstance(point, Distribution)]
    assert [point.count for point in found] == [point.count for point in told]
    assert [point.sum for point in found] == [point.total for point in told]
    assert sum(point.count for point in found) == len(rows)
