"""The first content of a call as both sides saw it: two durations, and what is left of one."""

from __future__ import annotations

import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence
from tests.cases.case_format import Json
from tests.cases.case_spans import name_of
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.critical_path.callers import CALLER, served, tolerant
from tests.llmlat_processor.stages.spans import MS, chat, engine, explained, findings, phase, row


def seen(outcome: Outcome) -> list[str]:
    """`call < callee server client transit`, in milliseconds."""
    return [
        f"{name_of(one.call.span_id)} < {name_of(one.callee.span_id)} "
        f"{one.server_ns / MS:g} {one.client_ns / MS:g} {one.transit_ns / MS:g}"
        for one in outcome.explained.paths.first_contents
    ]


#   c   send █ wait ▒▒▒▒▒▒▒▒▒▒▼ stream                     sent at 0, content at 60
#   e          queue ██ prefill ██▼ decode                 15 after its start, on another clock
def test_both_sides_are_durations_by_their_own_clocks() -> None:
    assert seen(explained(*CALLER, *served(5, 10, 30))) == ["c < e 15 60 45"]


@pytest.mark.parametrize("ahead", [-50, 0, 5, 10**9])
def test_no_clocks_are_compared(ahead: float) -> None:
    assert seen(explained(*CALLER, *served(5, 10, 30, ahead=ahead))) == ["c < e 15 60 45"]


def test_it_counts_from_when_the_request_was_sent() -> None:
    """What a client does before that is nobody's transit."""
    found = explained(
        chat("c", None, 0, 100, stream=True, first_useful_content=60),
        phase(Phase.SEND, "c", 20, 25),
        phase(Phase.WAIT, "c", 25, 60),
        phase(Phase.STREAM, "c", 60, 100),
        *served(5, 10, 30),
    )
    assert seen(found) == ["c < e 15 40 25"]


def test_where_sending_has_no_place_it_counts_from_the_spans_start() -> None:
    found = explained(
        chat("c", None, 0, 100, stream=True, first_useful_content=60),
        phase(Phase.WAIT, "c", 25, 60),
        phase(Phase.STREAM, "c", 60, 100),
        *served(5, 10, 30),
    )
    assert seen(found) == ["c < e 15 60 45"]


#   c    ├──────────────────────────▼─────────┤      content at 60
#   g      ├────────────────────────────────┤        its call: first event 40 after its start
#   up       ├ upstream ──────────▼──────┤           its first content 45 after upstream's start
#   e          ├ prefill ──▼ decode ──┤
def through_gateway(upstream_end: float = 42, *, tells: bool = True) -> Outcome:
    said: Json = {"stream": True, "first_useful_content": 47} if tells else {"stream": True}
    return explained(
        *CALLER,
        row("g", "c", 0, 80, kind="server", host="edge", boundary="gateway"),
        row("up", "g", 1, 80, kind="client", op="chat", host="edge", boundary="gateway", **said),
        phase(Phase.UPSTREAM, "up", 2, upstream_end),
        phase(Phase.UPSTREAM_STREAM, "up", upstream_end, 79),
        *[{**each, "parent": "up"} if each["id"] == "e" else each for each in served(0, 30, 9)],
    )


def test_each_hop_of_a_chain_is_an_entry() -> None:
    assert seen(through_gateway()) == ["c < g 42 60 18", "up < e 30 45 15"]


def test_a_gateways_first_event_may_be_a_role_chunk() -> None:
    """Then its first output is as late as its engine's first token needs it to be."""
    assert seen(through_gateway(upstream_end=22)) == ["c < g 32 60 28", "up < e 30 45 15"]


def test_a_gateway_that_does_not_tell_of_content_has_one_entry() -> None:
    assert seen(through_gateway(tells=False)) == ["c < g 42 60 18"]


#   wait ▒▒▒  first_content ▒▒▒▒▼  stream        a role chunk came before the first token
def test_a_role_chunk_at_the_client_is_no_content() -> None:
    found = explained(
        chat("c", None, 0, 100, stream=True, first_useful_content=60),
        phase(Phase.SEND, "c", 0, 10),
        phase(Phase.WAIT, "c", 10, 12),
        phase(Phase.FIRST_CONTENT, "c", 12, 60),
        phase(Phase.STREAM, "c", 60, 100),
        *served(5, 30, 20),
    )
    assert seen(found) == ["c < e 35 60 25"]


# ── Attributes mode: durations without places ────────────────────────────────────────────────────


def counted(*, queue: float, prefill: float, decode: float, length: float = 40) -> Outcome:
    phases = {"queue": queue, "prefill": prefill, "decode": decode}
    return explained(*CALLER, engine("e", "c", 0, length, phases=phases))


def test_durations_that_fill_the_operation_have_their_places() -> None:
    assert seen(counted(queue=5, prefill=10, decode=25)) == ["c < e 15 60 45"]


def test_durations_that_leave_time_open_tell_no_instant() -> None:
    """The first output may have come any time later, and a guess is worse than nothing."""
    assert seen(counted(queue=5, prefill=10, decode=20)) == []


def test_durations_that_overflow_tell_nothing() -> None:
    assert seen(counted(queue=5, prefill=10, decode=26)) == []


def test_a_client_needs_no_places() -> None:
    phases = {"send": 10, "wait": 50, "stream": 30, "finalize": 10}
    caller = chat("c", None, 0, 100, stream=True, first_useful_content=60, phases=phases)
    assert seen(explained(caller, *served(5, 10, 30))) == ["c < e 15 60 45"]


# ── Absence beats a guess ────────────────────────────────────────────────────────────────────────


def test_without_content_there_is_no_entry() -> None:
    caller = chat("c", None, 0, 100, stream=True)
    assert seen(explained(caller, *CALLER[1:], *served(5, 10, 30))) == []


def test_without_a_first_output_there_is_no_entry() -> None:
    assert seen(explained(*CALLER, engine("e", "c", 0, 60))) == []


def test_a_report_is_no_edge() -> None:
    reported = {"queue": 5, "prefill": 10, "decode": 25}
    caller = chat("c", None, 0, 100, stream=True, first_useful_content=60, reported=reported)
    assert seen(explained(caller, *CALLER[1:])) == []


def test_an_upper_bound_is_no_edge() -> None:
    rows = served(5, 10, 30)
    bounded = {names.LLMLAT_PHASE_EVIDENCE: Evidence.BOUNDED.value}
    told = [
        {**each, "attributes": bounded} if each.get("phase") == Phase.PREFILL.value else each
        for each in rows
    ]
    assert seen(explained(*CALLER, *told)) == []


def test_what_a_callee_did_in_its_own_process_tells_for_it() -> None:
    found = explained(
        *CALLER,
        row("server", "c", 7_000, 7_045, kind="server", host="gpu"),
        *[
            {**each, "parent": "server", "kind": "internal"} if each["id"] == "e" else each
            for each in served(5, 10, 20, ahead=7_003)
        ],
    )
    assert seen(found) == ["c < server 18 60 42"]


def test_a_callee_that_is_later_than_its_caller_is_left_out() -> None:
    """Within the tolerance it is at most as late, and nothing is between them."""
    rows = served(5, 62, 3)
    assert seen(explained(*CALLER, *rows)) == []
    assert seen(explained(*CALLER, *rows, assumptions=tolerant(epsilon_ms=3))) == []
    assert seen(explained(*CALLER, *rows, assumptions=tolerant(epsilon_ms=4))) == ["c < e 67 60 0"]


def test_a_rejected_callee_has_no_entry() -> None:
    found = explained(*CALLER, *served(5, 10, 300))
    assert seen(found) == []
    assert [line.split()[0] for line in findings(found)] == ["negative_transit"]


# ── Attempts ─────────────────────────────────────────────────────────────────────────────────────


def attempts(first_error: bool) -> Outcome:
    return explained(
        chat("c", None, 0, 100, stream=True, first_useful_content=70),
        row("a1", "c", 0, 20, kind="client", attempt=1, error=first_error),
        row("a2", "c", 25, 100, kind="client", attempt=2),
        phase(Phase.SEND, "a2", 26, 30),
        phase(Phase.WAIT, "a2", 30, 70),
        phase(Phase.STREAM, "a2", 70, 100),
        *[{**each, "parent": "a2"} if each["id"] == "e" else each for each in served(5, 10, 30)],
    )


def test_an_attempt_has_the_content_of_its_operation() -> None:
    assert seen(attempts(first_error=True)) == ["a2 < e 15 44 29"]
