"""What-ifs: re-scheduled, never subtracted; both ends of what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_processor.model import Span
from llmlat_processor.stages.critical_path.what_if import WhatIf, what_if
from llmlat_semconv import events
from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.cases.case_spans import id_bytes
from tests.llmlat_processor.stages.spans import (
    MS,
    chat,
    engine,
    explained,
    link,
    not_awaited,
    phase,
    row,
)

ROOT = row("R", None, 0, 100)
TOOL = Phase.TOOL


def asked(
    *rows: Json,
    links: tuple[Json, ...] = (),
    of: str | None = None,
    by: float | None = None,
    **change: Any,
) -> WhatIf:
    """A change of the first root of some rows; `by` in milliseconds."""
    found = explained(*rows, links=links).explained
    keys: dict[str, Any] = {**change}
    if of is not None:
        keys["span_id"] = id_bytes(of)
    if by is not None:
        keys["by_ns"] = round(by * MS)
    return what_if(found.aligned, found.paths.roots[0].root, **keys)


def saves(*rows: Json, **change: Any) -> tuple[float, float, float]:
    """What is saved: by the headline rule, at least and at most, in milliseconds."""
    result = asked(*rows, **change)
    return (result.saves_ns / MS, result.saves_low_ns / MS, result.saves_high_ns / MS)


# ── Questions that cannot be asked ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"of": "R"}, "either a factor or an amount"),
        ({"of": "R", "factor": 0.5, "by": 1}, "either a factor or an amount"),
        ({"factor": 0.5}, "a phase or an operation"),
        ({"of": "R", "factor": -0.5}, "negative"),
        ({"of": "R", "factor": float("nan")}, "factor"),
        ({"of": "R", "factor": float("inf")}, "factor"),
    ],
    ids=["no change", "two changes", "of nothing", "negative", "not a number", "without end"],
)
def test_a_question_that_makes_no_sense_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        asked(ROOT, **change)


def test_a_root_of_another_trace_is_refused() -> None:
    mine, theirs = explained(ROOT).explained, explained(ROOT).explained
    stranger: Span = theirs.paths.roots[0].root
    with pytest.raises(ValueError, match="no root of this trace"):
        what_if(mine.aligned, stranger, span_id=b"R", factor=0.5)


# ── One operation ────────────────────────────────────────────────────────────────────────────────


#   R      ├────────────────────────────────────────────┤  1000
#   tool     ├───────────────┤                             400
#   beside   ├─────────────┤                               350: it takes over after 50
#   answer                    ├─────────────────────────┤
def test_a_saving_ends_where_something_else_takes_over() -> None:
    rows = (
        row("R", None, 0, 1_000),
        row("tool", "R", 100, 500),
        row("beside", "R", 100, 450),
        row("answer", "R", 500, 1_000),
    )
    assert saves(*rows, of="tool", factor=0.5) == (50, 0, 200)
    result = asked(*rows, of="tool", factor=0.5)
    assert result.duration_ns == 950 * MS


def test_a_hidden_operation_saves_nothing_and_may_come_to_the_fore() -> None:
    rows = ROOT, row("a", "R", 0, 80), row("b", "R", 0, 50)
    assert saves(*rows, of="b", factor=0)[0] == 0
    assert saves(*rows, of="b", factor=2)[0] == -20


@pytest.mark.parametrize(("by", "saved"), [(-20, 20), (-80, 80), (-90, 80), (30, -30)])
def test_an_amount_never_makes_an_operation_shorter_than_nothing(by: float, saved: float) -> None:
    assert saves(ROOT, row("a", "R", 10, 90), of="a", by=by)[0] == saved


def test_a_saving_deep_below_reaches_the_root() -> None:
    rows = ROOT, row("p", "R", 0, 90), row("q", "p", 10, 80), row("a", "q", 20, 60)
    assert saves(*rows, of="a", factor=0.25) == (30, 30, 30)


@pytest.mark.parametrize("child", not_awaited("R").values(), ids=not_awaited("R"))
def test_what_nobody_waited_for_saves_nothing(child: Json) -> None:
    assert saves(ROOT, child, of="x", factor=0) == (0, 0, 0)


# ── Who waited for whom ──────────────────────────────────────────────────────────────────────────

#   a     ├────┤
#   b     ├─────────┤
#   c                ├──────┤
SIBLINGS = (ROOT, row("a", "R", 0, 20), row("b", "R", 0, 50), row("c", "R", 50, 100))


def test_between_siblings_the_bound_is_open_and_the_headline_assumes_that_each_waited() -> None:
    assert saves(*SIBLINGS, of="b", factor=0) == (30, 0, 50)
    assert saves(*SIBLINGS, of="a", factor=0) == (0, 0, 20)


def test_an_explicit_edge_closes_the_bound() -> None:
    assert saves(*SIBLINGS, links=(link("c", "b"),), of="b", factor=0.5) == (25, 25, 25)
    assert saves(*SIBLINGS, links=(link("c", "a"),), of="b", factor=0.5) == (0, 0, 0)


def test_a_sibling_between_an_explicit_predecessor_and_its_successor_opens_it_again() -> None:
    rows = (*SIBLINGS, row("d", "R", 25, 45))
    assert saves(*rows, links=(link("c", "a"),), of="d", factor=0) == (20, 0, 20)


def test_an_edge_that_leaves_at_an_event_moves_by_what_changes_before_it() -> None:
    asks = [{"name": events.LLMLAT_TOOL_CALL, "call_id": "k", "at": 30}]
    rows = (
        ROOT,
        chat("ask", "R", 0, 60, events=asks),
        phase(Phase.WAIT, "ask", 0, 20),
        phase(Phase.STREAM, "ask", 20, 60),
        row("tool", "R", 30, 100, op="execute_tool", call_id="k"),
    )
    assert saves(*rows, phase=Phase.WAIT, factor=0.5) == (10, 10, 10)
    assert saves(*rows, phase=Phase.STREAM, factor=0.5) == (5, 5, 5)


# ── Phases ───────────────────────────────────────────────────────────────────────────────────────


def test_a_phase_of_one_operation_or_of_all() -> None:
    rows = (
        ROOT,
        row("a", "R", 0, 40, phases={"prefill": 20}),
        row("b", "R", 50, 90, phases={"prefill": 30}),
    )
    links = (link("b", "a"),)
    assert saves(*rows, links=links, phase=Phase.PREFILL, factor=0.5) == (25, 25, 25)
    assert saves(*rows, links=links, of="a", phase=Phase.PREFILL, factor=0.5) == (10, 10, 10)
    assert saves(*rows, links=links, phase=Phase.DECODE, factor=0.5) == (0, 0, 0)


#   a       ├──────────────────┤
#   tool      ██████  ██████            one phase, in two pieces: a child is in between
#   child           ├─┤
SPLIT = (
    ROOT,
    row("a", "R", 0, 40),
    phase(TOOL, "a", 5, 35),
    row("child", "a", 15, 20),
)


@pytest.mark.parametrize(
    ("change", "saved"),
    [
        ({"factor": 0.5}, 12.5),
        ({"factor": 0}, 25),
        ({"by": 5}, -5),
        ({"by": -5}, 5),
        ({"by": -12}, 12),
        ({"by": -25}, 25),
        ({"by": -99}, 25),
    ],
)
def test_an_amount_is_taken_from_a_phase_once_however_many_pieces_it_is_in(
    change: dict[str, Any], saved: float
) -> None:
    assert saves(*SPLIT, phase=TOOL, **change)[0] == saved


def test_an_amount_changes_every_operation_that_has_the_phase() -> None:
    rows = (
        ROOT,
        row("a", "R", 0, 40, phases={"queue": 10}),
        row("b", "R", 50, 90, phases={"queue": 4}),
    )
    assert saves(*rows, links=(link("b", "a"),), phase=Phase.QUEUE, by=-6)[0] == 10


# ── Calls ────────────────────────────────────────────────────────────────────────────────────────

CALLER = (
    chat("c", None, 0, 100, stream=True),
    phase(Phase.WAIT, "c", 0, 60),
    phase(Phase.STREAM, "c", 60, 100),
)


def test_a_phase_of_the_callee_moves_its_callers_end() -> None:
    served = engine("e", "c", 7_000, 7_090, phases={"queue": 20, "prefill": 30, "decode": 40})
    for factor, saved in ((0.5, 15), (0, 30), (2, -30)):
        change = saves(*CALLER, served, phase=Phase.PREFILL, factor=factor)
        assert change == (saved, saved, saved)


def test_a_phase_that_the_peer_reported_moves_its_callers_end() -> None:
    reporting = {**CALLER[0], "reported": {"queue": 20, "prefill": 30, "decode": 40}}
    rows = reporting, *CALLER[1:]
    assert saves(*rows, phase=Phase.PREFILL, factor=0.5) == (15, 15, 15)
    assert saves(*rows, phase=Phase.QUEUE, factor=0.5) == (10, 10, 10)


def test_parallel_work_inside_the_callee_is_rescheduled() -> None:
    """Of two shards of a server the slower one counts."""
    server = row("s", "c", 7_000, 7_080, kind="server", host="B")
    shards = row("x", "s", 7_010, 7_070, host="B"), row("y", "s", 7_010, 7_050, host="B")
    rows = row("c", None, 0, 100, kind="client"), server, *shards
    assert saves(*rows, of="x", factor=0)[0] == 20
    assert saves(*rows, of="y", factor=0)[0] == 0


def test_a_callee_that_is_off_the_path_moves_nothing() -> None:
    served = engine("e", "c", 7_000, 7_200, phases={"prefill": 100, "decode": 100})
    assert saves(*CALLER, served, phase=Phase.PREFILL, factor=0) == (0, 0, 0)
