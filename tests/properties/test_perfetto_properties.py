"""Whatever a trace holds, it is a file that a viewer of Chrome's traces can draw."""

from __future__ import annotations

from hypothesis import given

from llmlat_processor.model import Span
from llmlat_processor.pipeline import process
from tests.cases.case_format import Case
from tests.cases.case_spans import spans_of
from tests.llmlat_processor.views.perfetto.chrome_format import check, slices, written
from tests.properties.arbitrary import arbitrary_spans
from tests.properties.traces import call_traces, damaged_traces, plain_traces


@given(damaged_traces())
def test_any_trace_is_drawn_with_slices_that_nest(case: Case) -> None:
    check(written(process(spans_of(case))))


@given(arbitrary_spans())
def test_spans_that_no_program_would_emit_are_drawn_too(spans: list[Span]) -> None:
    file = written(process(spans))
    assert len(file["otherData"]["roots"]) == len(process(spans).paths.roots)


@given(plain_traces())
def test_every_operation_and_every_phase_of_the_roots_clock_is_drawn_once(case: Case) -> None:
    explained = process(spans_of(case))
    drawn = [one.args["span_id"] for one in slices(written(explained)) if "label" not in one.args]

    assert sorted(drawn) == sorted(span.span_id.hex() for span in explained.trace.spans)


@given(call_traces())
def test_the_sections_of_each_path_add_up_to_it(case: Case) -> None:
    explained = process(spans_of(case))
    (root,) = explained.paths.roots
    drawn = slices(written(explained), "critical path")

    assert sum(one.duration_ns for one in drawn) == root.e2e.duration_ns
    assert [one.args["span_id"] for one in drawn] == [
        section.span.span_id.hex() for section in root.e2e.sections
    ]
