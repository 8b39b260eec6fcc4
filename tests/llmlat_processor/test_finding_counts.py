"""Counters of findings: who they are between, and that they stay few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmlat_processor.finding_counts import OVERFLOW, FindingCounts
from llmlat_processor.model import CLIENT, SERVER, ExplainedTrace, Finding, Message, Span
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.model.families import OVERFLOW as OVER
from llmlat_processor.model.families import Exemplar, Number
from llmlat_processor.pipeline import process
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor.adviser import ENGINE, MS, START_NS, TRACE_ID, resource, span

CYCLE, STEP = FindingKind.OFFSET_CYCLE, FindingKind.CLOCK_STEP


def explained(findings: Sequence[Finding], spans: Sequence[Span] = ()) -> ExplainedTrace:
    """A call of an engine, with these findings."""
    call = [
        span(1, 0, "chat", 0, 100, kind=CLIENT),
        span(2, 1, "serve", 10, 90, ENGINE, kind=SERVER),
    ]
    return replace(process([*call, *spans]), findings=tuple(findings))


def identity(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_findings_are_between_the_caller_and_the_span_that_they_are_about() -> None:
    counts = FindingCounts()
    counts.observe(explained([Finding(STEP, identity(2)), Finding(STEP, identity(1))]))
    counts.observe(explained([Finding(STEP, identity(2))]))
    counts.observe(explained([]))

    assert counts.rows() == [
        FindingCount(STEP, "adviser", "vllm", 2),
        FindingCount(STEP, "", "adviser", 1),
    ]


def test_a_proof_says_whose_clocks_contradict_each_other() -> None:
    other = span(3, 1, "tool", 10, 20, resource("tools", "host-3"), kind=SERVER)
    proof = (Message("a", "b", 0, 0, 0, 0, 0, identity(3), identity(2)),)
    counts = FindingCounts()
    counts.observe(explained([Finding(CYCLE, identity(1), proof=proof)], [other]))

    assert counts.rows() == [FindingCount(CYCLE, "tools", "vllm", 1)]


def test_a_span_that_is_not_there_has_no_service() -> None:
    counts = FindingCounts()
    counts.observe(explained([Finding(STEP, identity(99))]))

    assert counts.rows() == [FindingCount(STEP, "", "", 1)]


def test_beyond_the_bound_one_more_series_of_each_kind_counts_the_rest() -> None:
    counts = FindingCounts(series=2)
    services = [resource(f"service {number}", f"host {number}") for number in range(4)]
    others = [span(10 + n, 1, "x", 0, 1, where, kind=SERVER) for n, where in enumerate(services)]
    for kind in (STEP, CYCLE):
        counts.observe(explained([Finding(kind, identity(10 + n)) for n in range(4)], others))

    assert counts.rows() == [
        FindingCount(CYCLE, OVERFLOW, OVERFLOW, 4),
        FindingCount(STEP, OVERFLOW, OVERFLOW, 2),
        FindingCount(STEP, "adviser", "service 0", 1),
        FindingCount(STEP, "adviser", "service 1", 1),
    ]


def test_as_a_metric_one_series_counts_all_that_is_over_and_each_leads_to_a_trace() -> None:
    counts = FindingCounts(series=1)
    counts.observe(explained([Finding(STEP, identity(2)), Finding(CYCLE, identity(2))]))
    counts.observe(explained([Finding(STEP, identity(1)), Finding(STEP, identity(2))]))

    at_ns = START_NS + 100 * MS
    family = counts.family(START_NS)
    assert {point.labels: point for point in family.points} == {
        labels: Number(labels, 2, Exemplar(1, at_ns, TRACE_ID, identity(of)))
        for labels, of in (
            (
                (
                    (names.LLMLAT_FINDING_KIND, "clock_step"),
                    (names.LLMLAT_FINDING_CALLER_SERVICE, "adviser"),
                    (names.LLMLAT_FINDING_CALLEE_SERVICE, "vllm"),
                ),
                2,
            ),
            (OVER, 1),
        )
    }
    assert sum(row.total for row in counts.rows()) == 4
