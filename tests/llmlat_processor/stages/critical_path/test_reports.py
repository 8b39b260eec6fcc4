"""An engine's report goes to the call that its engine answered, however far out it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import amounts, chat, engine, explained, phase, row

REPORT = {"prefill": 30, "decode": 40}


#   c   wait ────────────────────────────────────   what the engine said of itself, in the answer
#   g     ├ gateway ──────────────────────────┤
#   u        ├ upstream ───────────────────┤        the call that the engine answered
def client(**keys: Any) -> list[Json]:
    return [
        chat("c", None, 0, 100, reported=REPORT, **keys),
        phase(Phase.WAIT, "c", 0, 100),
    ]


def gateway(name: str, parent: str, start: float, end: float) -> Json:
    return row(name, parent, start, end, kind="server", host=name, boundary="gateway")


def upstream(name: str, parent: str, start: float, end: float, **keys: Any) -> list[Json]:
    said = {"kind": "client", "op": "chat", "host": parent, "boundary": "gateway", **keys}
    operation = row(name, parent, start, end, **said)
    return [operation, phase(Phase.UPSTREAM, name, start, end)]


def one_hop(*rows: Json) -> Outcome:
    return explained(*client(), gateway("g", "c", 5, 95), *rows)


def test_a_gateway_passes_on_what_is_about_its_own_call() -> None:
    found = one_hop(*upstream("u", "g", 10, 90))
    assert amounts(found) == [
        "g unobserved 5",
        "u prefill 30",
        "u decode 40",
        "u transit 10",
        "g unobserved 5",
        "c transit 10",
    ]


def test_it_goes_through_several_gateways() -> None:
    found = one_hop(
        *upstream("u", "g", 10, 90), gateway("h", "u", 12, 88), *upstream("v", "h", 15, 88)
    )
    assert [line for line in amounts(found) if "prefill" in line or "decode" in line] == [
        "v prefill 30",
        "v decode 40",
    ]


def test_of_several_tries_the_one_that_went_well_was_answered() -> None:
    found = one_hop(
        *upstream("u", "g", 10, 15, error=True),
        *upstream("v", "g", 16, 90),
    )
    assert "v prefill 30" in amounts(found)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [*upstream("u", "g", 10, 40), *upstream("v", "g", 50, 90)],
        upstream("u", "g", 10, 90, op=None),
        upstream("u", "g", 10, 90, error=True),
    ],
    ids=["no call", "two calls", "a call of something else", "a call that failed"],
)
def test_where_nobody_knows_which_call_it_is_about_nothing_is_said(rows: Sequence[Json]) -> None:
    found = one_hop(*rows)
    assert not [line for line in amounts(found) if "prefill" in line]


def test_an_engine_that_was_measured_needs_no_report() -> None:
    measured = [engine("e", "u", 7_010, 7_080), phase(Phase.DECODE, "e", 7_050, 7_080)]
    found = one_hop(*upstream("u", "g", 10, 90), *measured)
    assert not [line for line in amounts(found) if "prefill" in line]
    assert "e decode 30" in amounts(found)


def test_what_the_gateway_was_told_itself_is_nearer() -> None:
    found = one_hop(*upstream("u", "g", 10, 90, reported={"decode": 50}))
    assert [line for line in amounts(found) if line.startswith("u")] == [
        "u decode 50",
        "u transit 30",
    ]


def test_of_attempts_the_last_that_went_well_was_answered() -> None:
    """The operation tells what the engine of its last attempt has said."""
    found = explained(
        chat("c", None, 0, 100, reported=REPORT),
        row("a", "c", 0, 10, kind="client", attempt=1, error=True),
        row("b", "c", 20, 100, kind="client", attempt=2),
        phase(Phase.WAIT, "b", 20, 100),
    )
    assert [line for line in amounts(found) if line.startswith("b")] == [
        "b prefill 30",
        "b decode 40",
        "b transit 10",
    ]


def test_an_upper_bound_gives_way_in_the_callers_waiting_too() -> None:
    """The client saw the queue end later than the gateway did: the way between is in its bound."""
    found = explained(
        *client(bounded=["prefill"], stream=True, first_useful_content=60),
        gateway("g", "c", 5, 95),
        *upstream("u", "g", 10, 72),
        phase(Phase.RELAY, "g", 72, 95),
    )
    assert "u prefill 22" in amounts(found)
