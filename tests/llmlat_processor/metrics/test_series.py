"""Histograms whose labels the world chooses: bounded, and nothing is lost by that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.metrics.series import Histograms, merged
from llmlat_processor.model.families import OVERFLOW, Distribution, Exemplar, Family, Number
from llmlat_semconv.metrics import LLMLAT_FINDING_COUNT, Metric
from tests.llmlat_processor.metrics.samples import (
    NOW_NS,
    SPAN_ID,
    START_NS,
    TRACE_ID,
    observations,
    observed,
)

METRIC = Metric("a.duration", "s", "How long.", (1, 2, 5), "histogram")


def points(family: Family) -> list[Distribution]:
    return [point for point in family.points if isinstance(point, Distribution)]


def seen(value: float, at_ns: int = NOW_NS) -> Exemplar:
    return Exemplar(value, at_ns, TRACE_ID, SPAN_ID)


def test_a_value_is_counted_in_its_bucket_and_one_at_a_boundary_below_it() -> None:
    histograms = Histograms(METRIC, ("service",), most=10)
    for value in (0.5, 1, 1.5, 5, 9):
        histograms.observe(("app",), value)

    (point,) = points(histograms.family(START_NS))
    assert point.labels == (("service", "app"),)
    assert (point.counts, point.total, point.count) == ((2, 1, 1, 1), 17, 5)


def test_the_exemplar_of_a_bucket_is_the_last_that_was_seen_there() -> None:
    histograms = Histograms(METRIC, (), most=10)
    for value in (0.1, 0.2, 3):
        histograms.observe((), value, seen(value))

    (point,) = points(histograms.family(START_NS))
    assert point.exemplars == (seen(0.2), None, seen(3), None)


def test_a_label_without_a_value_is_left_out() -> None:
    histograms = Histograms(METRIC, ("caller", "callee"), most=10)
    histograms.observe(("", "app"), 1)

    assert points(histograms.family(START_NS))[0].labels == (("callee", "app"),)


def test_what_there_is_no_room_for_is_in_one_series_that_says_so() -> None:
    histograms = Histograms(METRIC, ("service",), most=3)
    for number in range(10):
        histograms.observe((f"app-{number}",), 1)
    histograms.observe(("app-1",), 1)

    counts = {point.labels: point.count for point in points(histograms.family(START_NS))}
    assert counts == {(("service", "app-0"),): 1, (("service", "app-1"),): 2, OVERFLOW: 8}


def test_texts_that_are_the_same_once_they_are_cut_are_one_series() -> None:
    histograms = Histograms(METRIC, ("service",), most=10)
    for end in ("a", "b"):
        histograms.observe(("x" * 5_000 + end,), 1)

    (point,) = points(histograms.family(START_NS))
    assert point.count == 2
    assert len(str(point.labels[0][1])) < 2_000


@given(observations, st.integers(1, 6))
def test_no_bound_loses_a_count_or_a_second(rows: list[tuple[str, str, float]], most: int) -> None:
    found = points(observed(rows, most))

    assert len(found) <= most
    assert len({point.labels for point in found}) == len(found)
    assert sum(point.count for point in found) == len(rows)
    assert sum(point.total for point in found) == pytest.approx(sum(row[2] for row in rows))


@given(st.lists(observations, max_size=4), st.integers(1, 6))
def test_workers_together_say_what_each_says(
    of_workers: Sequence[list[tuple[str, str, float]]], most: int
) -> None:
    families = [[observed(rows, most)] for rows in of_workers]
    together = merged(families, most)

    found = [point for family in together for point in points(family)]
    assert len(found) <= most
    assert sum(point.count for point in found) == sum(map(len, of_workers))
    assert sum(point.total for point in found) == pytest.approx(
        sum(row[2] for rows in of_workers for row in rows)
    )


def test_of_two_workers_the_later_exemplar_stays_and_the_earlier_start() -> None:
    early, late = seen(1, NOW_NS), seen(1, NOW_NS + 1)
    families = [
        [Family(LLMLAT_FINDING_COUNT, START_NS + at, (Number((), 2, exemplar),))]
        for at, exemplar in enumerate((late, early))
    ]

    assert merged(families, most=10) == [
        Family(LLMLAT_FINDING_COUNT, START_NS, (Number((), 4, late),))
    ]
