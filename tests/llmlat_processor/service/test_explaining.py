"""Several traces are explained together, and one that we fail at costs no other its explanation."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from llmlat_processor.model import Assumptions, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.service import explaining
from llmlat_processor.service.explaining import attempted, explain_together
from tests.llmlat_processor import adviser

TRACES = [[adviser.span(number, 0, "root", 0, number)] for number in (1, 2, 3)]


def test_together_they_are_explained_as_each_by_itself() -> None:
    together = explain_together(process, TRACES)

    durations = [one and one.paths.roots[0].e2e.duration_ns for one in together]
    assert durations == [adviser.MS, 2 * adviser.MS, 3 * adviser.MS]


def test_where_one_fails_each_has_to_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(traces: Iterable[Iterable[Span]], assumptions: Assumptions) -> list[ExplainedTrace]:
        raise ZeroDivisionError

    monkeypatch.setattr(explaining, "process_all", failing)

    assert explain_together(process, TRACES) == [None, None, None]


def test_another_pipeline_has_no_way_to_do_them_together() -> None:
    def explain(spans: Iterable[Span], assumptions: Assumptions) -> ExplainedTrace:
        return process(spans, assumptions)

    assert explain_together(explain, TRACES) == [None, None, None]


def test_what_fails_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    def failing(spans: object) -> None:
        raise ZeroDivisionError

    assert attempted(failing, TRACES[0], "counted") is None
    assert f"trace {adviser.TRACE_ID.hex()} could not be counted" in caplog.text
