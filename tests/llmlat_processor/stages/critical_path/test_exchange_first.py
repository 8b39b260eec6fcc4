"""Exchange up to the first output, on the path to the first useful content."""

from __future__ import annotations

from llmlat_semconv.phases import Phase
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.critical_path.callers import CALLER, served
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    engine,
    explained,
    findings,
    phase,
    row,
)

#   wait ▒▒▒▒  first_content ▒▒▒▒  stream ▒▒▒▒▒        a role chunk came before the first token
ROLE_CHUNK = (
    chat("c", None, 0, 100, stream=True, first_useful_content=60),
    phase(Phase.SEND, "c", 0, 10),
    phase(Phase.WAIT, "c", 10, 30),
    phase(Phase.FIRST_CONTENT, "c", 30, 60),
    phase(Phase.STREAM, "c", 60, 100),
)


def test_the_first_output_is_exchanged_for_wait_and_first_content_stands() -> None:
    found = explained(*ROLE_CHUNK, *served(5, 10, 40))
    assert amounts(found, "ttft") == [
        "c send 10",
        "e queue 5",
        "e prefill 10",
        "c transit 5",
        "c first_content 30",
    ]


def test_where_it_does_not_fit_wait_it_is_exchanged_for_first_content_too() -> None:
    found = explained(*ROLE_CHUNK, *served(5, 40, 40))
    assert amounts(found, "ttft") == ["c send 10", "e queue 5", "e prefill 40", "c transit 5"]


def test_where_it_fits_neither_the_envelopes_stand() -> None:
    found = explained(*ROLE_CHUNK, *served(5, 65, 15))
    assert amounts(found, "ttft") == ["c send 10", "c wait 20", "c first_content 30"]
    assert findings(found) == ["negative_transit of e -10"]


def test_without_an_edge_of_first_output_the_envelopes_stand() -> None:
    found = explained(*ROLE_CHUNK, engine("e", "c", 0, 80))
    assert amounts(found, "ttft") == ["c send 10", "c wait 20", "c first_content 30"]
    assert "e work 80" in amounts(found)


#   R               ├──────────────────┤
#   c        ├─ send ─┼─ wait ─▼────┤         began before its root, which clips send off
#   e            ├ prefill ───┤               ... so send cannot lend what e needs of it
def test_what_the_path_has_clipped_off_lends_nothing() -> None:
    found = explained(
        row("R", None, 0, 60),
        chat("c", "R", -5, 40, stream=True, first_useful_content=10),
        phase(Phase.SEND, "c", -5, 0),
        phase(Phase.WAIT, "c", 0, 10),
        phase(Phase.STREAM, "c", 10, 40),
        *served(0, 12, 30),
    )
    path = found.path("ttft", None)
    assert path is not None
    assert path.duration_ns == 10_000_000


def through_gateway(upstream: float, prefill: float) -> Outcome:
    """The gateway's first upstream event came after `upstream`, the first token later."""
    return explained(
        *CALLER,
        row("g", "c", 0, 80, kind="server", host="edge", boundary="gateway"),
        row("up", "g", 0, 80, kind="client", host="edge", boundary="gateway"),
        phase(Phase.UPSTREAM, "up", 0, upstream),
        phase(Phase.UPSTREAM_STREAM, "up", upstream, 80),
        engine("e", "up", 7_000, 7_000 + prefill + 20),
        phase(Phase.PREFILL, "e", 7_000, 7_000 + prefill),
        phase(Phase.DECODE, "e", 7_000 + prefill, 7_000 + prefill + 20),
    )


def test_a_gateway_lends_as_much_of_its_upstream_stream_as_the_first_output_needs() -> None:
    found = through_gateway(upstream=30, prefill=40)
    assert amounts(found, "ttft") == ["c send 10", "e prefill 40", "c transit 10"]


def test_a_gateway_whose_upstream_is_long_enough_lends_nothing() -> None:
    found = through_gateway(upstream=45, prefill=40)
    assert amounts(found, "ttft") == ["c send 10", "e prefill 40", "up transit 5", "c transit 5"]
