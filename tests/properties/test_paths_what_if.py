"""What holds for what-ifs on every trace."""

from __future__ import annotations

from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.stages.critical_path.what_if import WhatIf, what_if
from llmlat_semconv.phases import Phase
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_spans import id_bytes, spans_of
from tests.properties.reschedule import Schedule
from tests.properties.traces import (
    as_case_file,
    call_traces,
    damaged_traces,
    linked_traces,
    plain_traces,
)

FACTORS = st.sampled_from((0.0, 0.25, 0.5, 1.0, 1.5, 3.0))
GRAPHS = 64


def ask(outcome: ExplainedTrace, root: int = 0, **change: Any) -> WhatIf:
    keys = {"phase": None, "span_id": None, "factor": None, "by_ns": None} | change
    return what_if(outcome.aligned, outcome.paths.roots[root].root, **keys)


@given(st.one_of(plain_traces(), call_traces(), damaged_traces()))
def test_factor_one_is_the_identity(case: Case) -> None:
    note(as_case_file(case))
    outcome = process(spans_of(case), EXACT)
    ids = sorted({span.span_id for span in outcome.trace.operations})
    changes: list[dict[str, Any]] = [{"span_id": span_id} for span_id in ids]
    changes += [{"phase": phase} for phase in (Phase.WAIT, Phase.QUEUE, Phase.PREFILL, Phase.TOOL)]
    for position, paths in enumerate(outcome.paths.roots):
        for change in changes:
            result = ask(outcome, position, factor=1.0, **change)
            assert (result.saves_low_ns, result.saves_ns, result.saves_high_ns) == (0, 0, 0), change
            assert result.duration_ns == paths.e2e.duration_ns


@given(st.one_of(plain_traces(), call_traces(), damaged_traces()), FACTORS, st.data())
def test_the_headline_lies_in_the_bound(case: Case, factor: float, data: st.DataObject) -> None:
    note(as_case_file(case))
    outcome = process(spans_of(case), EXACT)
    for position, paths in enumerate(outcome.paths.roots):
        span = data.draw(st.sampled_from(outcome.trace.operations))
        result = ask(outcome, position, span_id=span.span_id, factor=factor)
        assert result.saves_low_ns <= result.saves_ns <= result.saves_high_ns
        assert result.duration_ns == paths.e2e.duration_ns - result.saves_ns >= 0


def test_what_a_server_does_after_its_last_output_saves_nothing() -> None:
    """The server's span ends one after its last output: without it 33 are saved, not 34."""
    place = {"host": "engine"}
    spans: list[Json] = [
        {"id": "c", "parent": None, "start": 0, "end": 33, "host": "app"},
        {"id": "s", "parent": "c", "start": 0, "end": 34, "kind": "server", **place},
        {"id": "decode", "parent": "s", "start": 0, "end": 33, "phase": "decode", **place},
    ]
    case = Case("example", "call", "ms", spans=spans)
    outcome = process(spans_of(case), EXACT)
    result = ask(outcome, span_id=b"s", factor=0.0)
    assert (result.saves_ns, result.duration_ns) == (case.duration_ns(33), 0)


def _leaf(case: Case, data: st.DataObject) -> Json:
    leaves = [span for span in case.spans if Schedule(case).is_leaf(span)]
    return data.draw(st.sampled_from(leaves))


@given(linked_traces(), FACTORS, st.data())
def test_the_bound_holds_for_every_graph_of_who_waited(
    case: Case, factor: float, data: st.DataObject
) -> None:
    note(as_case_file(case))
    leaf = _leaf(case, data)
    outcome = process(spans_of(case), EXACT)
    result = ask(outcome, span_id=id_bytes(leaf["id"]), factor=factor)
    schedule, end = Schedule(case), case.spans[0]["end"]
    change = (leaf["end"] - leaf["start"]) * (factor - 1)
    for graph in schedule.graphs(GRAPHS):
        saves_ns = case.duration_ns(end - schedule.root_end(graph, leaf["id"], change))
        assert result.saves_low_ns <= saves_ns <= result.saves_high_ns, graph


@given(linked_traces(), FACTORS, st.data())
def test_the_headline_waits_for_all_that_had_ended(
    case: Case, factor: float, data: st.DataObject
) -> None:
    note(as_case_file(case))
    leaf = _leaf(case, data)
    outcome = process(spans_of(case), EXACT)
    result = ask(outcome, span_id=id_bytes(leaf["id"]), factor=factor)
    schedule, end = Schedule(case), case.spans[0]["end"]
    change = (leaf["end"] - leaf["start"]) * (factor - 1)
    saves = end - schedule.root_end(schedule.fullest(), leaf["id"], change)
    assert result.saves_ns == case.duration_ns(saves)


@given(plain_traces(), st.data())
def test_slack_can_be_spent(case: Case, data: st.DataObject) -> None:
    note(as_case_file(case))
    outcome = process(spans_of(case), EXACT)
    slacks = outcome.paths.roots[0].slacks_ns
    for span, slack_ns in slacks.items():
        result = ask(outcome, span_id=span.span_id, by_ns=slack_ns)
        assert result.saves_ns == 0, span
