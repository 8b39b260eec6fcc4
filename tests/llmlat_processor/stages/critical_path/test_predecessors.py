"""Explicit edges: links, tool calls, where an edge leaves, and which are not believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmlat_processor.relations import relationship
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import LinkRelationship
from tests.cases.case_format import EXACT, Json
from tests.llmlat_processor.stages.spans import (
    chat,
    engine,
    explained,
    findings,
    link,
    outcome_of,
    phase,
    placed,
    row,
    spans,
)

ROOT = row("R", None, 0, 100)


def asks(*calls: tuple[str, float]) -> dict[str, Any]:
    """Events of a chat: the arguments of a call were complete."""
    said = [{"name": events.LLMLAT_TOOL_CALL, "call_id": call, "at": at} for call, at in calls]
    return {"events": said}


def tool(name: str, parent: str, start: float, end: float, call: str) -> Json:
    return row(name, parent, start, end, op="execute_tool", call_id=call)


# ── Links ────────────────────────────────────────────────────────────────────────────────────────

#   a    ├───┤
#   b    ├─────────┤           ends later, but c says that it waited for a
#   c               ├────┤
SIBLINGS = (ROOT, row("a", "R", 0, 20), row("b", "R", 0, 50), row("c", "R", 50, 100))
BY_TIME = ["b work 0..50", "c work 50..100"]
AS_SAID = ["a work 0..20", "R unobserved 20..50", "c work 50..100"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (kind, AS_SAID if kind in {"follows", "retry_of"} else BY_TIME)
        for kind in [*(known.value for known in LinkRelationship), "caused_by", ""]
    ],
)
def test_only_follows_and_retry_of_precede(kind: str, expected: list[str]) -> None:
    found = explained(*SIBLINGS, links=[link("c", "a", kind)])
    assert placed(found) == expected
    assert found.edge("a > c", None) == ("explicit" if expected is AS_SAID else "no such edge")


@pytest.mark.parametrize(
    "relation",
    [
        {"to_trace": "another trace"},
        {"to_span": "nobody"},
        {"to_span": "c"},
    ],
    ids=["to a namesake in another trace", "to nobody", "to itself"],
)
def test_links_to_anywhere_else_give_no_edge(relation: dict[str, str]) -> None:
    found = explained(*SIBLINGS, links=[{**link("c", "a"), **relation}])
    assert placed(found) == BY_TIME


@pytest.mark.parametrize("value", [["follows"], 7, True, None, b"follows", {"a": 1}], ids=repr)
def test_a_relationship_of_another_type_gives_no_edge(value: Any) -> None:
    made = spans(*SIBLINGS, links=[link("c", "a")])
    made[3].links[0].attributes = {names.LLMLAT_LINK_RELATIONSHIP: value}
    assert placed(outcome_of(made)) == BY_TIME


def test_the_genai_name_of_a_relationship_is_read_where_ours_is_absent() -> None:
    theirs = {names.GEN_AI_ATTRIBUTION_LINK_TYPE: "follows"}
    assert relationship(theirs) == LinkRelationship.FOLLOWS
    assert relationship({**theirs, names.LLMLAT_LINK_RELATIONSHIP: "kv_source"}) == "kv_source"
    assert not relationship({})


def test_of_several_predecessors_the_one_that_ended_last_is_entered() -> None:
    found = explained(
        *SIBLINGS, row("d", "R", 5, 30), links=[link("c", "a"), link("c", "d"), link("c", "a")]
    )
    assert placed(found) == [
        "R unobserved 0..5",
        "d work 5..30",
        "R unobserved 30..50",
        "c work 50..100",
    ]


def test_a_sibling_wholly_in_between_still_counts() -> None:
    found = explained(*SIBLINGS, row("d", "R", 25, 40), links=[link("c", "a")])
    assert placed(found) == [
        "a work 0..20",
        "R unobserved 20..25",
        "d work 25..40",
        "R unobserved 40..50",
        "c work 50..100",
    ]
    assert [found.edge(edge, None) for edge in ("a > d", "d > c")] == ["explicit", "inferred"]


def test_a_predecessor_that_ended_after_its_successor_began_is_not_believed() -> None:
    found = explained(*SIBLINGS, row("d", "R", 5, 60), links=[link("c", "d")])
    assert placed(found) == BY_TIME


def test_a_link_to_an_ancestor_or_a_descendant_gives_no_edge() -> None:
    inner = row("inner", "c", 60, 70)
    for links in ([link("inner", "c")], [link("c", "inner")], [link("c", "R")]):
        found = explained(*SIBLINGS, inner, links=links)
        assert placed(found) == [
            "b work 0..50",
            "c unobserved 50..60",
            "inner work 60..70",
            "c unobserved 70..100",
        ]
        assert findings(found) == []


# ── Across parents ───────────────────────────────────────────────────────────────────────────────


#   p        ├────────────────┤
#   a          ├────┤                 d waited for a, not for all of p
#   q                      ├──────┤
#   d                        ├──┤
def test_an_edge_between_cousins_is_lifted_to_their_parents_and_clipped_where_it_leaves() -> None:
    found = explained(
        ROOT,
        row("p", "R", 0, 55),
        row("a", "p", 10, 30),
        row("q", "R", 60, 100),
        row("d", "q", 70, 80),
        links=[link("d", "a")],
    )
    assert placed(found) == [
        "p unobserved 0..10",
        "a work 10..30",
        "R unobserved 30..60",
        "q unobserved 60..70",
        "d work 70..80",
        "q unobserved 80..100",
    ]


def test_an_edge_between_the_trees_of_two_roots_gives_nothing() -> None:
    found = explained(ROOT, row("S", None, 100, 120), links=[link("S", "R")])
    assert placed(found, root="S") == ["S work 100..120"]
    assert findings(found) == []


def test_a_predecessor_on_another_clock_is_entered_at_its_call_on_this_one() -> None:
    found = explained(
        ROOT,
        row("call", "R", 0, 20, kind="client"),
        row("far", "call", 7_000, 7_015, kind="server", host="B"),
        row("b", "R", 0, 50),
        row("c", "R", 50, 100),
        links=[link("c", "far")],
    )
    assert placed(found) == [
        "far work 0..15",
        "call transit 15..20",
        "R unobserved 20..50",
        "c work 50..100",
    ]


# ── Cycles ───────────────────────────────────────────────────────────────────────────────────────


def test_edges_of_a_cycle_are_dropped_and_said() -> None:
    links = [link("c", "a"), link("a", "c")]
    found = explained(*SIBLINGS, links=links)
    assert placed(found) == BY_TIME
    assert findings(found) == ["dependency_cycle of a", "dependency_cycle of c"]


def test_an_edge_that_leads_into_a_cycle_or_out_of_it_is_kept() -> None:
    links = [link("a", "z"), link("z", "a"), link("c", "a")]
    found = explained(*SIBLINGS, row("z", "R", 0, 1), links=links)
    assert placed(found) == AS_SAID


def test_an_edge_between_two_cycles_is_in_neither() -> None:
    first, second = [link("a", "z"), link("z", "a")], [link("c", "y"), link("y", "c")]
    rows = (row("z", "R", 0, 1), row("y", "R", 99, 100))
    found = explained(*SIBLINGS, *rows, links=[*first, *second, link("c", "a")])
    assert found.edge("a > c", None) == "explicit"
    assert sorted(findings(found)) == [f"dependency_cycle of {name}" for name in "acyz"]


# ── Tool calls ───────────────────────────────────────────────────────────────────────────────────

#   ask     ├─────────▼──────┤               the arguments are complete at 30
#   tool               ├─────────────┤       eager: starts before the chat has ended
#   next                              ├────────────┤
EAGER = (
    ROOT,
    chat("ask", "R", 0, 50, **asks(("k", 30))),
    tool("tool", "R", 30, 70, "k"),
    chat("next", "R", 70, 100),
)


def test_an_eager_tool_leaves_the_chat_where_its_arguments_were_complete() -> None:
    found = explained(*EAGER)
    assert placed(found) == ["ask work 0..30", "tool tool 30..70", "next work 70..100"]
    edges = [found.edge(edge, None) for edge in ("ask > tool", "tool > next")]
    assert edges == ["explicit", "explicit"]


def test_without_an_event_the_edge_leaves_at_the_chats_end() -> None:
    found = explained(
        ROOT,
        chat("ask", "R", 0, 30),
        row("other", "R", 0, 38),
        tool("tool", "R", 40, 70, "k"),
        chat("next", "R", 75, 100),
        row("busy", "R", 60, 74),
    )
    assert placed(found) == [
        "ask work 0..30",
        "R unobserved 30..40",
        "tool tool 40..70",
        "R unobserved 70..75",
        "next work 75..100",
    ]


def test_a_tool_without_a_call_id_gives_no_edge() -> None:
    found = explained(
        ROOT,
        chat("ask", "R", 0, 30),
        row("other", "R", 0, 38),
        row("tool", "R", 40, 70, op="execute_tool"),
    )
    assert placed(found)[0] == "other work 0..38"


#   ask    ├────▼──▼──┤
#   fast        ├───┤                      both were asked for, and the next chat waited for both
#   slow           ├──────────┤
#   next                       ├───┤
def test_of_parallel_tools_the_slower_one_is_on_the_path() -> None:
    found = explained(
        ROOT,
        chat("ask", "R", 0, 50, **asks(("k1", 20), ("k2", 30))),
        tool("fast", "R", 20, 40, "k1"),
        tool("slow", "R", 30, 80, "k2"),
        chat("next", "R", 80, 100),
    )
    assert placed(found) == ["ask work 0..30", "slow tool 30..80", "next work 80..100"]


def test_the_next_chat_is_one_of_the_same_agent() -> None:
    """Another agent's chat starts in between; this one's waits for the tool all the same."""
    found = explained(
        ROOT,
        row("one", "R", 0, 100, op="invoke_agent"),
        chat("ask", "one", 0, 30, **asks(("k", 30))),
        tool("tool", "one", 30, 60, "k"),
        row("busy", "one", 40, 79),
        row("two", "R", 60, 75, op="invoke_agent"),
        chat("theirs", "two", 60, 75),
        chat("next", "one", 80, 100),
    )
    assert placed(found) == [
        "ask work 0..30",
        "tool tool 30..60",
        "one unobserved 60..80",
        "next work 80..100",
    ]


def test_an_id_that_a_later_turn_uses_again_is_no_cycle() -> None:
    """Small servers number calls per answer, so each turn's first call has the same id."""
    found = explained(
        ROOT,
        chat("c1", "R", 0, 25, **asks(("call_0", 10))),
        tool("t1", "R", 10, 30, "call_0"),
        chat("c2", "R", 30, 65, **asks(("call_0", 50))),
        tool("t2", "R", 50, 70, "call_0"),
        chat("c3", "R", 70, 100),
    )
    assert findings(found) == []
    assert placed(found) == [
        "c1 work 0..10",
        "t1 tool 10..30",
        "c2 work 30..50",
        "t2 tool 50..70",
        "c3 work 70..100",
    ]


def test_an_id_that_another_agent_uses_as_well_ties_each_to_its_own() -> None:
    rows = [ROOT]
    for number, agent in enumerate(("one", "two")):
        at = 50 * number
        rows += [
            row(agent, "R", at, at + 50, op="invoke_agent"),
            chat(f"ask {agent}", agent, at, at + 25, **asks(("call_0", at + 10))),
            tool(f"tool {agent}", agent, at + 10, at + 40, "call_0"),
        ]
    assert [line for line in placed(explained(*rows)) if "ask" in line] == [
        "ask one work 0..10",
        "ask two work 50..60",
    ]


@pytest.mark.parametrize("at", [5, 10, 90])
def test_an_event_outside_of_its_chat_adds_no_time(at: float) -> None:
    found = explained(
        row("R", None, 0, 40),
        chat("c", "R", 10, 20, **asks(("k", at))),
        tool("t", "R", 25, 30, "k"),
    )
    assert found.total("e2e", None) == "40"


def test_a_call_that_is_left_at_the_event_makes_its_exchange_up_to_the_first_output() -> None:
    """As on the path to the first content: nothing says how the rest of the wait splits."""
    found = explained(
        ROOT,
        chat("ask", "R", 0, 60, **asks(("k", 50))),
        phase(Phase.WAIT, "ask", 0, 40),
        phase(Phase.STREAM, "ask", 40, 58),
        phase(Phase.FINALIZE, "ask", 58, 60),
        engine("e", "ask", 7_000, 7_050),
        phase(Phase.PREFILL, "e", 7_000, 7_030),
        phase(Phase.DECODE, "e", 7_030, 7_050),
        tool("tool", "R", 50, 100, "k"),
    )
    assert placed(found) == [
        "e prefill 0..30",
        "ask transit 30..40",
        "ask stream 40..50",
        "tool tool 50..100",
    ]


def test_an_event_after_the_last_content_does_not_clip_the_exchange() -> None:
    found = explained(
        ROOT,
        chat("ask", "R", 0, 60, **asks(("k", 58))),
        phase(Phase.WAIT, "ask", 0, 40),
        phase(Phase.STREAM, "ask", 40, 58),
        phase(Phase.FINALIZE, "ask", 58, 60),
        engine("e", "ask", 7_000, 7_050),
        phase(Phase.PREFILL, "e", 7_000, 7_030),
        phase(Phase.DECODE, "e", 7_030, 7_050),
        tool("tool", "R", 58, 100, "k"),
    )
    assert placed(found) == [
        "e prefill 0..30",
        "e decode 30..50",
        "ask transit 50..58",
        "tool tool 58..100",
    ]


def test_a_predecessor_without_any_length_is_entered_once() -> None:
    found = explained(ROOT, row("a", "R", 5, 5), row("b", "R", 6, 8), links=[link("b", "a")])
    edges = found.explained.paths.roots[0].e2e.edges
    assert [(edge.before, edge.after) for edge in edges] == [(b"a", b"b")]


#   R  ├────────────────────────┤
#   b                  ├─┤
#   c                    ┬        follows e, which ended when d began: all at one instant
#   d                    ┬        of a clock that shows whole milliseconds
def test_within_the_resolution_of_a_clock_a_path_is_as_long_as_it_is() -> None:
    found = explained(
        row("R", None, 0, 12),
        row("b", "R", 9, 10),
        row("c", "b", 10, 10),
        row("d", "R", 10, 10),
        row("e", "c", 10, 10),
        links=[link("b", "e"), link("d", "c")],
        assumptions=replace(EXACT, resolution_ns=1_000_000),
    )
    path = found.path("e2e", None)
    assert path is not None
    assert path.duration_ns == 12_000_000
