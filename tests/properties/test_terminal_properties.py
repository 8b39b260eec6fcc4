"""Whatever a trace holds, it can be drawn, and the picture keeps its promises."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.views.document import document
from llmlat_processor.views.terminal import render
from tests.cases.case_format import Case
from tests.cases.case_spans import spans_of
from tests.properties.traces import call_traces, damaged_traces

widths = st.integers(min_value=60, max_value=160)


def drawn(explained: ExplainedTrace, width: int, *, unicode: bool, everything: bool) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, _environ={})
    console.print(render(explained, width, unicode=unicode, everything=everything))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(damaged_traces(), widths, st.booleans(), st.booleans())
def test_any_trace_is_drawn_within_its_width(
    case: Case, width: int, unicode: bool, everything: bool
) -> None:
    explained = process(spans_of(case))
    picture = drawn(explained, width, unicode=unicode, everything=everything)

    assert max(map(cell_len, picture.splitlines())) <= width
    assert unicode or picture.isascii()


@given(call_traces())
def test_every_operation_under_a_root_has_a_row(case: Case) -> None:
    explained = process(spans_of(case))
    picture = drawn(explained, 160, unicode=True, everything=True)

    assert "not drawn" not in picture
    for operation in explained.trace.operations:
        assert operation.name in picture


@given(damaged_traces())
def test_any_trace_is_a_document_whose_sections_sum_to_its_paths(case: Case) -> None:
    explained = process(spans_of(case))
    read = json.loads(json.dumps(document(explained)))

    assert len(read["roots"]) == len(explained.paths.roots)
    for root in read["roots"]:
        for path in filter(None, (root["e2e"], root["ttft"])):
            lengths = [section["duration_ns"] for section in path["sections"]]
            assert sum(lengths) == path["duration_ns"] == sum(path["totals_ns"].values())
