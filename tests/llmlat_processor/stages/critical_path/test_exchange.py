"""Exchange: a caller's waiting for its callee's account, by durations alone."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_processor.model import Assumptions
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from tests.cases.case_format import EXACT, Json
from tests.llmlat_processor.stages.critical_path.callers import CALLER, served, tolerant
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    engine,
    explained,
    findings,
    phase,
    row,
)

# ── It fits ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ahead", [-100_000, -7, 0, 20, 100_000])
def test_the_envelopes_are_replaced_by_the_callees_account_and_transit(ahead: float) -> None:
    """Wherever the other clock stands: the sum of both legs needs no clocks."""
    found = explained(*CALLER, *served(20, 25, 30, ahead))
    assert amounts(found) == [
        "c send 10",
        "e queue 20",
        "e prefill 25",
        "e decode 30",
        "c transit 5",
        "c finalize 10",
    ]
    assert amounts(found, "ttft") == ["c send 10", "e queue 20", "e prefill 25", "c transit 5"]
    assert findings(found) == []


def test_a_callee_that_took_just_as_long_leaves_no_transit() -> None:
    found = explained(*CALLER, *served(20, 25, 35))
    assert amounts(found) == [
        "c send 10",
        "e queue 20",
        "e prefill 25",
        "e decode 35",
        "c finalize 10",
    ]


def test_without_envelope_phases_time_under_no_phase_is_the_envelope() -> None:
    found = explained(
        row("c", None, 0, 100, kind="client"),
        phase(Phase.SEND, "c", 0, 10),
        engine("e", "c", 0, 60),
    )
    assert amounts(found) == ["c send 10", "e work 60", "c transit 30"]


def test_a_call_without_a_callee_is_labelled_as_a_leaf_would_be() -> None:
    tool = row("t", None, 0, 100, kind="client", op="execute_tool")
    assert amounts(explained(tool)) == ["t tool 100"]


def test_local_work_inside_a_call_stays_its_own() -> None:
    found = explained(
        row("c", None, 0, 100, kind="client"), row("local", "c", 70, 90), engine("e", "c", 0, 60)
    )
    assert amounts(found) == ["e work 60", "c transit 20", "local work 20"]


def test_envelopes_that_are_durations_only_are_exchanged_alike() -> None:
    durations = {"send": 10, "wait": 50, "stream": 30, "finalize": 10}
    caller = chat("c", None, 0, 100, stream=True, phases=durations)
    assert amounts(explained(caller, *served(20, 25, 30))) == amounts(
        explained(*CALLER, *served(20, 25, 30))
    )


def test_exchange_nests() -> None:
    """Client -> gateway -> engine, each by durations, each on a clock of its own."""
    found = explained(
        *CALLER,
        row("g", "c", -500, -425, kind="server", host="edge", boundary="gateway"),
        phase(Phase.ADMISSION, "g", -500, -495),
        row("up", "g", -495, -430, kind="client", host="edge", boundary="gateway"),
        phase(Phase.UPSTREAM, "up", -495, -445),
        phase(Phase.UPSTREAM_STREAM, "up", -445, -430),
        phase(Phase.RELAY, "g", -430, -425),
        engine("e", "up", 0, 60),
        phase(Phase.PREFILL, "e", 0, 45),
        phase(Phase.DECODE, "e", 45, 60),
    )
    assert amounts(found) == [
        "c send 10",
        "g admission 5",
        "e prefill 45",
        "e decode 15",
        "up transit 5",
        "g relay 5",
        "c transit 5",
        "c finalize 10",
    ]


def test_what_a_server_does_after_its_last_output_is_not_waited_for() -> None:
    """The callee goes on to 200 ms, but its decode has ended; its span's end is no edge."""
    account = served(20, 25, 30)
    account[0] = {**account[0], "end": 7_200}
    found = explained(*CALLER, *account)
    assert amounts(found)[1:5] == ["e queue 20", "e prefill 25", "e decode 30", "c transit 5"]
    assert findings(found) == []


def test_a_last_output_is_sought_among_the_callees_local_descendants() -> None:
    found = explained(
        *CALLER,
        engine("server", "c", 0, 300),
        row("e", "server", 5, 75, host="gpu", boundary="engine"),
        phase(Phase.PREFILL, "e", 5, 45),
        phase(Phase.DECODE, "e", 45, 75),
    )
    assert amounts(found)[1:5] == [
        "server unobserved 5",
        "e prefill 40",
        "e decode 30",
        "c transit 5",
    ]


# ── It does not fit ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("decode", "assumptions", "fits"),
    [
        (36, EXACT, False),
        (36, tolerant(tail_ms=1), True),
        (37, tolerant(tail_ms=1), False),
        (37, tolerant(epsilon_ms=1), True),
        (38, tolerant(epsilon_ms=1), False),
        (38, tolerant(tail_ms=1, epsilon_ms=1), True),
        (39, tolerant(tail_ms=1, epsilon_ms=1), False),
    ],
)
def test_a_callee_may_exceed_the_waiting_by_both_resolutions_and_the_tail(
    decode: float, assumptions: Assumptions, fits: bool
) -> None:
    """The caller waited for 80 ms, and the callee's last section gives what is too much."""
    caller = [
        chat("c", None, 0, 90),
        phase(Phase.WAIT, "c", 0, 40),
        phase(Phase.STREAM, "c", 40, 80),
        phase(Phase.FINALIZE, "c", 80, 90),
    ]
    found = explained(*caller, *served(20, 25, decode), assumptions=assumptions)
    assert findings(found) == ([] if fits else [f"negative_transit of e {35 - decode:g}"])
    engine_side = ["e queue 20", "e prefill 25", "e decode 35"]
    expected = engine_side if fits else ["c wait 40", "c stream 40"]
    assert amounts(found) == [*expected, "c finalize 10"]


@pytest.mark.parametrize(
    ("caller", "said"),
    [
        ({"op": "chat", "boundary": "client"}, "negative_transit of e -20"),
        ({"op": "chat"}, "negative_transit of e -20"),
        ({"rpc": True}, "negative_transit of e -20"),
        ({}, "outlived_parent of e 20"),
        ({"rpc": True, "cancelled": True}, "outlived_cancelled_parent of e -20"),
        ({"rpc": True, "error": True}, "outlived_cancelled_parent of e -20"),
    ],
    ids=[
        "ours",
        "a GenAI operation",
        "a unary RPC",
        "an HTTP client span that ends at the headers",
        "cancelled",
        "failed",
    ],
)
def test_what_a_callee_that_took_too_long_is_called(caller: dict[str, object], said: str) -> None:
    found = explained(
        row("c", None, 0, 100, **{"kind": "client", **caller}), engine("e", "c", 0, 120)
    )
    assert findings(found) == [said]
    assert amounts(found) == ["c unobserved 100"]


@pytest.mark.parametrize("end", ["closed_early", "abandoned", "failed", "cancelled"])
def test_a_caller_that_did_not_stay_to_the_last_byte_proves_no_negative_transit(end: str) -> None:
    gave_up = {names.LLMLAT_STREAM_END: end}
    found = explained(chat("c", None, 0, 100, attributes=gave_up), engine("e", "c", 0, 120))
    assert [line.split()[0] for line in findings(found)] != ["negative_transit"]
    assert len(findings(found)) == 1


def test_a_caller_that_left_a_complete_stream_unread_proves_no_negative_transit() -> None:
    said = {names.LLMLAT_STREAM_END: "complete", names.LLMLAT_STREAM_UNREAD: True}
    found = explained(chat("c", None, 0, 100, attributes=said), engine("e", "c", 0, 120))
    assert findings(found) == ["outlived_parent of e 20"]


@pytest.mark.parametrize("error", ["TimeoutError", "openai.APITimeoutError"])
def test_a_caller_that_timed_out_first_proves_no_negative_transit(error: str) -> None:
    said = {names.ERROR_TYPE: error}
    found = explained(chat("c", None, 0, 100, attributes=said), engine("e", "c", 0, 120))
    assert findings(found) == ["outlived_cancelled_parent of e -20"]


def test_a_callee_for_which_there_was_no_waiting_at_all_is_said() -> None:
    found = explained(
        row("c", None, 0, 100, kind="client", rpc=True),
        row("local", "c", 0, 100),
        engine("e", "c", 0, 20),
    )
    assert amounts(found) == ["local work 100"]
    assert findings(found) == ["negative_transit of e -20"]


def test_envelopes_stand_under_their_own_names_where_the_callee_is_rejected() -> None:
    found = explained(*CALLER, *served(20, 25, 100))
    standing = ["c send 10", "c wait 50", "c stream 30", "c finalize 10"]
    assert amounts(found) == standing
    assert amounts(found, "ttft") == standing[:2]


# ── A gateway on a busy machine ──────────────────────────────────────────────────────────────────


#   c      send 10     wait 50 + stream 30                 finalize 10
#   g          |route 20|      upstream 50     |   relay   |
def gateway(relay: float, upstream: float = 50, **keys: object) -> list[Json]:
    """A gateway that knows late that its last byte has gone."""
    sent = 20 + upstream
    place = {"kind": "server", "boundary": "gateway", "host": "gateway", **keys}
    return [
        row("g", "c", 5, 5 + sent + relay, **place),
        phase(Phase.ADMISSION, "g", 5, 15),
        phase(Phase.ROUTE, "g", 15, 25),
        row("u", "g", 25, 5 + sent, host=place["host"], kind="client"),
        phase(Phase.RELAY, "g", 5 + sent, 5 + sent + relay),
    ]


@pytest.mark.parametrize(("host", "send", "relay"), [("gateway", 10, 20), ("one", 5, 25)])
def test_a_gateway_that_learns_late_that_its_last_byte_has_gone_proves_nothing(
    host: str, send: int, relay: int
) -> None:
    """What there was no time for is cut; one clock shows what overlaps."""
    caller = [{**each, "host": "one"} for each in CALLER]
    found = explained(*caller, *({**each, "host": host} for each in gateway(70)))
    assert findings(found) == []
    assert amounts(found) == [
        f"c send {send}",
        "g admission 10",
        "g route 10",
        "u work 50",
        f"g relay {relay}",
    ]


def test_a_gateway_whose_upstream_alone_took_longer_than_its_caller_waited_is_said() -> None:
    found = explained(*CALLER, *gateway(10, upstream=90))
    assert [line.split()[0] for line in findings(found)] == ["negative_transit"]


def test_what_a_gateway_relays_into_the_callers_finalize_is_lent_before_it_is_cut() -> None:
    found = explained(*CALLER, *gateway(15))
    assert findings(found) == []
    lines = amounts(found)
    assert "g relay 15" in lines
    assert "c finalize 5" in lines


@pytest.mark.parametrize(
    ("callee", "kind"),
    [
        ({"kind": "server"}, "negative_transit of s -60"),
        ({"kind": "internal"}, "outlived_parent of s 60"),
        (
            {"kind": "server", "scope": "opentelemetry.instrumentation.fastapi"},
            "outlived_parent of s 60",
        ),
    ],
    ids=["a server", "a job elsewhere", "one that runs background tasks in its span"],
)
def test_only_a_callee_that_ends_with_its_answer_proves_that_it_took_too_long(
    callee: dict[str, Any], kind: str
) -> None:
    found = explained(
        row("t", None, 0, 100, op="execute_tool"), row("s", "t", 10, 170, host="there", **callee)
    )
    assert findings(found) == [kind]


def test_a_last_byte_that_took_no_time_to_relay_is_a_last_byte_too() -> None:
    found = explained(*CALLER, *gateway(0, upstream=65))
    assert findings(found) == []
    assert "c finalize 5" in amounts(found)


#   g          |     |          u           |fin|   |        its last byte goes before u is closed
#              5     25                    55  65  70
@pytest.mark.parametrize("first", [{}, {"first_content": 1}], ids=["placed", "one only lasted"])
def test_a_call_that_is_closed_after_the_last_byte_is_on_the_path(first: dict[str, int]) -> None:
    found = explained(
        *CALLER,
        row("g", "c", 5, 70, kind="server", boundary="gateway", host="gateway"),
        chat("u", "g", 25, 65, host="gateway", phases=first),
        phase(Phase.WAIT, "u", 25, 40, host="gateway"),
        phase(Phase.STREAM, "u", 41, 55, host="gateway"),
        phase(Phase.FINALIZE, "u", 55, 65, host="gateway"),
        phase(Phase.RELAY, "g", 55, 60, host="gateway"),
    )
    assert findings(found) == []
    lines = amounts(found)
    assert "u wait 15" in lines
    assert "u stream 14" in lines
    assert "u finalize 5" in lines
