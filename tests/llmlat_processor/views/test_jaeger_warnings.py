"""Findings as warnings: on which span, in which words."""

from __future__ import annotations

from llmlat_processor.pipeline import process
from llmlat_processor.views.jaeger_warnings import jaeger_warnings
from tests.llmlat_processor.adviser import span


def test_a_trace_without_findings_has_no_warnings() -> None:
    assert jaeger_warnings(process([span(1, 0, "task", 0, 20)])) == {}


def test_a_finding_warns_at_the_span_that_it_is_about() -> None:
    backwards = span(3, 1, "step", 10, 5)
    orphan = span(4, 9, "lost", 6, 7)
    warnings = jaeger_warnings(process([span(1, 0, "task", 0, 20), backwards, orphan]))

    assert warnings == {
        backwards: (
            "negative_duration -5.00 ms: it ends before it starts; the span is left out of the "
            "paths",
        ),
        orphan: ("missing_parent: its parent was never received; the picture is incomplete",),
    }
