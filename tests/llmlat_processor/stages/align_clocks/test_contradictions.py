"""Contradictions: what no offsets can explain, with its proof, and what only seems impossible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmlat_processor.model import AlignedTrace
from llmlat_semconv import attributes as names
from tests.cases.case_format import EXACT, Json
from tests.llmlat_processor.stages.align_clocks.traces import aligned, call, offset, root, told
from tests.llmlat_processor.stages.spans import MS, row


def proofs(trace: AlignedTrace) -> list[list[str]]:
    return [
        [f"{m.sender} > {m.receiver} by {m.left.decode()} {m.arrived.decode()}" for m in each.proof]
        for each in trace.findings
        if each.proof
    ]


# ── One call ─────────────────────────────────────────────────────────────────────────────────────


def test_a_callee_that_took_longer_than_its_caller_waited_proves_it_alone() -> None:
    trace = aligned(root(), *call("c", 100, (500, 620), 200))
    assert told(trace) == ["negative_transit of cs -20"]
    assert proofs(trace) == [["A > B by c cs", "B > A by cs c"]]
    assert offset(trace, "A", "B") == (None, None)


@pytest.mark.parametrize(
    "granted", [{"tail_ns": 20_000_000}, {"resolution_ns": 10_000_000}, {"drift_ppm": 200_000}]
)
def test_what_is_granted_is_no_contradiction(granted: dict[str, int]) -> None:
    trace = aligned(root(), *call("c", 100, (500, 620), 200), assumptions=replace(EXACT, **granted))
    assert told(trace) == []


# ── Two domains ──────────────────────────────────────────────────────────────────────────────────


#   offsets    c [10, 20]        d [50, 60]
def disjoint(*, interleaved: bool) -> list[Json]:
    calls = [
        *call("c1", 100, (120, 200), 190),
        *call("d1", 300, (360, 440), 390),
        *call("c2", 500, (520, 600), 590),
        *call("d2", 700, (760, 840), 790),
    ]
    if not interleaved:
        calls[2:4], calls[4:6] = (
            [*call("c2", 300, (320, 400), 390)],
            [*call("d1", 500, (560, 640), 590)],
        )
    return [root(), *calls]


def test_two_calls_that_are_possible_alone_and_not_together() -> None:
    trace = aligned(root(), *call("c", 100, (120, 200), 190), *call("d", 300, (360, 440), 390))
    assert told(trace) == ["infeasible_offset of c -30"]
    assert proofs(trace) == [["A > B by c cs", "B > A by ds d"]]
    assert offset(trace, "A", "B") == (None, None)


def test_no_step_explains_calls_that_take_turns() -> None:
    trace = aligned(*disjoint(interleaved=True))
    assert told(trace) == ["infeasible_offset of c1 -30"]


def test_a_step_explains_calls_before_it_and_calls_after_it() -> None:
    trace = aligned(*disjoint(interleaved=False))
    assert told(trace) == ["clock_step of c1 -30"]
    assert offset(trace, "A", "B") == (10, 20)


def test_one_bad_call_is_no_step() -> None:
    trace = aligned(*disjoint(interleaved=False)[:-2])
    assert told(trace) == ["infeasible_offset of c1 -30"]


def test_monotonic_clocks_are_never_stepped() -> None:
    read = {"A": 7_000, "B": 90_000}
    rows = [
        {
            **each,
            "attributes": {
                names.LLMLAT_CLOCK_DOMAIN_ID: each["host"],
                names.LLMLAT_CLOCK_MONOTONIC_START: round(
                    (each["start"] + read[each["host"]]) * MS
                ),
            },
        }
        for each in disjoint(interleaved=False)
    ]
    assert told(aligned(*rows)) == ["infeasible_offset of c1 -30"]


#   A was stepped back by 1000 between c2 and d1, or B between d2 and c1
def test_where_nobody_knows_which_clock_was_stepped_there_is_no_before() -> None:
    trace = aligned(
        root(),
        *call("c1", 2_100, (2_120, 2_200), 2_190),
        *call("c2", 2_300, (2_320, 2_400), 2_390),
        *call("d1", 1_500, (2_520, 2_600), 1_590),
        *call("d2", 1_700, (2_720, 2_800), 1_790),
    )
    assert [line.split()[0] for line in told(trace)] == ["clock_step"]
    assert offset(trace, "A", "B") == (None, None)


# ── Three and more ───────────────────────────────────────────────────────────────────────────────


def test_three_domains_each_two_of_which_are_possible() -> None:
    """B is 10 to 20 ahead of A, C 10 to 20 ahead of B, and C at most 15 ahead of A."""
    trace = aligned(
        root(),
        *call("c", 100, (120, 200), 190),
        *call("d", 1_000, (1_020, 1_100), 1_090, at="B", to="C"),
        *call("x", 500, (515, 600), 599, to="C"),
    )
    assert told(trace) == ["offset_cycle of x -5"]
    assert proofs(trace) == [["A > C by x xs", "C > B by ds d", "B > A by cs c"]]
    assert offset(trace, "A", "B") == offset(trace, "A", "C") == (None, None)


def test_other_domains_keep_what_is_proved_of_them() -> None:
    trace = aligned(
        root(),
        *call("c", 100, (120, 200), 190),
        *call("d", 300, (360, 440), 390),
        *call("o", 500, (515, 600), 610, to="C"),
    )
    assert offset(trace, "A", "C") == (-10, 15)


# ── Clocks part ──────────────────────────────────────────────────────────────────────────────────


#   B gains 1 ms in 10 s: 100 ppm. At first it is -0.1 .. 0.1 ahead, at the end 0.9 .. 1.1
def drifted() -> list[Json]:
    return [
        row("R", None, 0, 10_100, host="A"),
        *call("c", 0, (0.1, 9.9), 10),
        *call("d", 10_000, (10_001.1, 10_010.9), 10_010),
    ]


def test_without_drift_a_long_trace_of_healthy_clocks_would_be_a_contradiction() -> None:
    assert [line.split()[0] for line in told(aligned(*drifted()))] == ["infeasible_offset"]


def test_with_drift_it_is_none() -> None:
    trace = aligned(*drifted(), assumptions=replace(EXACT, drift_ppm=200))
    assert told(trace) == []
    low, high = offset(trace, "A", "B")
    assert low is not None
    assert high is not None
    assert low <= 0 <= high


def test_what_a_callee_calls_in_turn_is_as_late_as_its_caller_can_be() -> None:
    """The clock of B says nothing of when; that the call from A ended at 9,000 does."""
    trace = aligned(
        root(),
        *call("c", 1_000, (-70_000, -69_000), 9_000),
        row("u", "cs", -69_900, -69_800, host="B", kind="client", rpc=True),
        row("us", "u", 5, 80, host="C", kind="server"),
        assumptions=replace(EXACT, drift_ppm=200),
    )
    by_edge = {(m.sender, m.left): m.drift_ns for m in trace.clocks.messages}
    assert by_edge["A", b"c"] == granted_ns(1_000)
    assert by_edge["B", b"u"] == granted_ns(9_000 + 100)


@pytest.mark.parametrize("caller", ["producer", "client"])
def test_what_waits_in_a_queue_is_as_late_as_its_wall_clock_says(caller: str) -> None:
    """A worker takes the job up after 60 s: its clock may have parted by 12 ms meanwhile."""
    trace = aligned(
        row("R", None, 0, 100, host="A"),
        row("p", "R", 10, 11, host="A", kind=caller),
        row("w", "p", 60_000, 60_500, host="B", kind="consumer"),
        row("c", "w", 60_100, 60_200, host="B", kind="client", rpc=True),
        row("s", "c", 60_110, 60_190, host="A", kind="server"),
        assumptions=replace(EXACT, drift_ppm=200),
    )
    by_edge = {(m.sender, m.left): m.drift_ns for m in trace.clocks.messages}
    assert by_edge["B", b"c"] == granted_ns(60_100)


def granted_ns(passed_ms: int) -> int:
    """200 ppm of what passed, by a clock that itself may be wrong and may show no milliseconds."""
    return (passed_ms * 1_001_000 + 1_000_000) * 200 // 10**6
