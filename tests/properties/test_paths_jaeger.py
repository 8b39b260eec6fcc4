"""Where nothing touches and nothing overflows, our path is Jaeger's: we differ only on purpose."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, note

from llmlat_processor.pipeline import process
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_spans import name_of, spans_of
from tests.compat.jaeger import JaegerSection, JaegerSpan, ui_critical_path
from tests.properties.traces import as_case_file, plain_traces

STEP = 100


def _apart(case: Case) -> Case:
    """Keeps who contains whom, and makes every stamp of the trace a different one."""
    spans = [_stretched(span, position) for position, span in enumerate(case.spans)]
    return replace(case, unit="us", spans=spans)


def _stretched(span: Json, position: int) -> Json:
    start, end = span["start"] * STEP + position, span["end"] * STEP + STEP - 1 - position
    return {**span, "start": start, "end": end}


@given(plain_traces().map(_apart))
def test_the_path_is_jaegers_where_nothing_touches_or_overflows(case: Case) -> None:
    note(as_case_file(case))
    jaeger = [JaegerSpan(s["id"], s["parent"], s["start"], s["end"]) for s in case.spans]
    path = process(spans_of(case), EXACT).paths.roots[0].e2e
    ours = [
        JaegerSection(
            name_of(section.span.span_id),
            int(case.stamp(section.start_ns)),
            int(case.stamp(section.start_ns + section.duration_ns)),
        )
        for section in reversed(path.sections)
    ]
    assert ours == ui_critical_path(jaeger)
