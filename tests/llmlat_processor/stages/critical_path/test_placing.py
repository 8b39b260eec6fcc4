"""Remote children of an operation that also worked itself: where a feasible offset puts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmlat_semconv.phases import Phase
from tests.cases.case_format import EXACT, Json
from tests.cases.case_spans import name_of
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import amounts, explained, findings, phase, placed, row

AGENT = row("R", None, 0, 100, host="A")


def remote(name: str, start: float, end: float, **keys: Any) -> Json:
    return row(name, "R", start, end, host="B", **keys)


def known(low: float, high: float) -> list[Json]:
    """A call between the two hosts that bounds B - A to this, off every path."""
    return [
        row("K", "R", 0, 900, host="A", **{"async": True}),
        row("k", "K", 0, 800, host="A", kind="client", rpc=True),
        row("ks", "k", high, 800 + low, host="B", kind="server"),
    ]


def alternatives(found: Outcome, which: str = "e2e") -> list[str]:
    path = found.path(which, None)
    assert path is not None
    return [f"{name_of(a.entered)} or {name_of(a.other)}" for a in path.alternatives]


#   R   ├────────────────────────────┤
#   a     ├────────┤                       A
#   m                 ├────────┤           B, 5,000 ahead
def test_a_remote_child_stands_where_the_offset_puts_it() -> None:
    found = explained(
        AGENT, *known(5_000, 5_000), row("a", "R", 10, 40, host="A"), remote("m", 5_050, 5_090)
    )
    assert placed(found)[-4:] == [
        "a work 10..40",
        "R unobserved 40..50",
        "m work 50..90",
        "R unobserved 90..100",
    ]
    assert alternatives(found) == []


def test_of_all_feasible_offsets_the_one_nearest_to_zero_is_taken() -> None:
    for low, high, at in ((-5, 8, 50), (3, 8, 47), (-9, -4, 54)):
        found = explained(
            AGENT, *known(low, high), row("a", "R", 10, 20, host="A"), remote("m", 50, 60)
        )
        assert f"m work {at}..{at + 10}" in placed(found)


def test_nothing_stands_before_its_parent() -> None:
    found = explained(AGENT, row("a", "R", 10, 20, host="A"), remote("m", -50, -20))
    assert placed(found) == ["m work 0..30", "R unobserved 30..100"]


def test_what_a_remote_child_holds_moves_with_it() -> None:
    found = explained(
        AGENT,
        *known(5_000, 5_000),
        row("a", "R", 10, 40, host="A"),
        remote("m", 5_050, 5_090, op="execute_tool"),
        phase(Phase.QUEUE, "m", 5_050, 5_060),
        row("n", "m", 5_060, 5_080, host="B"),
    )
    assert placed(found)[-5:] == [
        "R unobserved 40..50",
        "m queue 50..60",
        "n work 60..80",
        "m unobserved 80..90",
        "R unobserved 90..100",
    ]


def test_below_a_child_that_was_placed_another_one_is_placed_as_well() -> None:
    """B is 5 s ahead of A, and C as far behind; m stands where m began, n where it did in m."""
    rows = [
        AGENT,
        *known(5_000, 5_000),
        row("L", "R", 0, 900, host="C", **{"async": True}),
        row("l", "L", 0, 800, host="C", kind="client", rpc=True),
        row("ls", "l", 10_000, 10_800, host="B", kind="server"),
        row("a", "R", 10, 40, host="A"),
        remote("m", 5_050, 5_090),
        row("b", "m", 5_052, 5_055, host="B"),
        row("n", "m", -4_940, -4_920, host="C"),
    ]
    found = explained(*rows)
    assert placed(found)[-7:] == [
        "R unobserved 40..50",
        "m unobserved 50..52",
        "b work 52..55",
        "m unobserved 55..60",
        "n work 60..80",
        "m unobserved 80..90",
        "R unobserved 90..100",
    ]
    assert findings(found) == []


def test_children_of_one_other_clock_keep_their_order_wherever_they_are() -> None:
    """They share one offset: however far it may be off, m ended before n began."""
    rows = [AGENT, row("a", "R", 1, 2, host="A"), remote("m", 30, 40), remote("n", 42, 52)]
    assert alternatives(explained(*rows, *known(-6, 6))) == []


def test_children_of_two_other_clocks_may_both_be_elsewhere() -> None:
    """Neither may move by 8 alone, but one by 6 and the other by 6 the other way."""
    apart = [{**each, "host": {"A": "A", "B": "C"}[each["host"]]} for each in known(-6, 6)]
    renamed = [
        {**each, "id": each["id"] + "2", "parent": (each["parent"] or "") + "2"} for each in apart
    ]
    renamed[0]["parent"] = "R"
    rows = [
        AGENT,
        row("a", "R", 1, 2, host="A"),
        remote("m", 30, 40),
        row("n", "R", 48, 58, host="C"),
    ]
    found = explained(*rows, *known(-6, 6), *renamed)
    assert alternatives(found) == ["m or n"]


def test_nothing_is_placed_by_the_stamps_of_a_parent_that_never_came() -> None:
    orphans = [
        row("a", "gone", 10, 40, host="A"),
        row("m", "gone", 5_050, 5_090, host="B"),
    ]
    found = explained(*orphans)
    assert found.explained.aligned.clocks.messages == ()
    assert findings(found) == ["missing_parent of a", "missing_parent of m"]


def test_where_another_feasible_offset_changes_the_order_the_path_is_ambiguous() -> None:
    """M may have ended before a began, or a before m began."""
    rows = [AGENT, row("a", "R", 30, 60, host="A"), remote("m", 55, 85)]
    sure = explained(*rows, *known(0, 0))
    assert alternatives(sure) == []
    unsure = explained(*rows, *known(-10, 30))
    assert amounts(unsure) == amounts(sure)
    assert alternatives(unsure) == ["m or a"]


@pytest.mark.parametrize("drift", [0, 200])
def test_a_long_trace_leaves_more_orders(drift: int) -> None:
    found = explained(
        row("R", None, 0, 100_000, host="A"),
        *known(0, 0),
        row("a", "R", 10_000, 40_000, host="A"),
        remote("m", 40_010, 90_000),
        assumptions=replace(EXACT, drift_ppm=drift),
    )
    assert alternatives(found) == (["m or a"] if drift else [])


def test_one_that_may_outlive_its_parent_is_said_to() -> None:
    found = explained(AGENT, *known(-5, 5), row("a", "R", 10, 40, host="A"), remote("m", 50, 98))
    assert "m work 48" in amounts(found)
    assert alternatives(found) == ["m or R"]
    assert findings(found) == []


def test_one_that_may_have_ended_in_time_is_no_finding() -> None:
    found = explained(AGENT, *known(-5, 5), row("a", "R", 10, 40, host="A"), remote("m", 50, 103))
    assert "a work 30" in amounts(found)
    assert alternatives(found) == ["R or m"]
    assert findings(found) == []


def test_one_that_outlived_its_parent_for_sure_is_a_finding() -> None:
    found = explained(AGENT, *known(-5, 5), row("a", "R", 10, 40, host="A"), remote("m", 50, 110))
    assert findings(found) == ["outlived_parent of m 10"]


@pytest.mark.parametrize(
    "rows",
    [
        [remote("m", 50, 60, kind="consumer"), row("a", "R", 10, 40, host="A")],
        [
            row("c", "R", 10, 90, host="A", kind="client"),
            row("m", "c", 50, 60, host="B", kind="server"),
        ],
    ],
    ids=["one-way", "a call's callee"],
)
def test_what_needs_no_place_gets_none(rows: list[Json]) -> None:
    found = explained(AGENT, *known(-5, 15), *rows)
    assert alternatives(found) == []


def test_one_whose_clock_contradicts_itself_stays_off_the_path() -> None:
    found = explained(AGENT, *known(805, 5), row("a", "R", 10, 40, host="A"), remote("m", 50, 60))
    assert findings(found) == ["negative_transit of ks -800"]
    assert [line.split()[0] for line in amounts(found)].count("m") == 1
