"""Jaeger's algorithm, rebuilt, says what Jaeger's own tests and measurements say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.cases.case_format import Case, read_case
from tests.cases.variants import Standing, standing_of
from tests.compat.jaeger import (
    JaegerSection,
    JaegerSpan,
    NoRootError,
    query_critical_path,
    ui_critical_path,
)

CASES = [read_case(path) for path in sorted(Path(__file__).parents[1].glob("cases/paths/*.json"))]
PATHS = [
    case
    for case in CASES
    if standing_of(case) is Standing.JAEGER and case.expected["algorithm"] != "jaeger_clockskew"
]
PATHS += [case for case in CASES if case.name == "deterministic_under_span_order"]
OBSERVED = [
    case
    for case in CASES
    if isinstance(case.expected.get("upstream_observed", {}).get("jaeger_ui"), list)
]


def spans_of(case: Case) -> list[JaegerSpan]:
    return [
        JaegerSpan(
            span["id"], span["parent"], span["start"], span["end"], span.get("kind", "internal")
        )
        for span in case.spans
    ]


def sections(raw: list[dict[str, Any]]) -> list[JaegerSection]:
    return [JaegerSection(**section) for section in raw]


def every(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


@every([case for case in PATHS if not case.expected.get("error")])
def test_both_agree_with_their_own_tests_in_any_order(case: Case) -> None:
    expected = sections(case.expected["sections"])
    for spans in permutations(spans_of(case)):
        assert ui_critical_path(spans) == expected
        assert query_critical_path(spans) == expected


@every([case for case in PATHS if case.expected.get("error")])
def test_only_the_query_service_refuses_a_trace_without_root(case: Case) -> None:
    with pytest.raises(NoRootError, match=case.expected["error"]):
        query_critical_path(spans_of(case))
    assert ui_critical_path(spans_of(case)) == [
        JaegerSection(span["id"], span["start"], span["end"]) for span in case.spans
    ]


@every(OBSERVED)
def test_the_ui_says_what_was_measured(case: Case) -> None:
    assert ui_critical_path(spans_of(case)) == sections(
        case.expected["upstream_observed"]["jaeger_ui"]
    )


def test_cases_were_found() -> None:
    assert (len(PATHS), len(OBSERVED)) == (11, 4)


def test_a_consumer_never_blocks_its_producer() -> None:
    spans = [
        JaegerSpan("p", None, 0, 100, "producer"),
        JaegerSpan("c", "p", 10, 50, "consumer"),
        JaegerSpan("below", "c", 20, 30),
    ]
    assert ui_critical_path(spans) == [JaegerSection("p", 0, 100)]


def _chain(depth: int) -> Iterator[JaegerSpan]:
    for level in range(depth):
        yield JaegerSpan(str(level), str(level - 1) if level else None, level, 10_000 - level)


def test_depth_is_no_recursion() -> None:
    assert len(ui_critical_path(_chain(3_000))) == 2 * 3_000 - 1
