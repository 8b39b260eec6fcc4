"""Metrics as text: what a Prometheus reads of it is what was told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from prometheus_client import Metric as Shape
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as classic

from llmlat_processor.model.families import OVERFLOW, Distribution, Exemplar, Family, Number
from llmlat_processor.views.prometheus import exposition, name_of
from llmlat_semconv.metrics import LLMLAT_FINDING_COUNT, Metric
from tests.llmlat_processor.metrics.samples import (
    NOW_NS,
    SPAN_ID,
    START_NS,
    TRACE_ID,
    every_family,
    observations,
    observed,
)

Parse = Callable[[str], Iterable[Shape]]

OPENMETRICS = "application/openmetrics-text"
OF_PROMETHEUS = (
    f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.5,{OPENMETRICS};version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
BOTH = pytest.mark.parametrize(
    ("accept", "parse"), [("", classic), (OPENMETRICS, openmetrics)], ids=["classic", "openmetrics"]
)


def text(families: list[Family], accept: str = "") -> str:
    return exposition(families, accept).content.decode()


@BOTH
def test_everything_that_is_told_can_be_read(accept: str, parse: Parse) -> None:
    families = every_family()
    read = {shape.name: shape for shape in parse(text(families, accept))}

    assert list(read) == [name_of(family.metric) for family in families]
    for family in families:
        shape = read[name_of(family.metric)]
        assert shape.type == family.metric.instrument
        assert shape.documentation == family.metric.description
        is_histogram = family.metric.instrument == "histogram"
        samples = len(family.metric.boundaries) + 3 if is_histogram else 1
        assert len(shape.samples) == len(family.points) * samples


@BOTH
@given(rows=observations)
def test_sums_and_counts_are_those_that_were_observed(
    accept: str, parse: Parse, rows: list[tuple[str, str, float]]
) -> None:
    family = observed(rows, 5)
    (shape,) = parse(text([family], accept))

    totals: dict[str, list[float]] = {"_count": [], "_sum": [], "_bucket": []}
    for sample in shape.samples:
        totals[sample.name.removeprefix(shape.name)].append(sample.value)
    points = [point for point in family.points if isinstance(point, Distribution)]
    assert totals["_count"] == [point.count for point in points]
    assert totals["_sum"] == [point.total for point in points]
    assert sum(totals["_count"]) == len(rows)


def test_units_and_kinds_are_in_the_names() -> None:
    def named(name: str, unit: str) -> str:
        return name_of(Metric(name, unit, "", (), "gauge"))

    assert named("a.b.duration", "s") == "a_b_duration_seconds"
    assert named("a_cpu_seconds", "s") == "a_cpu_seconds"
    assert named("a_queue_bytes", "By") == "a_queue_bytes"
    assert named("a.share", "1") == "a_share"
    assert named("a.spans", "{span}") == "a_spans"


def test_a_counter_ends_in_total_and_names_the_last_trace_to_those_who_ask_for_it() -> None:
    at_ns = 1_764_421_300_000_000_001
    point = Number((), 3, Exemplar(1, at_ns, TRACE_ID, SPAN_ID))
    family = Family(LLMLAT_FINDING_COUNT, START_NS, (point,))

    assert "\nllmlat_finding_count_total 3.0\n" in text([family])
    assert (
        f'\nllmlat_finding_count_total 3.0 # {{span_id="{SPAN_ID.hex()}",'
        f'trace_id="{TRACE_ID.hex()}"}} 1.0 1764421300.000000001\n'
    ) in text([family], OPENMETRICS)


def test_exemplars_can_be_read() -> None:
    family = observed([("decode", "app", 0.3)], 5)
    (shape,) = openmetrics(text([family], OPENMETRICS))

    (shown,) = (sample.exemplar for sample in shape.samples if sample.exemplar is not None)
    assert shown.labels == {"trace_id": TRACE_ID.hex(), "span_id": SPAN_ID.hex()}
    assert (shown.value, float(shown.timestamp)) == (0.3, NOW_NS / 1e9)


def test_what_is_over_is_marked() -> None:
    family = Family(LLMLAT_FINDING_COUNT, START_NS, (Number(OVERFLOW, 4),))

    assert 'total{otel_metric_overflow="true"} 4.0' in text([family])


@pytest.mark.parametrize(
    "accept",
    [
        OF_PROMETHEUS,
        OPENMETRICS,
        f"text/plain, {OPENMETRICS.upper()}; q=0.5",
        f"{OPENMETRICS};version=x",
    ],
)
def test_openmetrics_is_for_those_who_ask_for_it(accept: str) -> None:
    answer = exposition(every_family(), accept)

    assert answer.content_type.startswith(f"{OPENMETRICS}; version=1.0.0")
    assert answer.content.endswith(b"# EOF\n")


@pytest.mark.parametrize(
    "accept", ["", "*/*", "text/plain", f"{OPENMETRICS};q=0", f"{OPENMETRICS}; q=0.000", ";,;"]
)
def test_everybody_else_gets_the_classic_text(accept: str) -> None:
    answer = exposition(every_family(), accept)

    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# EOF" not in answer.content
    assert b"trace_id" not in answer.content
