"""Metrics of explained traces: the paths, part by part, and where to look at one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmlat_processor.metrics.derived import UNKNOWN, Derived
from llmlat_processor.metrics.unread import UNREAD
from llmlat_processor.model import Assumptions, ExplainedTrace
from llmlat_processor.model.families import OVERFLOW, Distribution, Exemplar, Labels, Number
from llmlat_processor.pipeline import process
from llmlat_semconv import attributes as names
from llmlat_semconv import metrics
from llmlat_semconv.metrics import Metric
from llmlat_semconv.values import SectionLabel
from tests.llmlat_processor.adviser import TRACE_ID, adviser_spans, resource, span

RECEIVED_NS = 1_764_421_300_000_000_000


def adviser() -> ExplainedTrace:
    return process(adviser_spans(), Assumptions(received_ns=RECEIVED_NS))


def of(derived: Derived, metric: Metric) -> dict[Labels, Distribution | Number]:
    (family,) = (one for one in derived.families(1) if one.metric is metric)
    return {point.labels: point for point in family.points}


def distribution(point: Distribution | Number) -> Distribution:
    assert isinstance(point, Distribution)
    return point


@pytest.mark.parametrize("is_ttft", [False, True], ids=["e2e", "ttft"])
def test_what_a_path_consists_of_sums_to_its_length(is_ttft: bool) -> None:
    explained = adviser()
    derived = Derived(100)
    derived.observe(explained)
    (root,) = explained.paths.roots
    path = root.ttft if is_ttft else root.e2e
    assert path is not None

    phases = of(
        derived,
        metrics.LLMLAT_TTFT_PATH_PHASE_DURATION
        if is_ttft
        else metrics.LLMLAT_CRITICAL_PATH_PHASE_DURATION,
    )

    assert {labels: distribution(point).total for labels, point in phases.items()} == {
        ((names.LLMLAT_SECTION_LABEL, label.value), (names.SERVICE_NAME, service)): size_ns / 1e9
        for label, service, size_ns in path.largest()
    }
    lengths = of(
        derived,
        metrics.LLMLAT_TTFT_PATH_DURATION if is_ttft else metrics.LLMLAT_CRITICAL_PATH_DURATION,
    )
    length = distribution(lengths[((names.SERVICE_NAME, "adviser"),)])
    assert length.count == 1
    assert length.total == path.duration_ns / 1e9


def test_shares_are_of_the_path_to_the_end_per_service_of_the_root() -> None:
    explained = adviser()
    derived = Derived(100)
    derived.observe(explained)
    path = explained.paths.roots[0].e2e

    for label, metric in (
        (SectionLabel.UNOBSERVED, metrics.LLMLAT_CRITICAL_PATH_UNOBSERVED_SHARE),
        (SectionLabel.TRANSIT, metrics.LLMLAT_CRITICAL_PATH_TRANSIT_SHARE),
    ):
        (point,) = of(derived, metric).values()
        assert point.labels == ((names.SERVICE_NAME, "adviser"),)
        share = path.totals_ns[label] / path.duration_ns
        assert 0 < share < 1
        assert distribution(point).total == share


def test_a_trace_in_which_all_is_accounted_for_has_a_share_of_nothing() -> None:
    derived = Derived(100)
    derived.observe(process([span(1, 0, "work", 0, 100)]))

    (point,) = of(derived, metrics.LLMLAT_CRITICAL_PATH_TRANSIT_SHARE).values()
    assert (distribution(point).count, distribution(point).total) == (1, 0)


def test_a_path_of_no_length_has_no_shares() -> None:
    derived = Derived(100)
    derived.observe(process([span(1, 0, "work", 0, 0)]))

    assert not of(derived, metrics.LLMLAT_CRITICAL_PATH_TRANSIT_SHARE)
    assert of(derived, metrics.LLMLAT_CRITICAL_PATH_DURATION)


def test_an_exemplar_leads_to_the_span_that_has_the_largest_section() -> None:
    explained = adviser()
    derived = Derived(100)
    derived.observe(explained)
    decodes = [
        section
        for section in explained.paths.roots[0].e2e.sections
        if section.label is SectionLabel.DECODE
    ]
    largest = max(decodes, key=lambda section: section.duration_ns)
    service = largest.span.resource.service

    points = of(derived, metrics.LLMLAT_CRITICAL_PATH_PHASE_DURATION)
    key = ((names.LLMLAT_SECTION_LABEL, "decode"), (names.SERVICE_NAME, service))
    shown = [one for one in distribution(points[key]).exemplars if one is not None]
    total_s = distribution(points[key]).total
    assert shown == [Exemplar(total_s, RECEIVED_NS, TRACE_ID, largest.span.span_id)]


def test_a_service_without_a_name_is_called_as_opentelemetry_calls_it() -> None:
    derived = Derived(100)
    derived.observe(process([span(1, 0, "work", 0, 100, resource("", "host"))]))

    assert list(of(derived, metrics.LLMLAT_CRITICAL_PATH_DURATION)) == [
        ((names.SERVICE_NAME, UNKNOWN),)
    ]


def test_traces_without_first_content_are_not_on_the_path_to_it() -> None:
    derived = Derived(100)
    derived.observe(process([span(1, 0, "work", 0, 100)]))

    assert not of(derived, metrics.LLMLAT_TTFT_PATH_DURATION)
    assert not of(derived, metrics.LLMLAT_TTFT_PATH_PHASE_DURATION)


def test_findings_are_counted_between_services_with_a_trace_to_look_at() -> None:
    explained = adviser()
    derived = Derived(100)
    derived.observe(explained)
    derived.observe(replace(explained, findings=explained.findings * 2))
    (finding,) = explained.findings

    assert list(of(derived, metrics.LLMLAT_FINDING_COUNT).values()) == [
        Number(
            (
                (names.LLMLAT_FINDING_KIND, finding.kind.value),
                (names.LLMLAT_FINDING_CALLER_SERVICE, "adviser"),
                (names.LLMLAT_FINDING_CALLEE_SERVICE, "vllm"),
            ),
            3,
            Exemplar(1, RECEIVED_NS, TRACE_ID, finding.of),
        )
    ]


def test_what_nobody_can_read_is_counted_by_its_scope() -> None:
    explained, derived = adviser(), Derived(4)
    for number in range(6):
        unread = {"my.engine": 2, f"engine {number}": 1}
        derived.observe(replace(explained, paths=replace(explained.paths, unread=unread)))

    points = of(derived, UNREAD)
    assert points[(("scope", "my.engine"),)] == Number((("scope", "my.engine"),), 12)
    assert points[OVERFLOW] == Number(OVERFLOW, 4)
    assert len(points) == 4


def test_however_many_services_there_are_every_metric_stays_within_the_bound() -> None:
    derived = Derived(5)
    for number in range(20):
        where = resource(f"service-{number}", "host")
        explained = process([span(1, 0, "work", 0, 100, where), span(2, 99, "lost", 0, 1, where)])
        assert explained.findings
        derived.observe(explained)

    lengths = of(derived, metrics.LLMLAT_CRITICAL_PATH_DURATION)
    assert OVERFLOW in lengths
    assert sum(distribution(point).count for point in lengths.values()) == 20
    findings = of(derived, metrics.LLMLAT_FINDING_COUNT)
    assert OVERFLOW in findings
    assert all(len(family.points) <= 5 for family in derived.families(1))
