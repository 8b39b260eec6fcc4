"""Who was waited for: joined children, those that outlived their parent, and the abandoned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble
from llmlat_processor.stages.critical_path.calls import find_calls
from llmlat_processor.stages.critical_path.joins import join_children
from llmlat_processor.stages.critical_path.tree import grow
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from tests.cases.case_format import EXACT, Json
from tests.cases.case_spans import name_of
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import (
    engine,
    explained,
    findings,
    link,
    outcome_of,
    placed,
    row,
    spans,
)

ASYNC = {"async": True}
ROOT = row("R", None, 0, 100)


def on_path(outcome: Outcome) -> set[str]:
    """Which operations answer for a section of the end-to-end path."""
    return {line.split()[0] for line in placed(outcome)}


def joins(*awaited: str, at: float = 100) -> dict[str, Any]:
    """The event by which a parent says whom it waited for."""
    return {"events": [{"name": events.LLMLAT_JOIN, "at": at, "span_ids": list(awaited)}]}


# ── Inside the parent ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("end", "epsilon_ms", "said"),
    [
        (100, 0, []),
        (100.5, 0, ["outlived_parent of a 0.5"]),
        (100.5, 1, []),
        (101, 1, []),
        (101.5, 1, ["outlived_parent of a 1.5"]),
    ],
)
def test_a_child_is_joined_if_it_ends_by_its_parents_end_within_the_resolution(
    end: float, epsilon_ms: int, said: list[str]
) -> None:
    assumptions = replace(EXACT, resolution_ns=epsilon_ms * 1_000_000)
    found = explained(ROOT, row("a", "R", 50, end), assumptions=assumptions)
    assert findings(found) == said
    assert on_path(found) == ({"R"} if said else {"R", "a"})


def test_a_remote_child_on_the_parents_clock_is_joined_like_a_local_one() -> None:
    found = explained(
        ROOT, row("a", "R", 10, 20, process="other"), row("b", "R", 30, 40, process="other")
    )
    assert on_path(found) == {"R", "a", "b"}


def test_a_child_on_another_clock_says_nothing_about_when() -> None:
    found = explained(ROOT, row("a", "R", 10, 20, host="A"), row("b", "R", 30, 40, host="B"))
    assert placed(found) == ["R unobserved 0..100"]
    assert findings(found) == []


# ── Before the parent ────────────────────────────────────────────────────────────────────────────


#   R         ├────────────────┤
#   a     ├───────┤                  it stays on the path, clipped at its parent's start
def test_a_child_that_began_before_its_parent_stays_clipped_and_is_said() -> None:
    found = explained(row("R", None, 10, 40), row("a", "R", 4, 20))
    assert placed(found) == ["a work 10..20", "R unobserved 20..40"]
    assert findings(found) == ["same_domain_order of a 6"]


def test_a_child_that_was_over_before_its_parent_began_has_no_time_in_it() -> None:
    found = explained(row("R", None, 10, 40), row("a", "R", 4, 8))
    assert placed(found) == ["R unobserved 10..40"]
    assert findings(found) == ["same_domain_order of a 6"]


def test_before_the_parent_within_the_resolution_is_no_finding() -> None:
    coarse = replace(EXACT, resolution_ns=6_000_000)
    found = explained(row("R", None, 10, 40), row("a", "R", 4, 20), assumptions=coarse)
    assert findings(found) == []


# ── After the parent ─────────────────────────────────────────────────────────────────────────────


#   R      ├────────────────────────────────────┤
#   p         ├──────────┤
#   q           ├─────┤
#   a                ├─────────┤                     outlives q and p, joins R
def test_a_child_that_outlives_its_parent_joins_the_nearest_ancestor_that_ends_later() -> None:
    found = explained(ROOT, row("p", "R", 10, 50), row("q", "p", 20, 40), row("a", "q", 35, 70))
    assert placed(found) == [
        "R unobserved 0..10",
        "p unobserved 10..20",
        "q unobserved 20..35",
        "a work 35..70",
        "R unobserved 70..100",
    ]
    assert findings(found) == ["outlived_parent of a 30"]
    assert found.edge("a > R", None) == "inferred"


def test_it_joins_an_ancestor_that_ends_exactly_with_it() -> None:
    found = explained(ROOT, row("p", "R", 10, 50), row("q", "p", 20, 40), row("a", "q", 35, 50))
    assert placed(found)[2:4] == ["q unobserved 20..35", "a work 35..50"]


def test_work_before_it_began_is_found_in_its_own_parent() -> None:
    found = explained(
        ROOT,
        row("p", "R", 10, 40),
        row("earlier", "p", 15, 30),
        row("hidden", "p", 20, 38),
        row("a", "p", 35, 70),
    )
    assert placed(found) == [
        "R unobserved 0..10",
        "p unobserved 10..15",
        "earlier work 15..30",
        "p unobserved 30..35",
        "a work 35..70",
        "R unobserved 70..100",
    ]


def test_no_ancestor_on_another_clock_is_asked() -> None:
    """By raw stamps the client ends long after the engine's background work."""
    found = explained(
        row("c", None, 0, 5_000, kind="client"),
        engine("e", "c", 10, 1_000),
        row("tail", "e", 900, 1_200, host="gpu"),
    )
    assert on_path(found) == {"c", "e"}
    assert findings(found) == ["outlived_parent of tail 200"]


def _outliving(parents: Sequence[int], lengths: Sequence[tuple[int, int]]) -> list[Json]:
    """Operation i+1 is a child of the one named; it begins in its parent and ends anywhere."""
    rows = [row("s0", None, 0, 60)]
    for number, (parent, (offset, length)) in enumerate(zip(parents, lengths, strict=True), 1):
        above = rows[parent % number]
        start = min(above["start"] + offset, above["end"])
        rows.append(row(f"s{number}", above["id"], start, start + length))
    return rows


def _adopters(rows: list[Json]) -> dict[str, str]:
    """Who waits for whom, found the obvious way: by asking one ancestor after the other."""
    by_id = {raw["id"]: raw for raw in rows}
    found = {}
    for raw in rows[1:]:
        above = by_id[raw["parent"]]
        while above["end"] < raw["end"] and above["parent"] is not None:
            above = by_id[above["parent"]]
        if above["end"] >= raw["end"]:
            found[raw["id"]] = above["id"]
    return found


@given(
    st.lists(st.integers(0, 30), min_size=30, max_size=30),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 70)), min_size=30, max_size=30),
)
def test_the_nearest_ancestor_is_the_one_found_by_asking_each(
    parents: list[int], lengths: list[tuple[int, int]]
) -> None:
    rows = _outliving(parents, lengths)
    tree = grow(align_clocks(assemble(spans(*rows), EXACT)))
    find_calls(tree)
    join_children(tree)
    joined = {
        name_of(child.span.span_id): name_of(node.span.span_id)
        for node in tree.order
        for child in node.joined
    }
    assert joined == _adopters(rows)


# ── Nobody waited ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", [60, 100, 150])
def test_what_was_sent_one_way_is_off_the_path_and_no_fault(end: float) -> None:
    found = explained(ROOT, row("p", "R", 0, 40), row("a", "p", 20, end, **ASYNC))
    assert on_path(found) == {"R", "p"}
    assert findings(found) == []


def test_a_hedges_loser_is_off_the_path_even_if_the_parent_says_it_waited() -> None:
    found = explained(row("R", None, 0, 100, **joins("a")), row("a", "R", 10, 90, lost=True))
    assert on_path(found) == {"R"}


#   a    ├──────────────┤  cancelled
#   b       ├────┤                         replaced it: ended during it
@pytest.mark.parametrize(
    ("sibling", "seen"),
    [
        (row("b", "R", 20, 50), {"R", "b"}),
        (row("b", "R", 5, 10), {"R", "b"}),
        (row("b", "R", 60, 80), {"R", "b"}),
        (row("b", "R", 2, 5), {"R", "a", "b"}),
        (row("b", "R", 85, 95), {"R", "a", "b"}),
        (row("b", "R", 85, 95, cancelled=True), {"R", "a", "b"}),
        (row("b", "R", 20, 50, cancelled=True), {"R", "a"}),
        (row("b", "R", 20, 50, host="other"), {"R", "b"}),
        (row("b", "R", 20, 50, host="other", kind="consumer"), {"R", "a"}),
    ],
    ids=[
        "ended during it",
        "ended as it began",
        "ended as it ended",
        "ended before it",
        "began after it",
        "began after it and was cancelled as well",
        "was cancelled as well",
        "ended during it on another clock, as near to zero as can be",
        "nobody waited for",
    ],
)
def test_a_cancelled_child_is_off_the_path_only_if_it_was_replaced(
    sibling: Json, seen: set[str]
) -> None:
    found = explained(ROOT, row("a", "R", 10, 80, cancelled=True), sibling)
    assert on_path(found) == seen


def test_a_cancelled_only_child_is_on_the_path() -> None:
    """A time-out: the parent waited for it until it gave up."""
    found = explained(ROOT, row("a", "R", 10, 80, cancelled=True))
    assert placed(found) == ["R unobserved 0..10", "a work 10..80", "R unobserved 80..100"]


# ── The parent says so ───────────────────────────────────────────────────────────────────────────


def test_the_parent_waited_for_a_one_way_child_if_it_says_so() -> None:
    found = explained(row("R", None, 0, 100, **joins("a")), row("a", "R", 10, 80, **ASYNC))
    assert on_path(found) == {"R", "a"}


@pytest.mark.parametrize("op", ["execute_tool", None])
def test_how_the_end_of_the_parent_is_known_is_said(op: str | None) -> None:
    last, first = (
        row(name, "R", start, start + 30, op=op) for name, start in (("a", 50), ("b", 10))
    )
    said = explained(row("R", None, 0, 100, **joins("a", "b")), last, first)
    assert (said.edge("a > R", None), said.edge("b > a", None)) == ("explicit", "inferred")
    other = explained(row("R", None, 0, 100, **joins("b")), last, first)
    assert other.edge("a > R", None) == "no such edge"
    assert placed(other) == placed(said)


def test_a_link_from_the_parent_says_the_same() -> None:
    found = explained(ROOT, row("a", "R", 10, 80, **ASYNC), links=[link("R", "a", "joined")])
    assert on_path(found) == {"R", "a"}


def test_a_child_that_was_waited_for_and_ends_later_is_clipped_and_said() -> None:
    found = explained(row("R", None, 0, 100, **joins("a")), row("a", "R", 10, 130))
    assert placed(found) == ["R unobserved 0..10", "a work 10..100"]
    assert findings(found) == ["same_domain_order of a 30"]


@pytest.mark.parametrize(
    "said",
    [
        {"events": [{"name": events.LLMLAT_JOIN, "at": 100, "span_ids": ["grandchild", "nobody"]}]},
        {"events": [{"name": "another event", "at": 100, "span_ids": ["a"]}]},
        {"events": [{"name": events.LLMLAT_JOIN, "at": 100}]},
    ],
    ids=["of others than its children", "in another event", "of nobody"],
)
def test_a_join_of_anything_else_joins_nothing(said: dict[str, Any]) -> None:
    found = explained(
        row("R", None, 0, 100, **said),
        row("a", "R", 10, 80, **ASYNC),
        row("grandchild", "a", 10, 90, **ASYNC),
    )
    assert on_path(found) == {"R"}


@pytest.mark.parametrize("ids", ["61", [b"a"], ["no hex"], [7, None, True], 7, None], ids=repr)
def test_ids_that_cannot_be_read_join_nothing(ids: Any) -> None:
    made = spans(row("R", None, 0, 100, **joins()), row("a", "R", 10, 80, **ASYNC))
    made[0].events[0].attributes = {names.LLMLAT_JOIN_SPAN_IDS: ids}
    assert on_path(outcome_of(made)) == {"R"}


#   g    ├──────────────────────┤ last byte
#   x                  ├────────────────┤
@pytest.mark.parametrize(
    ("server", "child", "said"),
    [
        ({"boundary": "gateway"}, row("x", "g", 120, 150), None),
        ({"boundary": "gateway"}, row("x", "g", 20, 101), []),
        ({"boundary": "gateway"}, row("x", "g", 20, 150, op="chat"), ["outlived_parent of x 50"]),
        ({"boundary": "gateway", "kind": "internal"}, row("x", "g", 120, 150), None),
        ({"boundary": "engine"}, row("x", "g", 120, 150), None),
        ({}, row("x", "g", 120, 150), None),
    ],
    ids=[
        "a task in the background",
        "a listener for the caller's leaving",
        "a call that goes on",
        "no server",
        "an engine",
        "a server whose end is not its last byte",
    ],
)
def test_what_outlives_a_servers_last_byte_is_a_finding_unless_it_only_listens(
    server: dict[str, object], child: Json, said: list[str] | None
) -> None:
    found = explained(row("g", None, 0, 100, **{"kind": "server", **server}), child)
    assert findings(found) == (["outlived_parent of x 50"] if said is None else said)
    assert "x" not in {line.split()[0] for line in placed(found)}
