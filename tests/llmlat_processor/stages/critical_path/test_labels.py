"""Labels: phase spans by position, durations into what is left, the rest by its operation."""

from __future__ import annotations

import pytest

from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    explained,
    findings,
    phase,
    placed,
    row,
)


def of_engine(*phases: Json, length: float = 30, **keys: object) -> list[str]:
    """Sections of an engine span that is the whole trace."""
    return placed(explained(row("e", None, 0, length, boundary="engine", **keys), *phases))


# ── By position ──────────────────────────────────────────────────────────────────────────────────


def test_phase_spans_label_the_time_that_they_cover() -> None:
    labels = phase(Phase.QUEUE, "e", 5, 10), phase(Phase.PREFILL, "e", 15, 30)
    assert of_engine(*labels) == [
        "e unobserved 0..5",
        "e queue 5..10",
        "e unobserved 10..15",
        "e prefill 15..30",
    ]


#   queue         ├──────────┤              decode    ├──────────────┤
#   kv_transfer      ├───┤                  preempted     ├───┤  ├─┤
def test_nested_phases_come_first() -> None:
    assert of_engine(
        phase(Phase.QUEUE, "e", 0, 10),
        phase(Phase.KV_TRANSFER, "e", 3, 6),
        phase(Phase.DECODE, "e", 10, 30),
        row("p1", "e", 12, 15, phase="preempted"),
        row("p2", "e", 20, 22, phase="preempted"),
    ) == [
        "e queue 0..3",
        "e kv_transfer 3..6",
        "e queue 6..10",
        "e decode 10..12",
        "e preempted 12..15",
        "e decode 15..20",
        "e preempted 20..22",
        "e decode 22..30",
    ]


def test_what_lies_outside_of_the_operation_labels_nothing() -> None:
    labels = phase(Phase.QUEUE, "e", -5, 10), phase(Phase.DECODE, "e", 25, 40)
    assert of_engine(*labels) == ["e queue 0..10", "e unobserved 10..25", "e decode 25..30"]


#   e         ├──────────────────────────┤
#   prefill       ├──────────────────┤
#   child             ├────┤                 a child's time is its own
def test_a_child_takes_its_time_out_of_a_phase() -> None:
    label = phase(Phase.PREFILL, "e", 5, 25)
    assert of_engine(label, row("child", "e", 10, 15)) == [
        "e unobserved 0..5",
        "e prefill 5..10",
        "child work 10..15",
        "e prefill 15..25",
        "e unobserved 25..30",
    ]


# ── Durations without a position ─────────────────────────────────────────────────────────────────


def test_durations_fill_in_the_order_of_the_contract() -> None:
    durations = {"decode": 12, "queue": 3, "prefill": 10, "tokenize": 2}
    assert of_engine(phases=durations) == [
        "e tokenize 0..2",
        "e queue 2..5",
        "e prefill 5..15",
        "e decode 15..27",
        "e unobserved 27..30",
    ]


def test_durations_fill_what_phase_spans_and_children_leave() -> None:
    assert of_engine(
        phase(Phase.PREFILL, "e", 5, 10),
        row("child", "e", 12, 14),
        phases={"queue": 6, "decode": 9},
    ) == [
        "e queue 0..5",
        "e prefill 5..10",
        "e queue 10..11",
        "e decode 11..12",
        "child work 12..14",
        "e decode 14..22",
        "e unobserved 22..30",
    ]


def test_nested_durations_are_taken_out_of_the_one_that_holds_them() -> None:
    found = explained(row("e", None, 0, 30, phases={"queue": 10, "kv_transfer": 4, "decode": 20}))
    assert found.totals("e2e", None) == ["decode 20", "kv_transfer 4", "queue 6"]
    assert findings(found) == []


def test_a_nested_duration_is_taken_out_of_the_phase_span_that_holds_it() -> None:
    """Below the minimum for a span, in a phase that is a span: nothing overflows."""
    found = explained(
        row("e", None, 0, 30, phases={"kv_transfer": 1}),
        phase(Phase.QUEUE, "e", 0, 10),
        phase(Phase.DECODE, "e", 10, 30),
    )
    assert findings(found) == []
    assert found.totals("e2e", None) == ["decode 20", "kv_transfer 1", "queue 9"]


def test_a_nested_duration_longer_than_its_holder_takes_no_more_than_all_of_it() -> None:
    found = explained(row("e", None, 0, 30, phases={"queue": 5, "kv_transfer": 40}))
    assert found.totals("e2e", None) == ["kv_transfer 5", "unobserved 25"]


def test_a_nested_duration_without_its_holder_fills_like_any_other() -> None:
    assert of_engine(phases={"preempted": 4}) == ["e preempted 0..4", "e unobserved 4..30"]


# ── Overflow ─────────────────────────────────────────────────────────────────────────────────────


def test_durations_that_do_not_fit_are_left_out_and_said() -> None:
    found = explained(row("e", None, 0, 10, phases={"queue": 6, "prefill": 5}))
    assert placed(found) == ["e unobserved 0..10"]
    assert findings(found) == ["phase_overflow of e 1"]


def test_durations_that_just_fit_are_no_finding() -> None:
    found = explained(row("e", None, 0, 11, phases={"queue": 6, "prefill": 5}))
    assert placed(found) == ["e queue 0..6", "e prefill 6..11"]
    assert findings(found) == []


def test_phase_spans_stay_where_durations_overflow() -> None:
    found = explained(
        row("e", None, 0, 10, phases={"queue": 6}),
        phase(Phase.PREFILL, "e", 5, 10),
    )
    assert placed(found) == ["e unobserved 0..5", "e prefill 5..10"]
    assert findings(found) == ["phase_overflow of e 1"]


#   R              ├───────────┤
#   e     ├────────────────┤               the path enters e only at R's start
def test_an_operation_that_the_path_clips_fills_in_order_and_is_cut() -> None:
    found = explained(
        row("R", None, 10, 30), row("e", "R", 0, 20, phases={"queue": 8, "prefill": 12})
    )
    assert placed(found) == ["e prefill 10..20", "R unobserved 20..30"]
    assert findings(found) == ["same_domain_order of e 10"]


def test_an_operation_that_the_path_leaves_early_is_no_overflow() -> None:
    found = explained(
        row("R", None, 0, 100, op="chat", stream=True, first_useful_content=10,
            phases={"wait": 8, "stream": 80}),
    )  # fmt: skip
    assert amounts(found, "ttft") == ["R wait 8", "R stream 2"]
    assert findings(found) == []


# ── The rest ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("op", "label"),
    [
        ("execute_tool", "tool"),
        ("retrieval", "retrieval"),
        ("human_wait", "human_wait"),
        ("chat", "work"),
        ("invoke_agent", "work"),
        ("anything else", "work"),
    ],
)
def test_a_leaf_without_phases_is_called_by_its_operation(op: str, label: str) -> None:
    assert placed(explained(row("a", None, 0, 10, op=op))) == [f"a {label} 0..10"]


@pytest.mark.parametrize(
    "child",
    [
        row("b", "a", 2, 4),
        row("b", "a", 12, 14),
        row("b", "a", 8, 4),
        row("b", "a", 2, 4, **{"async": True}),
        row("b", "a", 2, 4, host="other"),
    ],
    ids=["waited for", "outlives it", "damaged", "async", "on another clock"],
)
def test_an_operation_with_a_child_of_any_kind_is_no_leaf(child: Json) -> None:
    found = placed(explained(row("a", None, 0, 10, op="execute_tool"), child))
    assert not any(line.startswith("a tool") for line in found)


def test_an_operation_with_phases_is_called_by_them_and_else_unobserved() -> None:
    found = explained(row("a", None, 0, 10, op="execute_tool"), phase(Phase.TOOL, "a", 2, 4))
    assert placed(found) == ["a unobserved 0..2", "a tool 2..4", "a unobserved 4..10"]


def test_a_tool_whose_durations_overflowed_is_unobserved() -> None:
    found = explained(row("a", None, 0, 10, op="execute_tool", phases={"queue": 20}))
    assert placed(found) == ["a unobserved 0..10"]


#   c   connect █ upstream ▒▒▒▒ upstream_stream ▒▒▒▒ finalize █     the short ones: durations only
def test_a_gateways_call_is_finalized_after_its_stream() -> None:
    found = explained(
        row("R", None, 0, 20),
        chat("c", "R", 0, 10, phases={"connect": 1, "finalize": 1}),
        phase(Phase.UPSTREAM, "c", 1, 4),
        phase(Phase.UPSTREAM_STREAM, "c", 4, 9),
    )
    assert [line.split()[1] for line in amounts(found) if line.startswith("c")] == [
        "connect",
        "upstream",
        "upstream_stream",
        "finalize",
    ]


# ── A gateway's phases around its children ───────────────────────────────────────────────────────


def of_gateway(*children: Json, **phases: float) -> tuple[list[str], list[str]]:
    """Sections and findings of a gateway's span that is the whole trace."""
    found = explained(row("g", None, 0, 30, boundary="gateway", phases=phases), *children)
    return placed(found), findings(found)


#   g   |adm|route|                    |  relay   |
#   c             ├──────────────finalize──┤
def test_a_relay_during_which_the_call_is_finalized_is_no_overflow() -> None:
    call = row("c", "g", 5, 26, kind="client")
    assert of_gateway(call, admission=3, route=2, relay=10) == (
        ["g admission 0..3", "g route 3..5", "c work 5..26", "g relay 26..30"],
        [],
    )


#   g   |      admission      |                   |
#   a      ├─────────────┤            c ├────┤
def test_an_admission_that_asks_somebody_is_no_overflow() -> None:
    asked = row("a", "g", 2, 14), row("c", "g", 20, 29, kind="client")
    assert of_gateway(*asked, admission=16, route=3) == (
        [
            "g admission 0..2",
            "a work 2..14",
            "g admission 14..16",
            "g route 16..19",
            "g unobserved 19..20",
            "c work 20..29",
            "g unobserved 29..30",
        ],
        [],
    )


def test_a_duration_beside_a_placed_one_lies_next_to_it() -> None:
    placed_one = phase(Phase.ADMISSION, "g", 0, 4)
    call = row("c", "g", 5, 29, kind="client")
    assert of_gateway(placed_one, call, route=3) == (
        ["g admission 0..4", "g route 4..5", "c work 5..29", "g unobserved 29..30"],
        [],
    )


@pytest.mark.parametrize(
    "phases",
    [
        {"admission": 12, "route": 9, "relay": 10},
        {"route": 20},
        {"admission": 5, "relay": 5, "prefill": 20},
    ],
    ids=["longer than the span", "begins nobody knows where", "another phase"],
)
def test_what_cannot_lie_around_the_children_is_left_out_and_said(
    phases: dict[str, float],
) -> None:
    sections, said = of_gateway(row("c", "g", 5, 26, kind="client"), **phases)
    assert sections == ["g unobserved 0..5", "c work 5..26", "g unobserved 26..30"]
    assert [line.split()[0] for line in said] == ["phase_overflow"]
