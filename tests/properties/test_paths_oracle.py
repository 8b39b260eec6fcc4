"""The critical paths are those of an oracle that was written from the text alone.

Left out, since the text or the oracle has no answer: links and tool calls of call traces; a
second remote child, and one of an operation that is no call; transports; durations of servers and
of operations with local children; content shown in another process, by an inference within
another, below a call with a callee of its own, or by one that does not fit those above it; bounded
reports up to the first content, and those that a gateway has passed on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from llmlat_processor.model import Path
from llmlat_processor.pipeline import process
from tests.cases.case_format import EXACT, Case
from tests.cases.case_spans import name_of, spans_of
from tests.properties.oracle import Oracle
from tests.properties.oracle_facts import Operation, Section, forest, is_call
from tests.properties.traces import as_case_file, call_traces, linked_traces, plain_traces


def _as_sections(case: Case, path: Path) -> list[Section]:
    return [
        Section(name_of(s.span.span_id), s.label.value, s.duration_ns // case.unit_ns)
        for s in path.sections
    ]


def _assert_same(case: Case) -> None:
    note(as_case_file(case))
    oracle = Oracle(case)
    for root in process(spans_of(case), EXACT).paths.roots:
        name = name_of(root.root.span_id)
        assert _as_sections(case, root.e2e) == oracle.e2e(oracle.operations[name])


@given(plain_traces())
def test_plain_traces(case: Case) -> None:
    _assert_same(case)


@given(linked_traces())
def test_linked_traces(case: Case) -> None:
    _assert_same(case)


# ── One process, unruly ──────────────────────────────────────────────────────────────────────────

FLAGS: Any = st.sampled_from(
    ({}, {}, {}, {}, {"cancelled": True}, {"lost": True, "cancelled": True}, {"async": True})
)


@st.composite
def _unruly(draw: st.DrawFn, case: Case) -> Case:
    spans = [dict(span) for span in case.spans]
    for span in spans[1:]:
        span["start"] += draw(st.sampled_from((0, 0, -3, 4)))
        span["end"] = max(span["start"], span["end"] + draw(st.sampled_from((0, 0, -4, 3, 9))))
        span.update(draw(FLAGS))
    return replace(case, spans=spans)


@given(plain_traces().flatmap(_unruly))
def test_children_that_overflow_or_are_given_up(case: Case) -> None:
    _assert_same(case)


# ── Calls ────────────────────────────────────────────────────────────────────────────────────────


def _within_reach(case: Case) -> Case:
    """Without what the oracle has no answer for."""
    case = replace(case, links=[], spans=[_plainer(case, span) for span in case.spans])
    while (gone := _out_of_reach(case)) is not None:
        case = replace(case, spans=[s for s in case.spans if gone not in (s["id"], s["parent"])])
        kept = {span["id"] for span in case.spans} | {None}
        while any(span["parent"] not in kept for span in case.spans):
            case = replace(case, spans=[s for s in case.spans if s["parent"] in kept])
            kept = {span["id"] for span in case.spans} | {None}
    shows = {operation.id for operation in forest(case).values() if _may_be_a_sink(operation)}
    return replace(case, spans=[s if s["id"] in shows else _silent(s) for s in case.spans])


def _may_be_a_sink(operation: Operation) -> bool:
    """Its content was streamed, in the root's process, and to no other call."""
    above = list(operation.ancestors())
    root = [operation, *above][-1]
    if not root.start <= operation.raw.get("first_useful_content", root.start) <= root.end:
        return False
    near = not any(each.is_remote for each in [operation, *above])
    fits = all(each.start <= operation.start <= operation.end <= each.end for each in above)
    return (
        near
        and fits
        and operation.raw.get("stream") is True
        and not any(a.is_inference or a.callees() for a in above)
    )


def _silent(span: Any) -> Any:
    return {key: value for key, value in span.items() if not key.startswith("first_")}


def _plainer(case: Case, span: Any) -> Any:
    gone = {"call_id"}
    if span.get("kind") == "server" or _has_local_child(case, span):
        gone.add("phases")
    return {key: value for key, value in span.items() if key not in gone}


def _has_local_child(case: Case, span: Any) -> bool:
    return any(
        other["parent"] == span["id"] and other["host"] == span["host"] and "phase" not in other
        for other in case.spans
    )


def _out_of_reach(case: Case) -> str | None:
    for operation in forest(case).values():
        callees = operation.callees()
        if callees and not is_call(operation):
            return callees[0].id
        if len(callees) > 1:
            return callees[-1].id
        began = max((above.start for above in operation.ancestors()), default=operation.start)
        if callees and operation.start < began:
            for child in operation.local_children():
                if child.end > operation.end:
                    return child.id
        if operation.is_inference or "attempt" in operation.raw:
            for child in operation.local_children():
                if (
                    child.raw.get("kind") == "client"
                    and "attempt" not in child.raw
                    and "op" not in child.raw
                ):
                    return child.id
    return None


def _sure(case: Case) -> Case:
    """Nothing is only bounded: the text leaves open whether `send` or a bound gives way first."""
    spans = [{k: v for k, v in span.items() if k != "bounded"} for span in case.spans]
    return replace(case, spans=spans)


@given(call_traces().map(_within_reach).map(_sure))
def test_first_content(case: Case) -> None:
    note(as_case_file(case))
    oracle = Oracle(case)
    for root in process(spans_of(case), EXACT).paths.roots:
        expected = oracle.ttft(oracle.operations[name_of(root.root.span_id)])
        if root.ttft is None or not isinstance(expected, list):
            assert root.ttft_absence == expected
        else:
            assert _as_sections(case, root.ttft) == expected


def _sure_beyond_gateways(case: Case) -> Case:
    """The same of what a gateway has passed on: the oracle does not look for bounds within."""
    told = {each.id for each in forest(case).values() if each.callees() or _is_split(each)}
    spans = [
        {k: v for k, v in span.items() if k != "bounded" or span["id"] not in told}
        for span in case.spans
    ]
    return replace(case, spans=spans)


def _is_split(operation: Operation) -> bool:
    return any("attempt" in child.raw for child in operation.local_children())


@given(call_traces().map(_within_reach).map(_sure_beyond_gateways))
def test_calls(case: Case) -> None:
    note(as_case_file(case))
    oracle = Oracle(case)
    for root in process(spans_of(case), EXACT).paths.roots:
        name = name_of(root.root.span_id)
        assert _as_sections(case, root.e2e) == oracle.e2e(oracle.operations[name])


def _is_told(case: Case) -> bool:
    """Whether somebody whom nobody saw has reported of themselves."""
    operations = forest(case).values()
    return any("reported" in each.raw and not each.callees() for each in operations)


@given(call_traces().map(_within_reach).map(_sure_beyond_gateways).filter(_is_told))
def test_what_peers_report(case: Case) -> None:
    _assert_same(case)
